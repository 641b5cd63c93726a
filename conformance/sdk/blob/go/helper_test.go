// Package conformance tests a Blob service through the unmodified Go SDK.
//
// This file has what every test needs: clients of the server under test, fresh containers, and what the server said.
package conformance

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

const (
	account = "devstoreaccount1"
	key     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	mib     = 1024 * 1024
	digits  = "0123456789"
)

var ctx = context.Background()

func endpoint() string {
	if given := os.Getenv("PARTITA_BLOB_ENDPOINT"); given != "" {
		return strings.TrimSuffix(given, "/")
	}
	return "http://127.0.0.1:10000/" + account
}

// once turns retries off: a retry would hide a wrong answer.
func once() policy.ClientOptions {
	return policy.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}
}

func credential(t *testing.T) *azblob.SharedKeyCredential {
	t.Helper()
	made, err := azblob.NewSharedKeyCredential(account, key)
	must(t, err)
	return made
}

func serviceAt(t *testing.T, url string) *service.Client {
	t.Helper()
	made, err := service.NewClientWithSharedKeyCredential(url, credential(t), &service.ClientOptions{ClientOptions: once()})
	must(t, err)
	return made
}

func newService(t *testing.T) *service.Client {
	t.Helper()
	return serviceAt(t, endpoint())
}

func fresh() string {
	random := make([]byte, 10)
	_, _ = rand.Read(random) // documented never to fail
	return "go-" + hex.EncodeToString(random)
}

// containerOf makes a container that lives as long as its test.
func containerOf(t *testing.T, from *service.Client) (*container.Client, string) {
	t.Helper()
	name := fresh()
	made := from.NewContainerClient(name)
	_, err := made.Create(ctx, nil)
	must(t, err)
	t.Cleanup(func() { _, _ = made.Delete(ctx, nil) })
	return made, name
}

func newContainer(t *testing.T) (*container.Client, string) {
	t.Helper()
	return containerOf(t, newService(t))
}

// newBlob makes a block blob with ten bytes.
func newBlob(t *testing.T) (*blockblob.Client, *container.Client) {
	t.Helper()
	in, _ := newContainer(t)
	made := in.NewBlockBlobClient("blob")
	put(t, made, digits)
	return made, in
}

func body(text string) io.ReadSeekCloser {
	return struct {
		io.ReadSeeker
		io.Closer
	}{strings.NewReader(text), io.NopCloser(nil)}
}

func put(t *testing.T, to *blockblob.Client, text string) blockblob.UploadResponse {
	t.Helper()
	answer, err := to.Upload(ctx, body(text), nil)
	must(t, err)
	return answer
}

type downloader interface {
	DownloadStream(context.Context, *blob.DownloadStreamOptions) (blob.DownloadStreamResponse, error)
}

func download(from downloader, options *blob.DownloadStreamOptions) (string, error) {
	answer, err := from.DownloadStream(ctx, options)
	if err != nil {
		return "", err
	}
	if answer.ErrorCode != nil { // 304, which the SDK does not count as an error
		return "", &azcore.ResponseError{ErrorCode: *answer.ErrorCode, StatusCode: 304}
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	return string(data), err
}

func content(t *testing.T, from downloader) string {
	t.Helper()
	found, err := download(from, nil)
	must(t, err)
	return found
}

func random(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.Read(data)
	return data
}

func hours(count float64) time.Time {
	return time.Now().UTC().Add(time.Duration(count * float64(time.Hour)))
}

func listed(t *testing.T, in *container.Client, options *container.ListBlobsFlatOptions) []*container.BlobItem {
	t.Helper()
	all := []*container.BlobItem{}
	for pager := in.NewListBlobsFlatPager(options); pager.More(); {
		page, err := pager.NextPage(ctx)
		must(t, err)
		all = append(all, page.Segment.BlobItems...)
	}
	return all
}

func names(items []*container.BlobItem) []string {
	all := []string{}
	for _, item := range items {
		all = append(all, *item.Name)
	}
	return all
}

// served starts a server with these settings, that ends with its test.
func served(t *testing.T, settings ...string) *service.Client {
	t.Helper()
	binary := os.Getenv("PARTITA_BINARY")
	if binary == "" {
		t.Skip("PARTITA_BINARY names no server to start")
	}
	command := exec.Command(binary, append([]string{"serve", "--listen", "127.0.0.1:0", "--in-memory", "--log-level", "error"}, settings...)...)
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	address := regexp.MustCompile(`BlobEndpoint=(http:[^;]+)`)
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if found := address.FindStringSubmatch(lines.Text()); found != nil {
			return serviceAt(t, found[1])
		}
	}
	t.Fatal("the server did not start")
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, found, expected any) {
	t.Helper()
	if !reflect.DeepEqual(found, expected) {
		t.Fatalf("found    %v\nexpected %v", found, expected)
	}
}

// refused demands the SDK's error with this status and the service's code.
func refused(t *testing.T, err error, status int, code bloberror.Code) {
	t.Helper()
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		t.Fatalf("expected %d %s, got %v", status, code, err)
	}
	if answer.StatusCode != status || answer.ErrorCode != string(code) {
		t.Fatalf("expected %d %s, got %d %s", status, code, answer.StatusCode, answer.ErrorCode)
	}
}

func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

func texts(values map[string]*string) map[string]string {
	found := map[string]string{}
	for name, value := range values {
		found[name] = text(value)
	}
	return found
}

var metadata = map[string]*string{"Key": to.Ptr("Value")}
