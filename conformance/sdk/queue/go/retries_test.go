package conformance

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

// busyServer starts a server that grants a queue two messages a second, so that the
// slowest machine asks for more.
func busyServer(t *testing.T) string {
	t.Helper()
	binary := os.Getenv("PARTITA_BINARY")
	if binary == "" {
		t.Skip("PARTITA_BINARY names no server to start")
	}
	server := exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--in-memory", "--log-level", "error",
		"--throttle", "100000/2")
	output, err := server.StdoutPipe()
	must(t, err)
	must(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if found := regexp.MustCompile(`QueueEndpoint=([^;]+)`).FindStringSubmatch(lines.Text()); found != nil {
			return found[1]
		}
	}
	t.Fatal("the server did not start")
	return ""
}

// fill puts messages, up to the first error.
func fill(queue *azqueue.QueueClient) error {
	for range 12 {
		if _, err := queue.EnqueueMessage(ctx, "a", nil); err != nil {
			return err
		}
	}
	return nil
}

type refusals struct{ count int }

func (seen *refusals) Do(request *policy.Request) (*http.Response, error) {
	answer, err := request.Next()
	if err == nil && answer.StatusCode == http.StatusServiceUnavailable {
		seen.count++
	}
	return answer, err
}

func TestRetriesGetEverythingPut(t *testing.T) {
	t.Parallel()
	var seen refusals
	watched := azqueue.ClientOptions{ClientOptions: policy.ClientOptions{PerRetryPolicies: []policy.Policy{&seen}}}
	service, err := azqueue.NewServiceClientWithSharedKeyCredential(busyServer(t), credential(t), &watched)
	must(t, err)
	name := fresh()
	_, err = service.CreateQueue(ctx, name, nil)
	must(t, err)
	queue := service.NewQueueClient(name)
	must(t, fill(queue))
	equal(t, count(t, queue), 12)
	if seen.count == 0 {
		t.Fatal("the server was never busy")
	}
}

func TestWithoutRetriesBusyIsAnError(t *testing.T) {
	service, name := serviceAt(t, busyServer(t)), fresh()
	_, err := service.CreateQueue(ctx, name, nil)
	must(t, err)
	refused(t, fill(service.NewQueueClient(name)), 503, "ServerBusy")
}
