package conformance

import (
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2/queueerror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2/sas"
)

func hours(count float64) time.Time {
	return time.Now().UTC().Add(time.Duration(count * float64(time.Hour)))
}

func withToken(t *testing.T, name, token string) *azqueue.QueueClient {
	t.Helper()
	queue, err := azqueue.NewQueueClientWithNoCredential(endpoint()+"/"+name+"?"+token, options())
	must(t, err)
	return queue
}

func token(t *testing.T, name string, values sas.QueueSignatureValues) string {
	t.Helper()
	values.QueueName = name
	signed, err := values.SignWithSharedKey(credential(t))
	must(t, err)
	return signed.Encode()
}

func holder(t *testing.T, name, letters string) *azqueue.QueueClient {
	t.Helper()
	return withToken(t, name, token(t, name, sas.QueueSignatureValues{Permissions: letters, ExpiryTime: hours(1)}))
}

func accountToken(t *testing.T, types, letters string) string {
	t.Helper()
	values := sas.AccountSignatureValues{Permissions: letters, ExpiryTime: hours(1), ResourceTypes: types}
	signed, err := values.SignWithSharedKey(credential(t))
	must(t, err)
	return signed.Encode()
}

func serviceWith(t *testing.T, token string) *azqueue.ServiceClient {
	t.Helper()
	service, err := azqueue.NewServiceClientWithNoCredential(endpoint()+"?"+token, options())
	must(t, err)
	return service
}

func without(letters, given string) string {
	return strings.Map(func(letter rune) rune {
		if strings.ContainsRune(given, letter) {
			return -1
		}
		return letter
	}, letters)
}

func look(q *azqueue.QueueClient) error { _, err := q.PeekMessage(ctx, nil); return err }

type act = func(*azqueue.QueueClient, *azqueue.EnqueuedMessage) error

var needs = map[string]struct {
	letter string
	act    act
}{
	"peek": {"r", func(q *azqueue.QueueClient, _ *azqueue.EnqueuedMessage) error { return look(q) }},
	"metadata": {"r", func(q *azqueue.QueueClient, _ *azqueue.EnqueuedMessage) error {
		_, err := q.GetProperties(ctx, nil)
		return err
	}},
	"put": {"a", func(q *azqueue.QueueClient, _ *azqueue.EnqueuedMessage) error { return onMessages["put"](q) }},
	"get": {"p", func(q *azqueue.QueueClient, _ *azqueue.EnqueuedMessage) error { return onMessages["get"](q) }},
	"update": {"u", func(q *azqueue.QueueClient, m *azqueue.EnqueuedMessage) error {
		_, err := update(q, *m.MessageID, *m.PopReceipt, "b", 1)
		return err
	}},
	"delete": {"p", func(q *azqueue.QueueClient, m *azqueue.EnqueuedMessage) error {
		_, err := q.DeleteMessage(ctx, *m.MessageID, *m.PopReceipt, nil)
		return err
	}},
}

func TestPermissions(t *testing.T) {
	for name, need := range needs {
		t.Run(name, func(t *testing.T) {
			queue, queueName := newQueue(t)
			message := put(t, queue, "a")
			err := need.act(holder(t, queueName, without("raup", need.letter)), message)
			refused(t, err, 403, queueerror.AuthorizationPermissionMismatch)
			must(t, need.act(holder(t, queueName, need.letter), message))
		})
	}
}

func TestWhatNoQueueTokenPermits(t *testing.T) {
	_, name := newQueue(t)
	queue := holder(t, name, "raup")
	for what, act := range map[string]func() error{
		"create":       func() error { _, err := queue.Create(ctx, nil); return err },
		"delete":       func() error { _, err := queue.Delete(ctx, nil); return err },
		"clear":        func() error { return onMessages["clear"](queue) },
		"set metadata": func() error { _, err := queue.SetMetadata(ctx, nil); return err },
		"get policies": func() error { _, err := queue.GetAccessPolicy(ctx, nil); return err },
		"set policies": func() error { _, err := queue.SetAccessPolicy(ctx, nil); return err },
	} {
		t.Run(what, func(t *testing.T) { refused(t, act(), 403, queueerror.AuthorizationFailure) })
	}
}

func TestTokenTimesAddressesAndProtocols(t *testing.T) {
	_, name := newQueue(t)
	with := func(values sas.QueueSignatureValues) error {
		values.Permissions = "r"
		if values.ExpiryTime.IsZero() {
			values.ExpiryTime = hours(1)
		}
		return look(withToken(t, name, token(t, name, values)))
	}
	must(t, with(sas.QueueSignatureValues{StartTime: hours(-1)}))
	refused(t, with(sas.QueueSignatureValues{StartTime: hours(0.5)}), 403, queueerror.AuthenticationFailed)
	refused(t, with(sas.QueueSignatureValues{ExpiryTime: hours(-0.01)}), 403, queueerror.AuthenticationFailed)
	must(t, with(sas.QueueSignatureValues{IPRange: sas.IPRange{Start: net.IPv4zero, End: net.IPv4bcast}, Protocol: sas.ProtocolHTTPSandHTTP}))
	elsewhere := sas.QueueSignatureValues{IPRange: sas.IPRange{Start: net.IPv4(203, 0, 113, 1)}}
	refused(t, with(elsewhere), 403, queueerror.AuthorizationSourceIPMismatch)
	if strings.HasPrefix(endpoint(), "http:") {
		refused(t, with(sas.QueueSignatureValues{Protocol: sas.ProtocolHTTPS}), 403, queueerror.AuthorizationProtocolMismatch)
	}
}

func TestTamperedToken(t *testing.T) {
	_, name := newQueue(t)
	for parameter, value := range map[string]string{"sp": "raup", "se": "2099-01-01", "st": "2020-01-01", "si": "policy", "sig": "AAAA"} {
		values, err := url.ParseQuery(token(t, name, sas.QueueSignatureValues{Permissions: "r", ExpiryTime: hours(1)}))
		must(t, err)
		values.Set(parameter, value)
		refused(t, look(withToken(t, name, values.Encode())), 403, queueerror.AuthenticationFailed)
	}
	_, other := newQueue(t)
	elsewhere := withToken(t, other, token(t, name, sas.QueueSignatureValues{Permissions: "r", ExpiryTime: hours(1)}))
	refused(t, look(elsewhere), 403, queueerror.AuthenticationFailed)
}

func TestStoredPolicy(t *testing.T) {
	queue, name := newQueue(t)
	set := func(id, letters string, expiry time.Time) {
		policy := &azqueue.AccessPolicy{Permission: &letters, Expiry: &expiry}
		_, err := queue.SetAccessPolicy(ctx, &azqueue.SetAccessPolicyOptions{QueueACL: []*azqueue.SignedIdentifier{{ID: &id, AccessPolicy: policy}}})
		must(t, err)
	}
	client := withToken(t, name, token(t, name, sas.QueueSignatureValues{Identifier: "worker"}))
	refused(t, look(client), 403, queueerror.AuthenticationFailed)
	for _, revoke := range []func(){
		func() { set("other", "r", hours(1)) },
		func() { set("worker", "r", hours(-1)) },
		func() { _, err := queue.SetAccessPolicy(ctx, nil); must(t, err) },
	} {
		set("worker", "r", hours(1))
		must(t, look(client))
		refused(t, onMessages["put"](client), 403, queueerror.AuthorizationPermissionMismatch)
		revoke()
		refused(t, look(client), 403, queueerror.AuthenticationFailed)
	}
}

func TestAccountTokens(t *testing.T) {
	type onAccount struct {
		kind, letter string
		act          func(*azqueue.ServiceClient, string, *azqueue.EnqueuedMessage) error
	}
	all := map[string]onAccount{
		"list": {"s", "l", func(s *azqueue.ServiceClient, _ string, _ *azqueue.EnqueuedMessage) error {
			_, err := s.NewListQueuesPager(nil).NextPage(ctx)
			return err
		}},
		"properties": {"s", "r", func(s *azqueue.ServiceClient, _ string, _ *azqueue.EnqueuedMessage) error {
			_, err := s.GetServiceProperties(ctx, nil)
			return err
		}},
		"delete queue": {"c", "d", func(s *azqueue.ServiceClient, name string, _ *azqueue.EnqueuedMessage) error {
			_, err := s.DeleteQueue(ctx, name, nil)
			return err
		}},
		"set metadata": {"c", "w", func(s *azqueue.ServiceClient, name string, _ *azqueue.EnqueuedMessage) error {
			o := &azqueue.SetMetadataOptions{Metadata: map[string]*string{"a": to.Ptr("1")}}
			_, err := s.NewQueueClient(name).SetMetadata(ctx, o)
			return err
		}},
		"clear": {"o", "d", func(s *azqueue.ServiceClient, name string, _ *azqueue.EnqueuedMessage) error {
			return onMessages["clear"](s.NewQueueClient(name))
		}},
	}
	for name, need := range needs {
		kind := "o"
		if name == "metadata" {
			kind = "c"
		}
		all[name] = onAccount{kind, need.letter, func(s *azqueue.ServiceClient, queue string, m *azqueue.EnqueuedMessage) error {
			return need.act(s.NewQueueClient(queue), m)
		}}
	}
	for name, one := range all {
		t.Run(name, func(t *testing.T) {
			queue, queueName := newQueue(t)
			message := put(t, queue, "a")
			with := func(types, letters string) error {
				return one.act(serviceWith(t, accountToken(t, types, letters)), queueName, message)
			}
			refused(t, with(without("sco", one.kind), "rwdlacup"), 403, queueerror.AuthorizationResourceTypeMismatch)
			refused(t, with("sco", without("rwdlacup", one.letter)), 403, queueerror.AuthorizationPermissionMismatch)
			must(t, with(one.kind, one.letter))
		})
	}
	for _, letter := range []string{"c", "w"} {
		name := fresh()
		_, err := serviceWith(t, accountToken(t, "c", letter)).CreateQueue(ctx, name, nil)
		must(t, err)
		_, err = serviceWith(t, accountToken(t, "c", "d")).DeleteQueue(ctx, name, nil)
		must(t, err)
	}
}
