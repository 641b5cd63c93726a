package conformance

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// busyServer starts a server that grants a partition two entities a second, so that the
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
		if found := regexp.MustCompile(`TableEndpoint=([^;]+)`).FindStringSubmatch(lines.Text()); found != nil {
			return found[1]
		}
	}
	t.Fatal("the server did not start")
	return ""
}

// fill writes rows into one partition, up to the first error.
func fill(table *aztables.Client, rows []string) error {
	for _, row := range rows {
		if _, err := table.AddEntity(ctx, entity("p", row, nil), nil); err != nil {
			return err
		}
	}
	return nil
}

func manyRows() []string {
	rows := []string{}
	for number := range 12 {
		rows = append(rows, fmt.Sprintf("%03d", number))
	}
	return rows
}

type refusals struct{ count int }

func (seen *refusals) Do(request *policy.Request) (*http.Response, error) {
	answer, err := request.Next()
	if err == nil && answer.StatusCode == http.StatusServiceUnavailable {
		seen.count++
	}
	return answer, err
}

func TestRetriesGetEverythingWritten(t *testing.T) {
	var seen refusals
	options := aztables.ClientOptions{ClientOptions: policy.ClientOptions{
		PerRetryPolicies: []policy.Policy{&seen},
	}}
	service, err := aztables.NewServiceClientWithSharedKey(busyServer(t), credential(t), &options)
	must(t, err)
	name := fresh()
	_, err = service.CreateTable(ctx, name, nil)
	must(t, err)
	table := service.NewClient(name)
	must(t, fill(table, manyRows()))
	equal(t, rowKeys(inPartition(t, table, "p")), manyRows())
	if seen.count == 0 {
		t.Fatal("the server was never busy")
	}
}

func TestWithoutRetriesBusyIsAnError(t *testing.T) {
	service, name := serviceAt(t, busyServer(t), key), fresh()
	_, err := service.CreateTable(ctx, name, nil)
	must(t, err)
	refused(t, fill(service.NewClient(name), manyRows()), 503, "ServerBusy")
}
