package conformance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func TestKeys(t *testing.T) {
	var keys struct{ Legal, Forbidden []string }
	cases(t, "keys.json", &keys)
	table, _ := newTable(t)

	for _, k := range keys.Legal {
		t.Run(fmt.Sprintf("%+q", k), func(t *testing.T) {
			insert(t, table, k, k, props{"Turn": "insert"})
			listed := query(t, table, "PartitionKey eq "+quoted(k)+" and RowKey eq "+quoted(k))
			equal(t, rowKeys(listed), []string{k})
			if k == "" {
				return // the SDK puts no empty key in a URL
			}
			found := get(t, table, k, k)
			equal(t, []any{found["PartitionKey"], found["RowKey"], found["Turn"]}, []any{k, k, "insert"})

			_, err := table.UpsertEntity(ctx, entity(k, k, props{"Turn": "upsert"}), nil)
			must(t, err)
			equal(t, get(t, table, k, k)["Turn"], any("upsert"))

			_, err = table.DeleteEntity(ctx, k, k, nil)
			must(t, err)
			_, err = table.GetEntity(ctx, k, k, nil)
			refused(t, err, 404, aztables.ResourceNotFound)
		})
	}
	for _, k := range keys.Forbidden {
		t.Run(fmt.Sprintf("refused %+q", k), func(t *testing.T) {
			for _, e := range [][]byte{entity(k, "r", nil), entity("p", k, nil)} {
				_, err := table.AddEntity(ctx, e, nil)
				refused(t, err, 400, aztables.OutOfRangeInput)
			}
		})
	}
}

func TestKeysSortByCodeUnit(t *testing.T) {
	table, _ := newTable(t)
	keys := []string{"", " ", "'", "A", "Z", "a", "aa", "b", "é", "日", "😀", "ﬁ"} // U+1F600 is D83D DE00, below U+FB01
	for _, k := range slices.Backward(keys) {
		insert(t, table, "p", k, nil)
	}
	equal(t, rowKeys(inPartition(t, table, "p")), keys)
}
