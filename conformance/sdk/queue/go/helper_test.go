// Package conformance tests a Queue service through the unmodified Go SDK.
//
// This file has what every test needs: clients of the server under test, fresh queues, and what the server said.
package conformance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2/queueerror"
)

const (
	account = "devstoreaccount1"
	key     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

var ctx = context.Background()

func endpoint() string {
	if given := os.Getenv("PARTITA_QUEUE_ENDPOINT"); given != "" {
		return strings.TrimSuffix(given, "/")
	}
	return "http://127.0.0.1:10001/" + account
}

// options turn retries off: a retry would hide a wrong answer.
func options() *azqueue.ClientOptions {
	return &azqueue.ClientOptions{ClientOptions: policy.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
}

func credential(t *testing.T) *azqueue.SharedKeyCredential {
	t.Helper()
	made, err := azqueue.NewSharedKeyCredential(account, key)
	must(t, err)
	return made
}

func serviceAt(t *testing.T, url string) *azqueue.ServiceClient {
	t.Helper()
	service, err := azqueue.NewServiceClientWithSharedKeyCredential(url, credential(t), options())
	must(t, err)
	return service
}

func newService(t *testing.T) *azqueue.ServiceClient {
	t.Helper()
	return serviceAt(t, endpoint())
}

func fresh() string {
	random := make([]byte, 10)
	_, _ = rand.Read(random) // documented never to fail
	return "go-" + hex.EncodeToString(random)
}

// newQueue makes a queue that lives as long as its test.
func newQueue(t *testing.T) (*azqueue.QueueClient, string) {
	t.Helper()
	service, name := newService(t), fresh()
	_, err := service.CreateQueue(ctx, name, nil)
	must(t, err)
	t.Cleanup(func() { _, _ = service.DeleteQueue(ctx, name, nil) })
	return service.NewQueueClient(name), name
}

func missingQueue(t *testing.T) *azqueue.QueueClient {
	t.Helper()
	return newService(t).NewQueueClient(fresh())
}

func put(t *testing.T, queue *azqueue.QueueClient, text string) *azqueue.EnqueuedMessage {
	t.Helper()
	return putWith(t, queue, text, nil)
}

func putWith(t *testing.T, queue *azqueue.QueueClient, text string, o *azqueue.EnqueueMessageOptions) *azqueue.EnqueuedMessage {
	t.Helper()
	answer, err := queue.EnqueueMessage(ctx, text, o)
	must(t, err)
	return answer.Messages[0]
}

func take(t *testing.T, queue *azqueue.QueueClient, number, seconds int32) []*azqueue.DequeuedMessage {
	t.Helper()
	answer, err := queue.DequeueMessages(ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: &number, VisibilityTimeout: &seconds})
	must(t, err)
	return answer.Messages
}

func peek(t *testing.T, queue *azqueue.QueueClient, number int32) []*azqueue.PeekedMessage {
	t.Helper()
	answer, err := queue.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: &number})
	must(t, err)
	return answer.Messages
}

func update(queue *azqueue.QueueClient, id, receipt, text string, seconds int32) (azqueue.UpdateMessageResponse, error) {
	return queue.UpdateMessage(ctx, id, receipt, text, &azqueue.UpdateMessageOptions{VisibilityTimeout: &seconds})
}

func remove(queue *azqueue.QueueClient, message *azqueue.DequeuedMessage) error {
	_, err := queue.DeleteMessage(ctx, *message.MessageID, *message.PopReceipt, nil)
	return err
}

func texts(messages []*azqueue.DequeuedMessage) []string {
	all := []string{}
	for _, message := range messages {
		all = append(all, *message.MessageText)
	}
	return all
}

func peekedTexts(messages []*azqueue.PeekedMessage) []string {
	all := []string{}
	for _, message := range messages {
		all = append(all, *message.MessageText)
	}
	return all
}

func count(t *testing.T, queue *azqueue.QueueClient) int {
	t.Helper()
	answer, err := queue.GetProperties(ctx, nil)
	must(t, err)
	return int(*answer.ApproximateMessagesCount)
}

// soon asks until there is an answer. The server decides when; a slow machine may ask late.
func soon[T any](t *testing.T, act func() []T) []T {
	t.Helper()
	for range 1200 {
		if found := act(); len(found) > 0 {
			return found
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("nothing came in time")
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
		t.Fatalf("found    %.300v\nexpected %.300v", found, expected)
	}
}

// refused demands the SDK's error with this status and the service's code.
func refused(t *testing.T, err error, status int, code queueerror.Code) {
	t.Helper()
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		t.Fatalf("expected %d %s, got %v", status, code, err)
	}
	if answer.StatusCode != status || answer.ErrorCode != string(code) {
		t.Fatalf("expected %d %s, got %d %s", status, code, answer.StatusCode, answer.ErrorCode)
	}
}

func gone(t *testing.T, err error) {
	t.Helper()
	refused(t, err, 404, queueerror.MessageNotFound)
}
