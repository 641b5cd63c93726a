package conformance

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// Every type as the SDK's EDMEntity writes and reads it.
func TestValuesRoundTrip(t *testing.T) {
	table, _ := newTable(t)
	date := func(nanosecond int) aztables.EDMDateTime {
		return aztables.EDMDateTime(time.Date(2021, 3, 4, 5, 6, 7, nanosecond, time.UTC))
	}
	everyByte := make(aztables.EDMBinary, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	for name, value := range map[string]any{
		"string":               "text",
		"empty string":         "",
		"blank string":         "  \t\r\n ",
		"quotes":               "'\"\\/<&>",
		"accents":              "Grüße, Ελλάδα, 日本語",
		"emoji":                "😀👩‍👩‍👧",
		"string like a date":   "2021-01-01T00:00:00Z",
		"string like a number": "42",
		"true":                 true,
		"false":                false,
		"int32":                int32(42),
		"int32 minimum":        int32(math.MinInt32),
		"int32 maximum":        int32(math.MaxInt32),
		"int64":                aztables.EDMInt64(42),
		"int64 minimum":        aztables.EDMInt64(math.MinInt64),
		"int64 maximum":        aztables.EDMInt64(math.MaxInt64),
		"double":               3.25,
		"huge double":          1e300,
		"tiny double":          math.SmallestNonzeroFloat64,
		"greatest double":      math.MaxFloat64,
		"long double":          0.30000000000000004,
		"date":                 date(0),
		"date with fraction":   date(120_000_000),
		"date of 100 ns":       date(123_456_700),
		"earliest date":        aztables.EDMDateTime(time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)),
		"latest date":          aztables.EDMDateTime(time.Date(9999, 12, 31, 23, 59, 59, 999_999_900, time.UTC)),
		"guid":                 aztables.EDMGUID("0f8fad5b-d9cb-469f-a165-70867728950e"),
		"binary":               everyByte,
		"empty binary":         aztables.EDMBinary{},
	} {
		t.Run(name, func(t *testing.T) {
			written := aztables.EDMEntity{
				Entity:     aztables.Entity{PartitionKey: fresh(), RowKey: "r"},
				Properties: props{"Value": value},
			}
			text, err := json.Marshal(written)
			must(t, err)
			_, err = table.AddEntity(ctx, text, nil)
			must(t, err)

			answer, err := table.GetEntity(ctx, written.PartitionKey, "r", nil)
			must(t, err)
			var found aztables.EDMEntity
			must(t, json.Unmarshal(answer.Value, &found))
			equal(t, found.Properties, written.Properties)
			equal(t, found.ETag, string(answer.ETag))
		})
	}
}

// What EDMEntity cannot express, the caller annotates.
func TestAnnotatedDoubles(t *testing.T) {
	table, _ := newTable(t)
	for _, text := range []string{"NaN", "Infinity", "-Infinity"} {
		t.Run(text, func(t *testing.T) {
			p := fresh()
			insert(t, table, p, "r", props{"Value": text, "Value@odata.type": "Edm.Double"})
			found := get(t, table, p, "r")
			equal(t, found["Value"], any(text))
			equal(t, found["Value@odata.type"], any("Edm.Double"))
		})
	}
}

// Go reads 20.0 as 20, but a filter tells them apart: a Double literal does not find an Int32.
func TestWholeDoublesStayDoubles(t *testing.T) {
	table, _ := newTable(t)
	insert(t, table, "p", "double", props{"Value": 20, "Value@odata.type": "Edm.Double"})
	insert(t, table, "p", "int", props{"Value": 20})
	equal(t, rowKeys(query(t, table, "Value eq 20.0")), []string{"double"})
	equal(t, rowKeys(query(t, table, "Value eq 20")), []string{"double", "int"})
}

func TestNullIsNoProperty(t *testing.T) {
	table, _ := newTable(t)
	insert(t, table, "p", "r", props{"Kept": 1, "Gone": nil})
	equal(t, custom(get(t, table, "p", "r")), props{"Kept": 1.0})
}

func TestPropertyNames(t *testing.T) {
	table, _ := newTable(t)
	written := props{"name": 1.0, "Name": 2.0, "_x": 3.0, "Größe": 4.0, "名前": 5.0, "ETag": 6.0, "etag": 7.0, "id": 8.0}
	insert(t, table, "p", "r", written)
	equal(t, custom(get(t, table, "p", "r")), written)
}

func TestInsertExisting(t *testing.T) {
	table, _ := newTable(t)
	insert(t, table, "p", "r", props{"A": 1})
	_, err := table.AddEntity(ctx, entity("p", "r", props{"A": 2}), nil)
	refused(t, err, 409, aztables.EntityAlreadyExists)
	equal(t, custom(get(t, table, "p", "r")), props{"A": 1.0})
}

// How each write treats the entity {A: 1, B: 1}, and a missing one, when it sends {B: 2, C: 2, A: null}.
func TestWrites(t *testing.T) {
	table, _ := newTable(t)
	merged, replaced := props{"A": 1.0, "B": 2.0, "C": 2.0}, props{"B": 2.0, "C": 2.0}
	update := func(mode aztables.UpdateMode) func([]byte) error {
		return func(e []byte) error {
			_, err := table.UpdateEntity(ctx, e, &aztables.UpdateEntityOptions{UpdateMode: mode})
			return err
		}
	}
	upsert := func(mode aztables.UpdateMode) func([]byte) error {
		return func(e []byte) error {
			_, err := table.UpsertEntity(ctx, e, &aztables.UpsertEntityOptions{UpdateMode: mode})
			return err
		}
	}
	for _, c := range []struct {
		name     string
		write    func([]byte) error
		expected props
		creates  bool
	}{
		{"update merge", update(aztables.UpdateModeMerge), merged, false},
		{"update replace", update(aztables.UpdateModeReplace), replaced, false},
		{"upsert merge", upsert(aztables.UpdateModeMerge), merged, true},
		{"upsert replace", upsert(aztables.UpdateModeReplace), replaced, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, sent := fresh(), props{"A": nil, "B": 2, "C": 2}
			insert(t, table, p, "r", props{"A": 1, "B": 1})
			must(t, c.write(entity(p, "r", sent)))
			equal(t, custom(get(t, table, p, "r")), c.expected)

			err := c.write(entity(p, "missing", sent))
			if !c.creates {
				refused(t, err, 404, aztables.ResourceNotFound)
				return
			}
			must(t, err)
			equal(t, custom(get(t, table, p, "missing")), replaced)
		})
	}
}

func TestDeleteEntity(t *testing.T) {
	table, _ := newTable(t)
	insert(t, table, "p", "r", nil)
	_, err := table.DeleteEntity(ctx, "p", "r", nil)
	must(t, err)
	_, err = table.GetEntity(ctx, "p", "r", nil)
	refused(t, err, 404, aztables.ResourceNotFound)
	_, err = table.DeleteEntity(ctx, "p", "r", nil)
	refused(t, err, 404, aztables.ResourceNotFound)
}

func TestInsertAnswersWithTheEntity(t *testing.T) {
	table, _ := newTable(t)
	answer, err := table.AddEntity(ctx, entity("p", "r", props{"A": 1}), nil)
	must(t, err)
	equal(t, decode(t, answer.Value), get(t, table, "p", "r"))
}

func TestMetadataLevels(t *testing.T) {
	table, name := newTable(t)
	insert(t, table, "p", "o'clock", props{"A": "1", "A@odata.type": "Edm.Int64"})
	at := func(format aztables.MetadataFormat) props {
		answer, err := table.GetEntity(ctx, "p", "o'clock", &aztables.GetEntityOptions{Format: &format})
		must(t, err)
		return decode(t, answer.Value)
	}
	full := at(aztables.MetadataFormatFull)
	link := name + "(PartitionKey='p',RowKey='o''clock')"
	equal(t, full["odata.editLink"], any(link))
	equal(t, full["odata.id"], any(endpoint()+"/"+link))
	equal(t, full["odata.type"], any(account+"."+name))
	equal(t, full["Timestamp@odata.type"], any("Edm.DateTime"))

	none := at(aztables.MetadataFormatNone)
	equal(t, none, props{"PartitionKey": "p", "RowKey": "o'clock", "Timestamp": full["Timestamp"], "A": "1"})

	minimal := at(aztables.MetadataFormatMinimal)
	equal(t, minimal["odata.etag"], full["odata.etag"])
	equal(t, minimal["A@odata.type"], any("Edm.Int64"))
	equal(t, minimal["odata.type"], any(nil))
}
