package conformance

import (
	"encoding/base64"
	"fmt"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var everyOperation = map[string]func(*aztables.Client) error{
	"get":    func(c *aztables.Client) error { _, err := c.GetEntity(ctx, "p", "r", nil); return err },
	"query":  func(c *aztables.Client) error { _, err := c.NewListEntitiesPager(nil).NextPage(ctx); return err },
	"insert": func(c *aztables.Client) error { _, err := c.AddEntity(ctx, entity("p", "r", nil), nil); return err },
	"update": func(c *aztables.Client) error { _, err := c.UpdateEntity(ctx, entity("p", "r", nil), nil); return err },
	"upsert": func(c *aztables.Client) error { _, err := c.UpsertEntity(ctx, entity("p", "r", nil), nil); return err },
	"delete": func(c *aztables.Client) error { _, err := c.DeleteEntity(ctx, "p", "r", nil); return err },
}

func TestMissingTable(t *testing.T) {
	for name, act := range everyOperation {
		t.Run(name, func(t *testing.T) {
			refused(t, act(newService(t).NewClient(fresh())), 404, aztables.TableNotFound)
		})
	}
}

func TestWrongKey(t *testing.T) {
	_, name := newTable(t)
	wrong := serviceAt(t, endpoint(), base64.StdEncoding.EncodeToString([]byte("not the key")))
	for operation, act := range everyOperation {
		t.Run(operation, func(t *testing.T) {
			refused(t, act(wrong.NewClient(name)), 403, "AuthenticationFailed")
		})
	}
	t.Run("list tables", func(t *testing.T) {
		_, err := wrong.NewListTablesPager(nil).NextPage(ctx)
		refused(t, err, 403, "AuthenticationFailed")
	})
}

func TestInsertNeedsKeys(t *testing.T) {
	table, _ := newTable(t)
	_, err := table.AddEntity(ctx, []byte(`{"PartitionKey":"p"}`), nil)
	if err == nil {
		t.Fatal("an entity without RowKey was accepted")
	}
}

func TestConnectionString(t *testing.T) {
	_, name := newTable(t)
	text := fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;TableEndpoint=%s;", account, key, endpoint())
	service, err := aztables.NewServiceClientFromConnectionString(text, nil)
	must(t, err)
	equal(t, slices.Contains(slices.Concat(tables(t, service, nil)...), name), true)
}

func TestSecondary(t *testing.T) {
	table, name := newTable(t)
	insert(t, table, "p", "r", nil)
	secondary := serviceAt(t, endpoint()+"-secondary", key).NewClient(name)
	for _, operation := range []string{"get", "query"} {
		t.Run(operation, func(t *testing.T) { must(t, everyOperation[operation](secondary)) })
	}
	for _, operation := range []string{"insert", "update", "upsert", "delete"} {
		t.Run(operation+" is refused", func(t *testing.T) {
			refused(t, everyOperation[operation](secondary), 403, "InsufficientAccountPermissions")
		})
	}
}
