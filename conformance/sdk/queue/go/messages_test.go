package conformance

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2/queueerror"
)

const (
	someID      = "0a1b2c3d-192b-4f77-a501-2ba4be007ea5"
	someReceipt = "AgAAAAMAAAAAAAAAkP0RP0Fx2QE="
)

func seconds(count int32) *azqueue.EnqueueMessageOptions {
	return &azqueue.EnqueueMessageOptions{VisibilityTimeout: &count}
}

func living(count int32) *azqueue.EnqueueMessageOptions {
	return &azqueue.EnqueueMessageOptions{TimeToLive: &count}
}

func TestTexts(t *testing.T) {
	for name, text := range map[string]string{
		"plain": "hello", "empty": "", "blanks": "  mess\t age1\n", "markup": `<a href='x'>"&amp;" ]]></a>`,
		"unicode": "日本語 ñ ß Ω", "emoji": "👩‍👩‍👧 😀", "carriage return": "a\r\nb\rc", "base64": base64.StdEncoding.EncodeToString([]byte{0, 1, 255}),
		"longest": strings.Repeat("a", 65536), "longest escaped": strings.Repeat("<", 65536), "longest of four bytes": strings.Repeat("😀", 16384),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue, _ := newQueue(t)
			put(t, queue, text)
			message := take(t, queue, 1, 60)[0]
			found := ""
			if message.MessageText != nil {
				found = *message.MessageText
			}
			equal(t, found, text)
			must(t, remove(queue, message))
			equal(t, count(t, queue), 0)
		})
	}
}

func TestTextsThatAreRefused(t *testing.T) {
	queue, _ := newQueue(t)
	message := put(t, queue, "a")
	for _, letter := range []string{"a", "é", "<"} {
		_, err := queue.EnqueueMessage(ctx, strings.Repeat(letter, 65536/len(letter))+"a", nil)
		refused(t, err, 413, "RequestBodyTooLarge")
		_, err = update(queue, *message.MessageID, *message.PopReceipt, strings.Repeat(letter, 65537), 1)
		refused(t, err, 413, "RequestBodyTooLarge")
	}
}

func TestPutAndGetSayWhatTheyDid(t *testing.T) {
	queue, _ := newQueue(t)
	made := putWith(t, queue, "a", &azqueue.EnqueueMessageOptions{TimeToLive: to.Ptr(int32(60)), VisibilityTimeout: to.Ptr(int32(5))})
	equal(t, made.ExpirationTime.Sub(*made.InsertionTime), time.Minute)
	equal(t, made.TimeNextVisible.Sub(*made.InsertionTime), 5*time.Second)
	equal(t, putWith(t, queue, "a", living(-1)).ExpirationTime.Year(), 9999)
	week := put(t, queue, "b")
	equal(t, week.ExpirationTime.Sub(*week.InsertionTime), 7*24*time.Hour)

	got := take(t, queue, 32, 60)[1]
	equal(t, []any{*got.MessageID, *got.InsertionTime, *got.ExpirationTime}, []any{*week.MessageID, *week.InsertionTime, *week.ExpirationTime})
	equal(t, []any{*got.DequeueCount, *got.MessageText}, []any{int64(1), "b"})
	if *got.PopReceipt == *week.PopReceipt {
		t.Fatal("the receipt did not change")
	}
}

func TestOrderPeekAndClear(t *testing.T) {
	queue, _ := newQueue(t)
	var names []string
	for number := range 40 {
		names = append(names, fmt.Sprintf("%02d", number))
		put(t, queue, names[number])
	}
	equal(t, peekedTexts(peek(t, queue, 32)), names[:32])
	equal(t, *peek(t, queue, 1)[0].DequeueCount, int64(0))
	equal(t, texts(take(t, queue, 32, 60)), names[:32])
	equal(t, texts(take(t, queue, 32, 60)), names[32:])
	equal(t, len(take(t, queue, 32, 60)), 0)
	_, err := queue.ClearMessages(ctx, nil)
	must(t, err)
	equal(t, count(t, queue), 0)
}

func TestHiddenItComesBackWithAnotherReceipt(t *testing.T) {
	t.Parallel()
	queue, _ := newQueue(t)
	put(t, queue, "a")
	first := take(t, queue, 1, 1)[0]
	second := soon(t, func() []*azqueue.DequeuedMessage { return take(t, queue, 1, 60) })[0]
	equal(t, []any{*second.MessageID, *second.DequeueCount}, []any{*first.MessageID, int64(2)})
	equal(t, len(take(t, queue, 1, 60)), 0)
	equal(t, len(peek(t, queue, 1)), 0)
	gone(t, remove(queue, first))
	must(t, remove(queue, second))
	gone(t, remove(queue, second))
}

func TestAnExpiredLeaseServesUntilSomebodyTakesTheMessage(t *testing.T) {
	t.Parallel()
	queue, _ := newQueue(t)
	put(t, queue, "a")
	message := take(t, queue, 1, 1)[0]
	soon(t, func() []*azqueue.PeekedMessage { return peek(t, queue, 1) })
	must(t, remove(queue, message))
	equal(t, count(t, queue), 0)
}

func TestDelayedAndExpired(t *testing.T) {
	t.Parallel()
	queue, _ := newQueue(t)
	later := putWith(t, queue, "later", seconds(2))
	short := putWith(t, queue, "short", living(1))
	time.Sleep(1100 * time.Millisecond)
	equal(t, peekedTexts(soon(t, func() []*azqueue.PeekedMessage { return peek(t, queue, 32) })), []string{"later"})
	if time.Now().Before(*later.TimeNextVisible) {
		t.Fatal("it came before its time")
	}
	_, err := queue.DeleteMessage(ctx, *short.MessageID, *short.PopReceipt, nil)
	gone(t, err)
}

func TestUpdate(t *testing.T) {
	queue, _ := newQueue(t)
	made := put(t, queue, "a")
	got := take(t, queue, 1, 60)[0]
	updated, err := update(queue, *got.MessageID, *got.PopReceipt, "b <é>", 0)
	must(t, err)
	gone(t, remove(queue, got))
	_, err = update(queue, *got.MessageID, *got.PopReceipt, "c", 0)
	gone(t, err)
	if updated.TimeNextVisible == nil || *updated.PopReceipt == *got.PopReceipt {
		t.Fatal("the answer lacks what changed")
	}
	again := take(t, queue, 1, 60)[0]
	equal(t, []any{*again.MessageText, *again.DequeueCount, *again.ExpirationTime}, []any{"b <é>", int64(2), *made.ExpirationTime})
}

func TestOutOfRange(t *testing.T) {
	queue, _ := newQueue(t)
	get := func(number, visibility int32) error {
		_, err := queue.DequeueMessages(ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: &number, VisibilityTimeout: &visibility})
		return err
	}
	for _, err := range []error{get(0, 1), get(33, 1), get(1, 0), get(1, 604801)} {
		refused(t, err, 400, queueerror.OutOfRangeQueryParameterValue)
	}
	_, err := queue.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: to.Ptr(int32(33))})
	refused(t, err, 400, queueerror.OutOfRangeQueryParameterValue)
	for _, o := range []*azqueue.EnqueueMessageOptions{living(0), living(-2), {TimeToLive: to.Ptr(int32(30)), VisibilityTimeout: to.Ptr(int32(30))}} {
		_, err := queue.EnqueueMessage(ctx, "a", o)
		refused(t, err, 400, queueerror.InvalidQueryParameterValue)
	}
}

var onMessages = map[string]func(*azqueue.QueueClient) error{
	"put":    func(q *azqueue.QueueClient) error { _, err := q.EnqueueMessage(ctx, "a", nil); return err },
	"get":    func(q *azqueue.QueueClient) error { _, err := q.DequeueMessage(ctx, nil); return err },
	"peek":   func(q *azqueue.QueueClient) error { _, err := q.PeekMessage(ctx, nil); return err },
	"clear":  func(q *azqueue.QueueClient) error { _, err := q.ClearMessages(ctx, nil); return err },
	"update": func(q *azqueue.QueueClient) error { _, err := update(q, someID, someReceipt, "a", 1); return err },
	"delete": func(q *azqueue.QueueClient) error {
		_, err := q.DeleteMessage(ctx, someID, someReceipt, nil)
		return err
	},
}

func TestMissing(t *testing.T) {
	for name, act := range onMessages {
		t.Run(name, func(t *testing.T) { refused(t, act(missingQueue(t)), 404, queueerror.QueueNotFound) })
	}
	queue, _ := newQueue(t)
	gone(t, onMessages["update"](queue))
	gone(t, onMessages["delete"](queue))
	_, err := queue.DeleteMessage(ctx, someID, "invalid", nil)
	refused(t, err, 400, queueerror.InvalidQueryParameterValue)
	_, err = update(queue, someID, "invalid", "a", 1)
	refused(t, err, 400, queueerror.InvalidQueryParameterValue)
}

func TestConsumersBesideEachOther(t *testing.T) {
	queue, _ := newQueue(t)
	var names []string
	for number := range 100 {
		names = append(names, fmt.Sprintf("%02d", number))
		put(t, queue, names[number])
	}
	var lock sync.Mutex
	var taken []string
	var consumers sync.WaitGroup
	for range 8 {
		consumers.Add(1)
		go func() {
			defer consumers.Done()
			for {
				page, err := queue.DequeueMessages(ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(7)), VisibilityTimeout: to.Ptr(int32(300))})
				if err != nil || len(page.Messages) == 0 {
					return
				}
				for _, message := range page.Messages {
					if remove(queue, message) == nil {
						lock.Lock()
						taken = append(taken, *message.MessageText)
						lock.Unlock()
					}
				}
			}
		}()
	}
	consumers.Wait()
	slices.Sort(taken)
	equal(t, taken, names)
	equal(t, count(t, queue), 0)
}

// TestPollLoop is that of Azure Functions: what fails five times goes to the queue of poison messages.
func TestPollLoop(t *testing.T) {
	queue, name := newQueue(t)
	poison := newService(t).NewQueueClient(name + "-poison")
	put(t, queue, "bad")
	put(t, queue, "good")
	done := []string{}
	for page := take(t, queue, 16, 600); len(page) > 0; page = take(t, queue, 16, 600) {
		for _, message := range page {
			// This SDK cannot update without a text.
			renewed, err := update(queue, *message.MessageID, *message.PopReceipt, *message.MessageText, 600)
			must(t, err)
			switch {
			case *message.MessageText == "good":
				done = append(done, "good")
			case *message.DequeueCount < 5:
				_, err = update(queue, *message.MessageID, *renewed.PopReceipt, *message.MessageText, 0)
				must(t, err)
				continue
			default:
				_, err = poison.EnqueueMessage(ctx, *message.MessageText, nil)
				refused(t, err, 404, queueerror.QueueNotFound)
				_, err = poison.Create(ctx, nil)
				must(t, err)
				put(t, poison, *message.MessageText)
			}
			_, err = queue.DeleteMessage(ctx, *message.MessageID, *renewed.PopReceipt, nil)
			must(t, err)
		}
	}
	equal(t, done, []string{"good"})
	equal(t, count(t, queue), 0)
	equal(t, peekedTexts(peek(t, poison, 32)), []string{"bad"})
	_, err := poison.Delete(ctx, nil)
	must(t, err)
}
