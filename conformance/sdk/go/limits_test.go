package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func many(count int, value any) props {
	all := props{}
	for i := range count {
		all[fmt.Sprint("P", i)] = value
	}
	return all
}

func TestLimits(t *testing.T) {
	table, _ := newTable(t)
	text := func(length int) string { return strings.Repeat("x", length) }
	binary := func(length int) props {
		return props{"Blob": make([]byte, length), "Blob@odata.type": "Edm.Binary"}
	}
	nearMebibyte := many(15, text(32768))
	nearMebibyte["Last"] = text(32000)

	for name, fits := range map[string]props{
		"text of 64 KiB":                    {"Text": text(32768)},
		"text of 64 KiB in surrogate pairs": {"Text": strings.Repeat("😀", 16384)},
		"binary of 64 KiB":                  binary(65536),
		"252 properties":                    many(252, 1),
		"a name of 255 characters":          {text(255): 1},
		"just under 1 MiB":                  nearMebibyte,
	} {
		t.Run(name, func(t *testing.T) {
			p := fresh()
			insert(t, table, p, "r", fits)
			equal(t, len(custom(get(t, table, p, "r"))), len(fits))
		})
	}
	for name, c := range map[string]struct {
		properties props
		code       aztables.TableErrorCode
	}{
		"text above 64 KiB":        {props{"Text": text(32769)}, aztables.PropertyValueTooLarge},
		"binary above 64 KiB":      {binary(65537), aztables.PropertyValueTooLarge},
		"253 properties":           {many(253, 1), aztables.TooManyProperties},
		"a name of 256 characters": {props{text(256): 1}, aztables.PropertyNameTooLong},
		"above 1 MiB":              {many(16, text(32768)), aztables.EntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := table.AddEntity(ctx, entity(fresh(), "r", c.properties), nil)
			refused(t, err, 400, c.code)
		})
	}
}
