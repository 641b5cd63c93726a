package conformance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func keysOf(entities []props) []string {
	var keys []string
	for _, e := range entities {
		keys = append(keys, fmt.Sprint(e["PartitionKey"], "/", e["RowKey"]))
	}
	return keys
}

func sizes(all [][]props) []int {
	var sizes []int
	for _, page := range all {
		sizes = append(sizes, len(page))
	}
	return sizes
}

func TestPaging(t *testing.T) {
	table, name := newTable(t)
	var all []string
	for p := range 25 {
		var actions []aztables.TransactionAction
		for r := range 100 {
			pk, rk := fmt.Sprintf("p%02d", p), fmt.Sprintf("r%02d", r)
			actions = append(actions, aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: entity(pk, rk, nil)})
			all = append(all, pk+"/"+rk)
		}
		_, err := table.SubmitTransaction(ctx, actions, nil)
		must(t, err)
	}
	by := func(size int32) *aztables.ListEntitiesOptions { return &aztables.ListEntitiesOptions{Top: &size} }

	t.Run("a full page is a thousand", func(t *testing.T) {
		found := pages(t, table.NewListEntitiesPager(nil))
		equal(t, sizes(found), []int{1000, 1000, 500})
		equal(t, keysOf(slices.Concat(found...)), all)
	})
	t.Run("pages of seven lose and repeat nothing", func(t *testing.T) {
		found := pages(t, table.NewListEntitiesPager(by(7)))
		equal(t, slices.Max(sizes(found)), 7)
		equal(t, keysOf(slices.Concat(found...)), all)
	})
	t.Run("no page follows an exact end", func(t *testing.T) {
		equal(t, sizes(pages(t, table.NewListEntitiesPager(by(500)))), []int{500, 500, 500, 500, 500})
	})
	t.Run("a token resumes in another client", func(t *testing.T) {
		options := by(150)
		first, err := table.NewListEntitiesPager(options).NextPage(ctx)
		must(t, err)
		equal(t, len(first.Entities), 150) // page size is $top
		options.NextPartitionKey, options.NextRowKey = first.NextPartitionKey, first.NextRowKey
		rest := pages(t, newService(t).NewClient(name).NewListEntitiesPager(options))
		equal(t, keysOf(slices.Concat(rest...)), all[150:])
	})
	t.Run("a token keeps to its filter", func(t *testing.T) {
		options := by(7)
		options.Filter = to.Ptr("PartitionKey ge 'p03' and PartitionKey lt 'p06' and RowKey ge 'r90'")
		found := keysOf(slices.Concat(pages(t, table.NewListEntitiesPager(options))...))
		equal(t, found, slices.Concat(all[390:400], all[490:500], all[590:600]))
	})
}

func TestTokensCarryAnyKey(t *testing.T) {
	for _, k := range []string{"", "o'clock", "a+b&c", "日本語", "😀", "100%"} {
		t.Run(k, func(t *testing.T) {
			table, _ := newTable(t)
			insert(t, table, k, "1", nil)
			insert(t, table, k, "2", nil)
			insert(t, table, k+"x", k, nil)
			found := pages(t, table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Top: to.Ptr(int32(1))}))
			equal(t, keysOf(slices.Concat(found...)), []string{k + "/1", k + "/2", k + "x/" + k})
		})
	}
}
