package conformance

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// twiceWritten gives an entity with A = 2, its present etag and the one before it.
func twiceWritten(t *testing.T, table *aztables.Client) (partition string, current, stale azcore.ETag) {
	t.Helper()
	partition = fresh()
	stale = insert(t, table, partition, "r", props{"A": 1})
	answer, err := table.UpsertEntity(ctx, entity(partition, "r", props{"A": 2}), nil)
	must(t, err)
	return partition, answer.ETag, stale
}

func TestETagIsTheSameEverywhere(t *testing.T) {
	table, _ := newTable(t)
	p, current, stale := twiceWritten(t, table)
	answer, err := table.GetEntity(ctx, p, "r", nil)
	must(t, err)
	found := decode(t, answer.Value)
	equal(t, answer.ETag, current)
	equal(t, found["odata.etag"], any(string(current)))
	equal(t, inPartition(t, table, p)[0]["odata.etag"], any(string(current)))
	equal(t, string(current), `W/"datetime'`+strings.ReplaceAll(found["Timestamp"].(string), ":", "%3A")+`'"`)
	equal(t, stale == current, false)
}

func TestConditionalUpdate(t *testing.T) {
	table, _ := newTable(t)
	for _, mode := range []aztables.UpdateMode{aztables.UpdateModeMerge, aztables.UpdateModeReplace} {
		t.Run(string(mode), func(t *testing.T) {
			p, current, stale := twiceWritten(t, table)
			update := func(row string, etag azcore.ETag) error {
				options := aztables.UpdateEntityOptions{UpdateMode: mode, IfMatch: &etag}
				_, err := table.UpdateEntity(ctx, entity(p, row, props{"A": 3}), &options)
				return err
			}
			refused(t, update("r", stale), 412, aztables.UpdateConditionNotSatisfied)
			equal(t, get(t, table, p, "r")["A"], any(2.0))
			must(t, update("r", current))
			equal(t, get(t, table, p, "r")["A"], any(3.0))
			refused(t, update("missing", current), 404, aztables.ResourceNotFound)
			refused(t, update("missing", azcore.ETagAny), 404, aztables.ResourceNotFound)
		})
	}
}

func TestConditionalDelete(t *testing.T) {
	table, _ := newTable(t)
	p, current, stale := twiceWritten(t, table)
	_, err := table.DeleteEntity(ctx, p, "r", &aztables.DeleteEntityOptions{IfMatch: &stale})
	refused(t, err, 412, aztables.UpdateConditionNotSatisfied)
	_, err = table.DeleteEntity(ctx, p, "r", &aztables.DeleteEntityOptions{IfMatch: &current})
	must(t, err)
	_, err = table.DeleteEntity(ctx, p, "r", &aztables.DeleteEntityOptions{IfMatch: to.Ptr(current)})
	refused(t, err, 404, aztables.ResourceNotFound)
}
