package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2/queueerror"
)

func TestAQueueIsMadeAndDeleted(t *testing.T) {
	queue := missingQueue(t)
	_, err := queue.GetProperties(ctx, nil)
	refused(t, err, 404, queueerror.QueueNotFound)
	_, err = queue.Create(ctx, nil)
	must(t, err)
	_, err = queue.GetProperties(ctx, nil)
	must(t, err)
	_, err = queue.Delete(ctx, nil)
	must(t, err)
	_, err = queue.Delete(ctx, nil)
	refused(t, err, 404, queueerror.QueueNotFound)
}

func TestTheSameQueueAgain(t *testing.T) {
	queue, _ := newQueue(t)
	_, err := queue.Create(ctx, nil)
	must(t, err)
	_, err = queue.Create(ctx, &azqueue.CreateOptions{Metadata: map[string]*string{"other": to.Ptr("1")}})
	refused(t, err, 409, queueerror.QueueAlreadyExists)
}

func TestMadeAgainAtOnceItIsEmpty(t *testing.T) {
	queue, _ := newQueue(t)
	put(t, queue, "before")
	_, err := queue.Delete(ctx, nil)
	must(t, err)
	_, err = queue.Create(ctx, nil)
	must(t, err)
	equal(t, count(t, queue), 0)
}

func TestNames(t *testing.T) {
	service := newService(t)
	for name, code := range map[string]queueerror.Code{
		"ab": "OutOfRangeInput", strings.Repeat("a", 64): "OutOfRangeInput",
		"a_b": queueerror.InvalidResourceName, "-ab": queueerror.InvalidResourceName, "a--b": queueerror.InvalidResourceName,
		"Abc": queueerror.InvalidResourceName, "queue-": queueerror.InvalidResourceName,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := service.CreateQueue(ctx, name, nil)
			refused(t, err, 400, code)
		})
	}
}

func TestMetadata(t *testing.T) {
	queue, _ := newQueue(t)
	set := func(metadata map[string]*string) error {
		_, err := queue.SetMetadata(ctx, &azqueue.SetMetadataOptions{Metadata: metadata})
		return err
	}
	found := func() map[string]string {
		answer, err := queue.GetProperties(ctx, nil)
		must(t, err)
		// Go's HTTP library writes names its own way, so the SDK's are not those that were set.
		all := map[string]string{}
		for name, value := range answer.Metadata {
			all[strings.ToLower(name)] = *value
		}
		return all
	}
	must(t, set(map[string]*string{"hello": to.Ptr("world"), "under_score": to.Ptr("va@lue")}))
	equal(t, found(), map[string]string{"hello": "world", "under_score": "va@lue"})
	must(t, set(map[string]*string{"b": to.Ptr("3")}))
	equal(t, found(), map[string]string{"b": "3"})
	must(t, set(nil))
	equal(t, found(), map[string]string{})
	refused(t, set(map[string]*string{"invalid-meta": to.Ptr("1")}), 400, queueerror.InvalidMetadata)
	refused(t, set(map[string]*string{"12345": to.Ptr("1")}), 400, queueerror.InvalidMetadata)
}

func TestTheCountHasInvisibleMessagesToo(t *testing.T) {
	queue, _ := newQueue(t)
	for _, text := range []string{"a", "b", "c"} {
		put(t, queue, text)
	}
	take(t, queue, 1, 60)
	putWith(t, queue, "later", &azqueue.EnqueueMessageOptions{VisibilityTimeout: to.Ptr(int32(60))})
	equal(t, count(t, queue), 4)
}

func TestPolicies(t *testing.T) {
	queue, _ := newQueue(t)
	start, expiry := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)
	set := func(policies ...*azqueue.SignedIdentifier) error {
		_, err := queue.SetAccessPolicy(ctx, &azqueue.SetAccessPolicyOptions{QueueACL: policies})
		return err
	}
	full := &azqueue.AccessPolicy{Permission: to.Ptr("raup"), Start: &start, Expiry: &expiry}
	must(t, set(&azqueue.SignedIdentifier{ID: to.Ptr("full"), AccessPolicy: full}, &azqueue.SignedIdentifier{ID: to.Ptr("bare")}))
	answer, err := queue.GetAccessPolicy(ctx, nil)
	must(t, err)
	equal(t, len(answer.SignedIdentifiers), 2)
	equal(t, answer.SignedIdentifiers[0].AccessPolicy, full)
	must(t, set())
	answer, err = queue.GetAccessPolicy(ctx, nil)
	must(t, err)
	equal(t, len(answer.SignedIdentifiers), 0)

	var six []*azqueue.SignedIdentifier
	for number := range 6 {
		six = append(six, &azqueue.SignedIdentifier{ID: to.Ptr(fmt.Sprint(number)), AccessPolicy: full})
	}
	refused(t, set(six...), 400, queueerror.InvalidXMLDocument)
	_, err = missingQueue(t).GetAccessPolicy(ctx, nil)
	refused(t, err, 404, queueerror.QueueNotFound)
}

func TestLists(t *testing.T) {
	service, prefix := newService(t), fresh()[:15]
	var names []string
	for number := range 7 {
		name := fmt.Sprintf("%s-%d", prefix, number)
		names = append(names, name)
		_, err := service.CreateQueue(ctx, name, &azqueue.CreateOptions{Metadata: map[string]*string{"n": to.Ptr(fmt.Sprint(number))}})
		must(t, err)
		t.Cleanup(func() { _, _ = service.DeleteQueue(ctx, name, nil) })
	}
	pages := func(o azqueue.ListQueuesOptions) (sizes []int, found []*azqueue.Queue) {
		for pager := service.NewListQueuesPager(&o); pager.More(); {
			page, err := pager.NextPage(ctx)
			must(t, err)
			sizes, found = append(sizes, len(page.Queues)), append(found, page.Queues...)
		}
		return sizes, found
	}
	namesOf := func(queues []*azqueue.Queue) []string {
		all := []string{}
		for _, queue := range queues {
			all = append(all, *queue.Name)
		}
		return all
	}
	for size, expected := range map[int32][]int{1: {1, 1, 1, 1, 1, 1, 1}, 3: {3, 3, 1}, 7: {7}, 8: {7}} {
		sizes, found := pages(azqueue.ListQueuesOptions{Prefix: &prefix, MaxResults: &size})
		equal(t, sizes, expected)
		equal(t, namesOf(found), names)
	}
	_, found := pages(azqueue.ListQueuesOptions{Prefix: &names[3]})
	equal(t, namesOf(found), names[3:4])
	_, found = pages(azqueue.ListQueuesOptions{Prefix: &prefix, Include: azqueue.ListQueuesInclude{Metadata: true}})
	equal(t, *found[5].Metadata["n"], "5")

	marker := "garbage"
	_, err := service.NewListQueuesPager(&azqueue.ListQueuesOptions{Marker: &marker}).NextPage(ctx)
	refused(t, err, 400, "OutOfRangeInput")
}

func TestServiceProperties(t *testing.T) {
	service := newService(t)
	retention := &azqueue.RetentionPolicy{Enabled: to.Ptr(true), Days: to.Ptr(int32(5))}
	metrics := &azqueue.Metrics{Version: to.Ptr("1.0"), Enabled: to.Ptr(true), IncludeAPIs: to.Ptr(true), RetentionPolicy: retention}
	rule := &azqueue.CORSRule{
		AllowedOrigins: to.Ptr("www.xyz.com,www.ab.com"), AllowedMethods: to.Ptr("GET,PUT"), AllowedHeaders: to.Ptr("x-ms-meta-data*"),
		ExposedHeaders: to.Ptr("*"), MaxAgeInSeconds: to.Ptr(int32(500)),
	}
	_, err := service.SetProperties(ctx, &azqueue.SetPropertiesOptions{MinuteMetrics: metrics, CORS: []*azqueue.CORSRule{rule}})
	must(t, err)
	found, err := service.GetServiceProperties(ctx, nil)
	must(t, err)
	equal(t, found.MinuteMetrics, metrics)
	equal(t, found.CORS, []*azqueue.CORSRule{rule})
	six := []*azqueue.CORSRule{rule, rule, rule, rule, rule, rule}
	_, err = service.SetProperties(ctx, &azqueue.SetPropertiesOptions{CORS: six})
	refused(t, err, 400, queueerror.InvalidXMLDocument)
	off := &azqueue.Metrics{Version: to.Ptr("1.0"), Enabled: to.Ptr(false), RetentionPolicy: &azqueue.RetentionPolicy{Enabled: to.Ptr(false)}}
	_, err = service.SetProperties(ctx, &azqueue.SetPropertiesOptions{MinuteMetrics: off, CORS: []*azqueue.CORSRule{}})
	must(t, err)
}

func TestStatisticsAndTheSecondary(t *testing.T) {
	second := serviceAt(t, endpoint()+"-secondary")
	answer, err := second.GetStatistics(ctx, nil)
	must(t, err)
	equal(t, *answer.GeoReplication.Status, azqueue.GeoReplicationStatusLive)
	queue, name := newQueue(t)
	put(t, queue, "a")
	equal(t, peekedTexts(peek(t, second.NewQueueClient(name), 32)), []string{"a"})
}

func TestConnectionStringAndWrongKey(t *testing.T) {
	_, name := newQueue(t)
	text := "DefaultEndpointsProtocol=http;AccountName=" + account + ";AccountKey=" + key + ";QueueEndpoint=" + endpoint() + ";"
	queue, err := azqueue.NewQueueClientFromConnectionString(text, name, options())
	must(t, err)
	equal(t, count(t, queue), 0)

	wrong, err := azqueue.NewSharedKeyCredential(account, strings.Repeat("A", 86)+"==")
	must(t, err)
	service, err := azqueue.NewServiceClientWithSharedKeyCredential(endpoint(), wrong, options())
	must(t, err)
	_, err = service.CreateQueue(ctx, fresh(), nil)
	refused(t, err, 403, queueerror.AuthenticationFailed)
}
