package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func tables(t *testing.T, service *aztables.ServiceClient, options *aztables.ListTablesOptions) [][]string {
	t.Helper()
	var all [][]string
	pager := service.NewListTablesPager(options)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		must(t, err)
		names := []string{}
		for _, table := range page.Tables {
			names = append(names, *table.Name)
		}
		all = append(all, names)
	}
	return all
}

func TestCreateTable(t *testing.T) {
	service, name := newService(t), fresh()
	created, err := service.CreateTable(ctx, name, nil)
	must(t, err)
	equal(t, *created.TableName, name)
	equal(t, pages(t, service.NewClient(name).NewListEntitiesPager(nil)), [][]props{nil})

	_, err = service.CreateTable(ctx, name, nil)
	refused(t, err, 409, aztables.TableAlreadyExists)
	_, err = service.CreateTable(ctx, strings.ToUpper(name), nil)
	refused(t, err, 409, aztables.TableAlreadyExists)
	_, err = service.DeleteTable(ctx, name, nil)
	must(t, err)
}

func TestDeleteTable(t *testing.T) {
	table, name := newTable(t)
	insert(t, table, "p", "r", nil)
	_, err := table.Delete(ctx, nil)
	must(t, err)
	_, err = table.Delete(ctx, nil)
	refused(t, err, 404, aztables.ResourceNotFound)
	found := tables(t, newService(t), &aztables.ListTablesOptions{Filter: to.Ptr("TableName eq " + quoted(name))})
	equal(t, slices.Concat(found...), []string(nil))

	_, err = table.CreateTable(ctx, nil)
	must(t, err)
	equal(t, len(inPartition(t, table, "p")), 0)
}

func TestListTables(t *testing.T) {
	service, prefix := newService(t), fresh()
	names := []string{prefix + "a", prefix + "b", prefix + "c"}
	for _, name := range names {
		_, err := service.CreateTable(ctx, name, nil)
		must(t, err)
		t.Cleanup(func() { _, _ = service.DeleteTable(ctx, name, nil) })
	}
	byPrefix := to.Ptr("TableName ge " + quoted(prefix) + " and TableName lt " + quoted(prefix+"z"))

	t.Run("all, in name order", func(t *testing.T) {
		listed := slices.Concat(tables(t, service, nil)...)
		ours := slices.DeleteFunc(slices.Clone(listed), func(name string) bool { return !slices.Contains(names, name) })
		equal(t, ours, names)
		byLower := func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }
		equal(t, slices.IsSortedFunc(listed, byLower), true)
	})
	t.Run("by name", func(t *testing.T) {
		filter := to.Ptr("TableName eq " + quoted(names[1]))
		equal(t, tables(t, service, &aztables.ListTablesOptions{Filter: filter}), [][]string{names[1:2]})
	})
	t.Run("by prefix", func(t *testing.T) {
		equal(t, tables(t, service, &aztables.ListTablesOptions{Filter: byPrefix}), [][]string{names})
	})
	t.Run("pages of two resume in another client", func(t *testing.T) {
		options := aztables.ListTablesOptions{Filter: byPrefix, Top: to.Ptr(int32(2))}
		first, err := service.NewListTablesPager(&options).NextPage(ctx)
		must(t, err)
		equal(t, len(first.Tables), 2)
		options.NextTableName = first.NextTableName
		equal(t, tables(t, newService(t), &options), [][]string{names[2:]})
	})
}

func TestTableNamesIgnoreCase(t *testing.T) {
	table, name := newTable(t)
	insert(t, table, "p", "r", nil)
	equal(t, len(inPartition(t, newService(t).NewClient(strings.ToUpper(name)), "p")), 1)
}

func TestMalformedTableNames(t *testing.T) {
	for name, code := range map[string]aztables.TableErrorCode{
		"ab":                    aztables.OutOfRangeInput,
		strings.Repeat("a", 64): aztables.OutOfRangeInput,
		"1abc":                  "InvalidResourceName",
		"a-b":                   "InvalidResourceName",
		"tablé":                 "InvalidResourceName",
		"tables":                aztables.InvalidInput,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newService(t).CreateTable(ctx, name, nil)
			refused(t, err, 400, code)
		})
	}
}
