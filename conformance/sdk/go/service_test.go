package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func identifiers(count int, policy *aztables.AccessPolicy) []*aztables.SignedIdentifier {
	var all []*aztables.SignedIdentifier
	for i := range count {
		all = append(all, &aztables.SignedIdentifier{ID: to.Ptr(fmt.Sprint("id", i)), AccessPolicy: policy})
	}
	return all
}

func TestPoliciesRoundTrip(t *testing.T) {
	start, expiry := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)
	full := &aztables.AccessPolicy{Start: &start, Expiry: &expiry, Permission: to.Ptr("raud")}
	for which, given := range map[string][]*aztables.SignedIdentifier{
		"one":           identifiers(1, full),
		"five":          identifiers(5, full),
		"only an id":    identifiers(1, nil),
		"permission":    identifiers(1, &aztables.AccessPolicy{Permission: to.Ptr("r")}),
		"expiry":        identifiers(1, &aztables.AccessPolicy{Expiry: &expiry}),
		"other letters": {{ID: to.Ptr("o'clock <é> & 日本 😀"), AccessPolicy: full}},
	} {
		t.Run(which, func(t *testing.T) {
			table, _ := newTable(t)
			_, err := table.SetAccessPolicy(ctx, &aztables.SetAccessPolicyOptions{TableACL: given})
			must(t, err)
			found, err := table.GetAccessPolicy(ctx, nil)
			must(t, err)
			equal(t, found.SignedIdentifiers, given)
		})
	}
}

func TestPoliciesAreCleared(t *testing.T) {
	table, _ := newTable(t)
	_, err := table.SetAccessPolicy(ctx, &aztables.SetAccessPolicyOptions{TableACL: identifiers(2, nil)})
	must(t, err)
	_, err = table.SetAccessPolicy(ctx, nil)
	must(t, err)
	found, err := table.GetAccessPolicy(ctx, nil)
	must(t, err)
	equal(t, len(found.SignedIdentifiers), 0)
}

func TestSixPoliciesAreRefused(t *testing.T) {
	table, _ := newTable(t)
	_, err := table.SetAccessPolicy(ctx, &aztables.SetAccessPolicyOptions{TableACL: identifiers(6, nil)})
	if err == nil || !strings.Contains(err.Error(), "more than five") {
		t.Fatalf("expected the SDK's error of more than five policies, got %v", err)
	}
	found, err := table.GetAccessPolicy(ctx, nil)
	must(t, err)
	equal(t, len(found.SignedIdentifiers), 0)
}

func TestMalformedPolicies(t *testing.T) {
	for which, given := range map[string]aztables.SignedIdentifier{
		"long id":            {ID: to.Ptr(strings.Repeat("x", 65))},
		"unknown permission": {ID: to.Ptr("a"), AccessPolicy: &aztables.AccessPolicy{Permission: to.Ptr("rx")}},
	} {
		t.Run(which, func(t *testing.T) {
			table, _ := newTable(t)
			_, err := table.SetAccessPolicy(ctx, &aztables.SetAccessPolicyOptions{TableACL: []*aztables.SignedIdentifier{&given}})
			refused(t, err, 400, "InvalidXmlDocument")
		})
	}
}

func TestPoliciesOfAMissingTable(t *testing.T) {
	_, err := newService(t).NewClient(fresh()).GetAccessPolicy(ctx, nil)
	refused(t, err, 404, aztables.TableNotFound)
}

// restoringProperties is a client for a test of the account's properties, which are put back at its end.
func restoringProperties(t *testing.T) *aztables.ServiceClient {
	t.Helper()
	service := newService(t)
	before, err := service.GetProperties(ctx, nil)
	must(t, err)
	t.Cleanup(func() {
		_, err := service.SetProperties(ctx, before.ServiceProperties, nil)
		must(t, err)
		if len(before.Cors) == 0 {
			clearRules(t)
		}
	})
	return service
}

// clearRules does what the SDK has no way to say: no rules at all.
func clearRules(t *testing.T) {
	t.Helper()
	url := endpoint() + "/?restype=service&comp=properties&" + accountToken(t, "s", "w")
	body := strings.NewReader("<StorageServiceProperties><Cors/></StorageServiceProperties>")
	request, err := http.NewRequest(http.MethodPut, url, body)
	must(t, err)
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	defer answer.Body.Close()
	equal(t, answer.StatusCode, http.StatusAccepted)
}

func days(count int32) *aztables.RetentionPolicy {
	return &aztables.RetentionPolicy{Enabled: to.Ptr(true), Days: &count}
}

func logging(version string, retention *aztables.RetentionPolicy) *aztables.Logging {
	return &aztables.Logging{Version: &version, Read: to.Ptr(true), Write: to.Ptr(false), Delete: to.Ptr(true), RetentionPolicy: retention}
}

func metrics(retention *aztables.RetentionPolicy) *aztables.Metrics {
	return &aztables.Metrics{Version: to.Ptr("1.0"), Enabled: to.Ptr(true), IncludeAPIs: to.Ptr(true), RetentionPolicy: retention}
}

func rules(count int, origins, methods string) []*aztables.CorsRule {
	var all []*aztables.CorsRule
	for range count {
		all = append(all, &aztables.CorsRule{
			AllowedOrigins: &origins, AllowedMethods: &methods, AllowedHeaders: to.Ptr("accept,x-ms-*"),
			ExposedHeaders: to.Ptr("etag"), MaxAgeInSeconds: to.Ptr(int32(200)),
		})
	}
	return all
}

func TestPropertiesRoundTrip(t *testing.T) {
	off := &aztables.RetentionPolicy{Enabled: to.Ptr(false)}
	base := aztables.ServiceProperties{
		Logging: logging("1.0", days(1)), HourMetrics: metrics(days(2)), MinuteMetrics: metrics(days(3)), Cors: rules(1, "*", "GET"),
	}
	for which, change := range map[string]func(p *aztables.ServiceProperties){
		"logging":      func(p *aztables.ServiceProperties) { p.Logging = logging("1.0", off) },
		"hour metrics": func(p *aztables.ServiceProperties) { p.HourMetrics = metrics(days(365)) },
		"no hour metrics": func(p *aztables.ServiceProperties) {
			p.HourMetrics = &aztables.Metrics{Version: to.Ptr("1.0"), Enabled: to.Ptr(false), RetentionPolicy: off}
		},
		"minute metrics": func(p *aztables.ServiceProperties) { p.MinuteMetrics = metrics(off) },
		"five rules": func(p *aztables.ServiceProperties) {
			p.Cors = rules(5, "http://a.example,http://b.example", "GET,MERGE")
		},
	} {
		t.Run(which+", the others kept", func(t *testing.T) {
			service := restoringProperties(t)
			_, err := service.SetProperties(ctx, base, nil)
			must(t, err)
			var given aztables.ServiceProperties
			expected := base
			change(&given)
			change(&expected)
			_, err = service.SetProperties(ctx, given, nil)
			must(t, err)
			found, err := service.GetProperties(ctx, nil)
			must(t, err)
			equal(t, found.ServiceProperties, expected)
		})
	}
}

func TestRulesAreCleared(t *testing.T) {
	service := restoringProperties(t)
	_, err := service.SetProperties(ctx, aztables.ServiceProperties{Cors: rules(1, "*", "GET")}, nil)
	must(t, err)
	clearRules(t)
	found, err := service.GetProperties(ctx, nil)
	must(t, err)
	equal(t, len(found.Cors), 0)
}

func TestMalformedProperties(t *testing.T) {
	for which, given := range map[string]aztables.ServiceProperties{
		"366 days of logging": {Logging: logging("1.0", days(366))},
		"366 days of metrics": {HourMetrics: metrics(days(366))},
		"no days":             {MinuteMetrics: metrics(&aztables.RetentionPolicy{Enabled: to.Ptr(true)})},
		"version":             {Logging: logging("3.0", days(1))},
		"six rules":           {Cors: rules(6, "*", "GET")},
		"no origins":          {Cors: rules(1, "", "GET")},
		"unknown method":      {Cors: rules(1, "*", "FETCH")},
	} {
		t.Run(which, func(t *testing.T) {
			service := restoringProperties(t)
			before, err := service.GetProperties(ctx, nil)
			must(t, err)
			_, err = service.SetProperties(ctx, given, nil)
			refused(t, err, 400, "InvalidXmlDocument")
			after, err := service.GetProperties(ctx, nil)
			must(t, err)
			equal(t, after, before)
		})
	}
}

func TestStatistics(t *testing.T) {
	found, err := serviceAt(t, endpoint()+"-secondary", key).GetStatistics(ctx, nil)
	must(t, err)
	equal(t, *found.GeoReplication.Status, aztables.GeoReplicationStatusLive)
	if late := time.Since(*found.GeoReplication.LastSyncTime); late < 0 || late > 10*time.Minute {
		t.Fatalf("last synchronised %v ago", late)
	}

	_, err = newService(t).GetStatistics(ctx, nil)
	refused(t, err, 400, "")
}
