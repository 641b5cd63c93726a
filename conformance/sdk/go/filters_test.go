package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// row is row i of the table described in filters.json.
func row(i int) []byte {
	properties := props{
		"Name":  fmt.Sprintf("s%d", i),
		"Small": i,
		"Big":   fmt.Sprint(i * 10_000_000_000), "Big@odata.type": "Edm.Int64",
		"Ratio": float64(i) + 0.5,
		"Even":  i%2 == 0,
		"When":  time.Date(2021, 1, i+1, 0, 0, 0, 0, time.UTC), "When@odata.type": "Edm.DateTime",
		"Uid": fmt.Sprintf("00000000-0000-0000-0000-%012d", i), "Uid@odata.type": "Edm.Guid",
		"Blob": []byte{byte(i)}, "Blob@odata.type": "Edm.Binary",
	}
	if i%2 == 1 {
		properties["Odd"] = "yes"
	}
	return entity(fmt.Sprintf("p%d", i/5), fmt.Sprintf("r%d", i), properties)
}

func TestFilters(t *testing.T) {
	var filters struct {
		Cases   []struct{ Filter, Rows string }
		Refused []struct {
			Filter string
			Status int
		}
	}
	cases(t, "filters.json", &filters)
	table, _ := newTable(t)
	for i := 9; i >= 0; i-- { // so that an answer in key order is not an answer in order of arrival
		_, err := table.AddEntity(ctx, row(i), nil)
		must(t, err)
	}

	for _, c := range filters.Cases {
		t.Run(c.Filter, func(t *testing.T) {
			expected := []string{}
			for _, digit := range c.Rows {
				expected = append(expected, "r"+string(digit))
			}
			equal(t, rowKeys(query(t, table, c.Filter)), expected)
		})
	}
	for _, c := range filters.Refused {
		t.Run("refused "+c.Filter, func(t *testing.T) {
			_, err := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &c.Filter}).NextPage(ctx)
			refused(t, err, c.Status, "")
		})
	}
	t.Run("select gives what is named, and null for what is missing", func(t *testing.T) {
		options := aztables.ListEntitiesOptions{Filter: to.Ptr("RowKey le 'r1'"), Select: to.Ptr("Odd,Small")}
		found := pages(t, table.NewListEntitiesPager(&options))[0]
		for _, e := range found {
			delete(e, "odata.etag")
		}
		equal(t, found, []props{{"Odd": nil, "Small": 0.0}, {"Odd": "yes", "Small": 1.0}})
	})
}
