// Package conformance tests a Table service through the unmodified Go SDK.
//
// This file has what every test needs: clients of the server under test, fresh tables, and what the server said.
package conformance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

const (
	account = "devstoreaccount1"
	key     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

var ctx = context.Background()

type props = map[string]any

func endpoint() string {
	if given := os.Getenv("PARTITA_ENDPOINT"); given != "" {
		return strings.TrimSuffix(given, "/")
	}
	return "http://127.0.0.1:10002/" + account
}

func serviceAt(t *testing.T, url, key string) *aztables.ServiceClient {
	t.Helper()
	credential, err := aztables.NewSharedKeyCredential(account, key)
	must(t, err)
	// A retry would hide a wrong answer.
	options := aztables.ClientOptions{ClientOptions: policy.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
	service, err := aztables.NewServiceClientWithSharedKey(url, credential, &options)
	must(t, err)
	return service
}

func newService(t *testing.T) *aztables.ServiceClient {
	t.Helper()
	return serviceAt(t, endpoint(), key)
}

func fresh() string {
	random := make([]byte, 10)
	_, _ = rand.Read(random) // documented never to fail
	return "go" + hex.EncodeToString(random)
}

// newTable makes a table that lives as long as its test.
func newTable(t *testing.T) (*aztables.Client, string) {
	t.Helper()
	service, name := newService(t), fresh()
	_, err := service.CreateTable(ctx, name, nil)
	must(t, err)
	t.Cleanup(func() { _, _ = service.DeleteTable(ctx, name, nil) })
	return service.NewClient(name), name
}

// entity is the JSON of an entity. EDMEntity would double the quotes in keys, in the body as well as in the URL.
func entity(partition, row string, more props) []byte {
	all := props{"PartitionKey": partition, "RowKey": row}
	maps.Copy(all, more)
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return text
}

func insert(t *testing.T, table *aztables.Client, partition, row string, more props) azcore.ETag {
	t.Helper()
	answer, err := table.AddEntity(ctx, entity(partition, row, more), nil)
	must(t, err)
	return answer.ETag
}

func get(t *testing.T, table *aztables.Client, partition, row string) props {
	t.Helper()
	answer, err := table.GetEntity(ctx, partition, row, nil)
	must(t, err)
	return decode(t, answer.Value)
}

func decode(t *testing.T, text []byte) props {
	t.Helper()
	var found props
	must(t, json.Unmarshal(text, &found))
	return found
}

// custom leaves the properties the caller gave, without what the service adds.
func custom(found props) props {
	rest := props{}
	for name, value := range found {
		system := name == "PartitionKey" || name == "RowKey" || name == "Timestamp"
		if !system && !strings.HasPrefix(name, "odata.") {
			rest[name] = value
		}
	}
	return rest
}

func pages(t *testing.T, pager *runtime.Pager[aztables.ListEntitiesResponse]) [][]props {
	t.Helper()
	var all [][]props
	for pager.More() {
		page, err := pager.NextPage(ctx)
		must(t, err)
		var entities []props
		for _, text := range page.Entities {
			entities = append(entities, decode(t, text))
		}
		all = append(all, entities)
	}
	return all
}

func query(t *testing.T, table *aztables.Client, filter string) []props {
	t.Helper()
	options := aztables.ListEntitiesOptions{Filter: &filter}
	var all []props
	for _, page := range pages(t, table.NewListEntitiesPager(&options)) {
		all = append(all, page...)
	}
	return all
}

func inPartition(t *testing.T, table *aztables.Client, partition string) []props {
	t.Helper()
	return query(t, table, "PartitionKey eq "+quoted(partition))
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func rowKeys(entities []props) []string {
	keys := []string{}
	for _, e := range entities {
		keys = append(keys, e["RowKey"].(string))
	}
	return keys
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

// refused demands the SDK's error with this status and the service's code ("" for any).
func refused(t *testing.T, err error, status int, code aztables.TableErrorCode) {
	t.Helper()
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		t.Fatalf("expected %d %s, got %v", status, code, err)
	}
	if answer.StatusCode != status || (code != "" && answer.ErrorCode != string(code)) {
		t.Fatalf("expected %d %s, got %d %s", status, code, answer.StatusCode, answer.ErrorCode)
	}
}

func cases(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile("../cases/" + file)
	must(t, err)
	must(t, json.Unmarshal(text, into))
}
