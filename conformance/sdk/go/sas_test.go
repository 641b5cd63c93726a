package conformance

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func hours(count float64) time.Time {
	return time.Now().UTC().Add(time.Duration(count * float64(time.Hour)))
}

func credential(t *testing.T) *aztables.SharedKeyCredential {
	t.Helper()
	made, err := aztables.NewSharedKeyCredential(account, key)
	must(t, err)
	return made
}

func serviceWith(t *testing.T, token string) *aztables.ServiceClient {
	t.Helper()
	options := aztables.ClientOptions{ClientOptions: policy.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
	service, err := aztables.NewServiceClientWithNoCredential(endpoint()+"?"+token, &options)
	must(t, err)
	return service
}

// tokenOf is the query of a URL that the SDK made.
func tokenOf(t *testing.T, made string, err error) string {
	t.Helper()
	must(t, err)
	parsed, err := url.Parse(made)
	must(t, err)
	return parsed.RawQuery
}

func permissions(t *testing.T, letters string) aztables.SASPermissions {
	t.Helper()
	var parsed aztables.SASPermissions
	must(t, parsed.Parse(letters))
	return parsed
}

func tableToken(t *testing.T, name, letters string) string {
	t.Helper()
	made, err := newService(t).NewClient(name).GetTableSASURL(permissions(t, letters), time.Time{}, hours(1))
	return tokenOf(t, made, err)
}

func holder(t *testing.T, name, letters string) *aztables.Client {
	t.Helper()
	return serviceWith(t, tableToken(t, name, letters)).NewClient(name)
}

type bounds struct {
	StartPartitionKey, StartRowKey, EndPartitionKey, EndRowKey string
}

// inRange is a holder of everything between these keys. The SDK signs them but leaves them out of its URL.
func inRange(t *testing.T, name string, b bounds) *aztables.Client {
	t.Helper()
	p := permissions(t, "raud")
	p.StartPartitionKey, p.StartRowKey, p.EndPartitionKey, p.EndRowKey = b.StartPartitionKey, b.StartRowKey, b.EndPartitionKey, b.EndRowKey
	made, err := newService(t).NewClient(name).GetTableSASURL(p, time.Time{}, hours(1))
	change := map[string]string{"spk": b.StartPartitionKey, "srk": b.StartRowKey, "epk": b.EndPartitionKey, "erk": b.EndRowKey}
	return serviceWith(t, changed(t, tokenOf(t, made, err), change)).NewClient(name)
}

func changed(t *testing.T, token string, change map[string]string) string {
	t.Helper()
	values, err := url.ParseQuery(token)
	must(t, err)
	for name, value := range change {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values.Encode()
}

func signed(t *testing.T, name string, values aztables.SASSignatureValues) *aztables.Client {
	t.Helper()
	values.TableName = name
	token, err := values.Sign(credential(t))
	must(t, err)
	return serviceWith(t, token).NewClient(name)
}

// withRow makes a table of one row, which everyOperation acts on.
func withRow(t *testing.T) (*aztables.Client, string) {
	t.Helper()
	table, name := newTable(t)
	insert(t, table, "p", "r", props{"A": 1})
	return table, name
}

func read(c *aztables.Client) error { return everyOperation["get"](c) }

var needs = map[string]struct {
	letters string
	act     func(*aztables.Client) error
}{
	"get":    {"r", everyOperation["get"]},
	"query":  {"r", everyOperation["query"]},
	"insert": {"a", func(c *aztables.Client) error { _, err := c.AddEntity(ctx, entity("p", "new", nil), nil); return err }},
	"update": {"u", everyOperation["update"]},
	"upsert": {"au", everyOperation["upsert"]},
	"delete": {"d", everyOperation["delete"]},
}

func TestTablePermissions(t *testing.T) {
	for operation, need := range needs {
		t.Run(operation+" with "+need.letters, func(t *testing.T) {
			_, name := withRow(t)
			must(t, need.act(holder(t, name, need.letters)))
		})
		for _, letter := range strings.Split(need.letters, "") {
			t.Run(operation+" needs "+letter, func(t *testing.T) {
				_, name := withRow(t)
				err := need.act(holder(t, name, strings.ReplaceAll("raud", letter, "")))
				refused(t, err, 403, "AuthorizationPermissionMismatch")
			})
		}
	}
}

func TestRanges(t *testing.T) {
	var given struct {
		Rows   [][]string
		Ranges map[string]struct {
			bounds
			Inside [][]string
		}
	}
	cases(t, "ranges.json", &given)
	table, name := newTable(t)
	for _, row := range given.Rows {
		insert(t, table, row[0], row[1], nil)
	}
	for which, r := range given.Ranges {
		t.Run(which, func(t *testing.T) {
			client := inRange(t, name, r.bounds)
			found := [][]string{}
			for _, e := range query(t, client, "") {
				found = append(found, []string{e["PartitionKey"].(string), e["RowKey"].(string)})
			}
			equal(t, found, r.Inside)
			for _, row := range given.Rows {
				_, err := client.GetEntity(ctx, row[0], row[1], nil)
				if slices.ContainsFunc(r.Inside, func(in []string) bool { return slices.Equal(in, row) }) {
					must(t, err)
				} else {
					refused(t, err, 404, aztables.ResourceNotFound)
				}
			}
		})
	}
}

func TestWritesKeepToTheRange(t *testing.T) {
	for _, operation := range []string{"insert", "update", "upsert", "delete"} {
		t.Run(operation+" inside", func(t *testing.T) {
			_, name := withRow(t)
			must(t, needs[operation].act(inRange(t, name, bounds{StartPartitionKey: "p", EndPartitionKey: "p"})))
		})
		for which, b := range map[string]bounds{"below": {StartPartitionKey: "q"}, "above": {EndPartitionKey: "p", EndRowKey: "a"}} {
			t.Run(operation+" "+which, func(t *testing.T) {
				table, name := withRow(t)
				refused(t, needs[operation].act(inRange(t, name, b)), 403, "AuthorizationFailure")
				equal(t, custom(get(t, table, "p", "r")), props{"A": 1.0})
			})
		}
	}
}

func TestTokenTimes(t *testing.T) {
	_, name := withRow(t)
	for which, when := range map[string]struct {
		start, expiry time.Time
		valid         bool
	}{
		"started": {hours(-1), hours(1), true},
		"not yet": {hours(0.5), hours(1), false},
		"expired": {hours(-1), hours(-0.01), false},
	} {
		t.Run(which, func(t *testing.T) {
			made, err := newService(t).NewClient(name).GetTableSASURL(permissions(t, "r"), when.start, when.expiry)
			err = read(serviceWith(t, tokenOf(t, made, err)).NewClient(name))
			if when.valid {
				must(t, err)
			} else {
				refused(t, err, 403, "AuthenticationFailed")
			}
		})
	}
}

func TestTokenAddressAndProtocol(t *testing.T) {
	_, name := withRow(t)
	values := aztables.SASSignatureValues{Permissions: "r", ExpiryTime: hours(1), Protocol: aztables.SASProtocolHTTPSandHTTP}
	values.IPRange = aztables.IPRange{Start: net.IPv4zero, End: net.IPv4bcast}
	must(t, read(signed(t, name, values)))

	values.IPRange = aztables.IPRange{Start: net.IPv4(203, 0, 113, 1)}
	refused(t, read(signed(t, name, values)), 403, "AuthorizationSourceIPMismatch")

	if strings.HasPrefix(endpoint(), "http:") {
		values.IPRange, values.Protocol = aztables.IPRange{}, aztables.SASProtocolHTTPS
		refused(t, read(signed(t, name, values)), 403, "AuthorizationProtocolMismatch")
	}
}

func TestTamperedToken(t *testing.T) {
	_, name := withRow(t)
	for parameter, value := range map[string]string{
		"sp": "raud", "se": "2099-01-01", "st": "2020-01-01", "tn": "another", "spk": "a", "si": "policy",
		"sig": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
	} {
		t.Run(parameter, func(t *testing.T) {
			token := changed(t, tableToken(t, name, "r"), map[string]string{parameter: value})
			refused(t, read(serviceWith(t, token).NewClient(name)), 403, "AuthenticationFailed")
		})
	}
}

func TestTableTokenIsForItsEntitiesOnly(t *testing.T) {
	_, name := newTable(t)
	_, other := withRow(t)
	service := serviceWith(t, tableToken(t, name, "raud"))
	own := service.NewClient(name)
	for what, act := range map[string]func() error{
		"another table":  func() error { return read(service.NewClient(other)) },
		"list tables":    func() error { _, err := service.NewListTablesPager(nil).NextPage(ctx); return err },
		"create table":   func() error { _, err := service.CreateTable(ctx, fresh(), nil); return err },
		"delete table":   func() error { _, err := own.Delete(ctx, nil); return err },
		"get policies":   func() error { _, err := own.GetAccessPolicy(ctx, nil); return err },
		"set policies":   func() error { _, err := own.SetAccessPolicy(ctx, nil); return err },
		"get properties": func() error { _, err := service.GetProperties(ctx, nil); return err },
	} {
		t.Run(what, func(t *testing.T) { refused(t, act(), 403, "AuthorizationFailure") })
	}
}

func TestTransactionWithToken(t *testing.T) {
	table, name := withRow(t)
	acts := []aztables.TransactionAction{
		action(aztables.TransactionTypeAdd, "p", "new", nil),
		action(aztables.TransactionTypeUpdateMerge, "p", "r", props{"B": 2}),
	}
	for _, letters := range []string{"ru", "ra"} {
		_, err := holder(t, name, letters).SubmitTransaction(ctx, acts, nil)
		failed(t, err, "AuthorizationPermissionMismatch", "")
	}
	_, err := inRange(t, name, bounds{StartPartitionKey: "p", StartRowKey: "o"}).SubmitTransaction(ctx, acts, nil)
	failed(t, err, "AuthorizationFailure", "")
	equal(t, rowKeys(inPartition(t, table, "p")), []string{"r"})

	_, err = holder(t, name, "au").SubmitTransaction(ctx, acts, nil)
	must(t, err)
	equal(t, rowKeys(inPartition(t, table, "p")), []string{"new", "r"})
}

func TestPolicyTokens(t *testing.T) {
	table, name := withRow(t)
	set := func(policies ...*aztables.SignedIdentifier) {
		t.Helper()
		_, err := table.SetAccessPolicy(ctx, &aztables.SetAccessPolicyOptions{TableACL: policies})
		must(t, err)
	}
	policy := func(id, letters string, expiry time.Time) *aztables.SignedIdentifier {
		return &aztables.SignedIdentifier{ID: &id, AccessPolicy: &aztables.AccessPolicy{Permission: &letters, Expiry: &expiry}}
	}
	client := signed(t, name, aztables.SASSignatureValues{Identifier: "reader"})
	refused(t, read(client), 403, "AuthenticationFailed")

	for which, revoked := range map[string][]*aztables.SignedIdentifier{
		"cleared": nil,
		"renamed": {policy("reader2", "r", hours(1))},
		"expired": {policy("reader", "r", hours(-1))},
	} {
		t.Run(which, func(t *testing.T) {
			set(policy("reader", "r", hours(1)))
			must(t, read(client))
			set(revoked...)
			refused(t, read(client), 403, "AuthenticationFailed")
		})
	}
	t.Run("permission", func(t *testing.T) {
		set(policy("reader", "r", hours(1)))
		refused(t, needs["upsert"].act(client), 403, "AuthorizationPermissionMismatch")
	})
	t.Run("a field in policy and token", func(t *testing.T) {
		set(policy("reader", "r", hours(1)))
		both := signed(t, name, aztables.SASSignatureValues{Identifier: "reader", Permissions: "r"})
		refused(t, read(both), 403, "AuthenticationFailed")
	})
	t.Run("expiry in the token", func(t *testing.T) {
		set(&aztables.SignedIdentifier{ID: to.Ptr("reader"), AccessPolicy: &aztables.AccessPolicy{Permission: to.Ptr("r")}})
		must(t, read(signed(t, name, aztables.SASSignatureValues{Identifier: "reader", ExpiryTime: hours(1)})))
	})
}

func accountToken(t *testing.T, types, letters string) string {
	t.Helper()
	values := aztables.AccountSASSignatureValues{
		Permissions: letters, ResourceTypes: types, Services: "t", ExpiryTime: hours(1), Protocol: aztables.SASProtocolHTTPSandHTTP,
	}
	made, err := values.Sign(credential(t))
	must(t, err)
	return made.Encode()
}

func TestAccountTokens(t *testing.T) {
	type operation struct {
		types, letters string
		act            func(*aztables.ServiceClient, string) error
	}
	operations := map[string]operation{
		"list tables": {"c", "l", func(s *aztables.ServiceClient, _ string) error {
			_, err := s.NewListTablesPager(nil).NextPage(ctx)
			return err
		}},
		"delete table": {"c", "d", func(s *aztables.ServiceClient, name string) error {
			_, err := s.DeleteTable(ctx, name, nil)
			return err
		}},
		"get properties": {"s", "r", func(s *aztables.ServiceClient, _ string) error {
			_, err := s.GetProperties(ctx, nil)
			return err
		}},
		"set properties": {"s", "w", func(s *aztables.ServiceClient, _ string) error {
			_, err := s.SetProperties(ctx, aztables.ServiceProperties{}, nil)
			return err
		}},
	}
	for name, need := range needs {
		operations[name] = operation{"o", need.letters, func(s *aztables.ServiceClient, name string) error {
			return need.act(s.NewClient(name))
		}}
	}
	without := func(letters, given string) string {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune(given, r) {
				return -1
			}
			return r
		}, letters)
	}
	for which, o := range operations {
		for _, kind := range strings.Split(o.types, "") {
			t.Run(which+" with "+kind+" "+o.letters, func(t *testing.T) {
				_, name := withRow(t)
				must(t, o.act(serviceWith(t, accountToken(t, kind, o.letters)), name))
			})
		}
		t.Run(which+" needs one of "+o.types, func(t *testing.T) {
			_, name := withRow(t)
			err := o.act(serviceWith(t, accountToken(t, without("sco", o.types), "rwdlacu")), name)
			refused(t, err, 403, "AuthorizationResourceTypeMismatch")
		})
		for _, letter := range strings.Split(o.letters, "") {
			t.Run(which+" needs "+letter, func(t *testing.T) {
				_, name := withRow(t)
				err := o.act(serviceWith(t, accountToken(t, "sco", without("rwdlacu", letter))), name)
				refused(t, err, 403, "AuthorizationPermissionMismatch")
			})
		}
	}
}

func TestAccountTokenCreatesTables(t *testing.T) {
	for _, letters := range []string{"c", "w"} {
		name := fresh()
		_, err := serviceWith(t, accountToken(t, "c", letters)).CreateTable(ctx, name, nil)
		must(t, err)
		_, err = serviceWith(t, accountToken(t, "c", "d")).DeleteTable(ctx, name, nil)
		must(t, err)
	}
	_, err := serviceWith(t, accountToken(t, "sco", "rdlau")).CreateTable(ctx, fresh(), nil)
	refused(t, err, 403, "AuthorizationPermissionMismatch")
	_, err = serviceWith(t, accountToken(t, "so", "rwdlacu")).CreateTable(ctx, fresh(), nil)
	refused(t, err, 403, "AuthorizationResourceTypeMismatch")
}

func TestAccountTokenIsNotForPolicies(t *testing.T) {
	_, name := newTable(t)
	_, err := serviceWith(t, accountToken(t, "sco", "rwdlacu")).NewClient(name).GetAccessPolicy(ctx, nil)
	refused(t, err, 403, "AuthorizationFailure")
}

func TestTamperedAccountToken(t *testing.T) {
	token := changed(t, accountToken(t, "c", "l"), map[string]string{"sp": "lc"})
	_, err := serviceWith(t, token).NewListTablesPager(nil).NextPage(ctx)
	refused(t, err, 403, "AuthenticationFailed")
}

// The SDK's own account URLs are for https alone: their signature holds, and the protocol decides.
func TestAccountURL(t *testing.T) {
	types, letters := aztables.AccountSASResourceTypes{Container: true}, aztables.AccountSASPermissions{List: true}
	made, err := newService(t).GetAccountSASURL(types, letters, hours(-1), hours(1))
	_, err = serviceWith(t, tokenOf(t, made, err)).NewListTablesPager(nil).NextPage(ctx)
	if strings.HasPrefix(endpoint(), "http:") {
		refused(t, err, 403, "AuthorizationProtocolMismatch")
	} else {
		must(t, err)
	}
}
