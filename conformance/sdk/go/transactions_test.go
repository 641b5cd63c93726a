package conformance

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func action(kind aztables.TransactionType, partition, row string, more props) aztables.TransactionAction {
	a := aztables.TransactionAction{ActionType: kind, Entity: entity(partition, row, more)}
	if kind == aztables.TransactionTypeUpdateMerge || kind == aztables.TransactionTypeUpdateReplace {
		any := azcore.ETagAny // without it this SDK's updates are upserts
		a.IfMatch = &any
	}
	return a
}

// failed demands a transaction refused as a whole. The SDK keeps the answer's text, which has code and index.
func failed(t *testing.T, err error, code aztables.TableErrorCode, message string) {
	t.Helper()
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		t.Fatalf("expected %s, got %v", code, err)
	}
	body, err := io.ReadAll(answer.RawResponse.Body)
	must(t, err)
	for _, part := range []string{fmt.Sprintf(`"code":"%s"`, code), fmt.Sprintf(`"value":"%s`, message)} {
		if !strings.Contains(string(body), part) {
			t.Fatalf("expected %s in\n%s", part, body)
		}
	}
}

func TestHundredMixedOperations(t *testing.T) {
	table, _ := newTable(t)
	name := func(i int) string { return fmt.Sprintf("r%03d", i) }
	var before, mixed []aztables.TransactionAction
	for i := range 80 {
		before = append(before, action(aztables.TransactionTypeAdd, "p", name(i), props{"Before": 1}))
	}
	_, err := table.SubmitTransaction(ctx, before, nil)
	must(t, err)

	type share struct {
		upTo int
		kind aztables.TransactionType
	}
	shares := []share{
		{20, aztables.TransactionTypeDelete},
		{35, aztables.TransactionTypeUpdateReplace},
		{50, aztables.TransactionTypeUpdateMerge},
		{65, aztables.TransactionTypeInsertReplace},
		{90, aztables.TransactionTypeInsertMerge},
		{100, aztables.TransactionTypeAdd},
	}
	var expected []props
	for i := range 100 {
		kind := shares[slices.IndexFunc(shares, func(s share) bool { return i < s.upTo })].kind
		mixed = append(mixed, action(kind, "p", name(i), props{"After": 1}))
		merged := kind == aztables.TransactionTypeUpdateMerge || kind == aztables.TransactionTypeInsertMerge && i < 80
		if merged {
			expected = append(expected, props{"Before": 1.0, "After": 1.0})
		} else if kind != aztables.TransactionTypeDelete {
			expected = append(expected, props{"After": 1.0})
		}
	}
	_, err = table.SubmitTransaction(ctx, mixed, nil)
	must(t, err)

	var found []props
	for _, e := range inPartition(t, table, "p") {
		found = append(found, custom(e))
	}
	equal(t, found, expected)
}

func TestOneFailureUndoesAll(t *testing.T) {
	table, _ := newTable(t)
	stale := azcore.ETag("W/\"datetime'2001-01-01T00%3A00%3A00Z'\"")
	conditional := func(p string) aztables.TransactionAction {
		a := action(aztables.TransactionTypeUpdateMerge, p, "existing", nil)
		a.IfMatch = &stale
		return a
	}
	for _, c := range []struct {
		code    aztables.TableErrorCode
		failing func(p string) aztables.TransactionAction
	}{
		{aztables.EntityAlreadyExists, func(p string) aztables.TransactionAction {
			return action(aztables.TransactionTypeAdd, p, "existing", nil)
		}},
		{aztables.ResourceNotFound, func(p string) aztables.TransactionAction {
			return action(aztables.TransactionTypeUpdateReplace, p, "missing", nil)
		}},
		{aztables.UpdateConditionNotSatisfied, conditional},
		{aztables.PropertyValueTooLarge, func(p string) aztables.TransactionAction {
			return action(aztables.TransactionTypeInsertMerge, p, "missing", props{"Text": strings.Repeat("x", 32769)})
		}},
	} {
		for _, index := range []int{0, 2, 4} {
			t.Run(fmt.Sprintf("%s at %d", c.code, index), func(t *testing.T) {
				p := fresh()
				insert(t, table, p, "existing", nil)
				var actions []aztables.TransactionAction
				for i := range 4 {
					actions = append(actions, action(aztables.TransactionTypeAdd, p, fmt.Sprint("new", i), nil))
				}
				actions = slices.Insert(actions, index, c.failing(p))
				_, err := table.SubmitTransaction(ctx, actions, nil)
				failed(t, err, c.code, fmt.Sprintf("%d:", index))
				equal(t, rowKeys(inPartition(t, table, p)), []string{"existing"})
			})
		}
	}
}

func TestTransactionRules(t *testing.T) {
	table, _ := newTable(t)
	upsert := func(p, r string) aztables.TransactionAction {
		return action(aztables.TransactionTypeInsertMerge, p, r, nil)
	}
	update := action(aztables.TransactionTypeUpdateMerge, "p", "a", nil)
	type actions = []aztables.TransactionAction
	var tooMany actions
	for i := range 101 {
		tooMany = append(tooMany, upsert("p", fmt.Sprint("r", i)))
	}
	for _, c := range []struct {
		name    string
		actions actions
		code    aztables.TableErrorCode
		message string
	}{
		{"a row twice", actions{upsert("p", "a"), upsert("p", "b"), upsert("p", "a")}, aztables.InvalidDuplicateRow, "2:"},
		{"two partitions", actions{upsert("p", "a"), upsert("q", "a")}, "CommandsInBatchActOnDifferentPartitions", "1:"},
		{"101 operations", tooMany, aztables.InvalidInput, "99:"},
		{"one operation, failing", actions{update}, aztables.ResourceNotFound, "The specified resource"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := table.SubmitTransaction(ctx, c.actions, nil)
			failed(t, err, c.code, c.message)
			equal(t, len(query(t, table, "true")), 0)
		})
	}
	t.Run("one operation", func(t *testing.T) {
		_, err := table.SubmitTransaction(ctx, actions{upsert("single", "a")}, nil)
		must(t, err)
		get(t, table, "single", "a")
	})
	t.Run("missing table", func(t *testing.T) {
		missing := newService(t).NewClient(fresh())
		_, err := missing.SubmitTransaction(ctx, actions{upsert("p", "a"), upsert("p", "b")}, nil)
		failed(t, err, aztables.TableNotFound, "0:")
	})
}
