package conformance

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// signed is the address of a blob with a token of its own, for reading.
func signed(t *testing.T, one *blockblob.Client) string {
	t.Helper()
	url, err := one.GetSASURL(sas.BlobPermissions{Read: true}, hours(1), nil)
	must(t, err)
	return url
}

func holder(t *testing.T, one *blockblob.Client, granted sas.BlobPermissions, until float64) *blockblob.Client {
	t.Helper()
	url, err := one.GetSASURL(granted, hours(until), nil)
	must(t, err)
	made, err := blockblob.NewClientWithNoCredential(url, &blockblob.ClientOptions{ClientOptions: once()})
	must(t, err)
	return made
}

func TestTokensOfABlob(t *testing.T) {
	t.Parallel()
	one, _ := newBlob(t)
	operations := map[string]struct {
		needs sas.BlobPermissions
		act   func(*blockblob.Client) error
	}{
		"read":   {sas.BlobPermissions{Read: true}, func(by *blockblob.Client) error { _, err := download(by, nil); return err }},
		"write":  {sas.BlobPermissions{Write: true}, func(by *blockblob.Client) error { _, err := by.Upload(ctx, body("new"), nil); return err }},
		"tag":    {sas.BlobPermissions{Tag: true}, func(by *blockblob.Client) error { _, err := by.GetTags(ctx, nil); return err }},
		"delete": {sas.BlobPermissions{Delete: true}, func(by *blockblob.Client) error { _, err := by.Delete(ctx, nil); return err }},
	}
	for name, operation := range operations {
		for other, another := range operations {
			if name != other {
				refused(t, operation.act(holder(t, one, another.needs, 1)), 403, bloberror.AuthorizationPermissionMismatch)
			}
		}
		refused(t, operation.act(holder(t, one, operation.needs, -0.01)), 403, bloberror.AuthenticationFailed)
	}
	for _, name := range []string{"read", "write", "tag", "delete"} {
		must(t, operations[name].act(holder(t, one, operations[name].needs, 1)))
	}
}

func TestATokenOfAContainerByPolicy(t *testing.T) {
	t.Parallel()
	_, in := newBlob(t)
	parts, err := sas.ParseURL(in.URL())
	must(t, err)
	values := sas.BlobSignatureValues{ContainerName: parts.ContainerName, Identifier: "reader"}
	signature, err := values.SignWithSharedKey(credential(t))
	must(t, err)
	by, err := container.NewClientWithNoCredential(in.URL()+"?"+signature.Encode(), &container.ClientOptions{ClientOptions: once()})
	must(t, err)
	_, err = download(by.NewBlobClient("blob"), nil)
	refused(t, err, 403, bloberror.AuthenticationFailed)
	_, err = in.SetAccessPolicy(ctx, &container.SetAccessPolicyOptions{ContainerACL: []*container.SignedIdentifier{
		{ID: to.Ptr("reader"), AccessPolicy: &container.AccessPolicy{Permission: to.Ptr("rl"), Expiry: to.Ptr(hours(1)), Start: to.Ptr(hours(-1))}},
	}})
	must(t, err)
	equal(t, content(t, by.NewBlobClient("blob")), digits)
	equal(t, names(listed(t, by, nil)), []string{"blob"})
	_, err = by.NewBlobClient("blob").Delete(ctx, nil)
	refused(t, err, 403, bloberror.AuthorizationPermissionMismatch)
}

func TestHeadersOfTheAnswer(t *testing.T) {
	t.Parallel()
	one, in := newBlob(t)
	parts, err := sas.ParseURL(in.URL())
	must(t, err)
	values := sas.BlobSignatureValues{
		ContainerName: parts.ContainerName, BlobName: "blob", Permissions: "r", ExpiryTime: hours(1),
		CacheControl: "no-cache", ContentDisposition: `attachment; filename="a b.txt"`, ContentType: "text/plain",
	}
	signature, err := values.SignWithSharedKey(credential(t))
	must(t, err)
	by, err := blob.NewClientWithNoCredential(one.URL()+"?"+signature.Encode(), &blob.ClientOptions{ClientOptions: once()})
	must(t, err)
	found, err := by.DownloadStream(ctx, nil)
	must(t, err)
	defer found.Body.Close()
	equal(t, []string{*found.CacheControl, *found.ContentDisposition, *found.ContentType}, []string{"no-cache", `attachment; filename="a b.txt"`, "text/plain"})
}

func TestATokenOfTheAccount(t *testing.T) {
	t.Parallel()
	one, in := newBlob(t)
	parts, err := sas.ParseURL(one.URL())
	must(t, err)
	url, err := newService(t).GetSASURL(sas.AccountResourceTypes{Object: true}, sas.AccountPermissions{Read: true, List: true}, hours(1), nil)
	must(t, err)
	by, err := service.NewClientWithNoCredential(url, &service.ClientOptions{ClientOptions: once()})
	must(t, err)
	equal(t, content(t, by.NewContainerClient(parts.ContainerName).NewBlobClient("blob")), digits)
	_, err = by.NewContainerClient(parts.ContainerName).NewListBlobsFlatPager(nil).NextPage(ctx)
	refused(t, err, 403, bloberror.AuthorizationResourceTypeMismatch)
	_, err = by.NewContainerClient(parts.ContainerName).NewBlobClient("blob").Delete(ctx, nil)
	refused(t, err, 403, bloberror.AuthorizationPermissionMismatch)
	equal(t, names(listed(t, in, nil)), []string{"blob"})
}

func TestPropertiesOfTheService(t *testing.T) {
	t.Parallel()
	own := served(t)
	week := &service.RetentionPolicy{Enabled: to.Ptr(true), Days: to.Ptr(int32(7))}
	_, err := own.SetProperties(ctx, &service.SetPropertiesOptions{
		DeleteRetentionPolicy: week,
		HourMetrics:           &service.Metrics{Enabled: to.Ptr(true), IncludeAPIs: to.Ptr(true), RetentionPolicy: week, Version: to.Ptr("1.0")},
		CORS:                  []*service.CORSRule{{AllowedOrigins: to.Ptr("example.com"), AllowedMethods: to.Ptr("GET"), MaxAgeInSeconds: to.Ptr(int32(5)), AllowedHeaders: to.Ptr("*"), ExposedHeaders: to.Ptr("*")}},
		StaticWebsite:         &service.StaticWebsite{Enabled: to.Ptr(true), IndexDocument: to.Ptr("index.html")},
	})
	must(t, err)
	found, err := own.GetProperties(ctx, nil)
	must(t, err)
	equal(t, []any{*found.DeleteRetentionPolicy.Days, *found.HourMetrics.IncludeAPIs, *found.CORS[0].AllowedOrigins, *found.StaticWebsite.IndexDocument},
		[]any{int32(7), true, "example.com", "index.html"})
}

func TestSoftDelete(t *testing.T) {
	t.Parallel()
	own := served(t)
	_, err := own.SetProperties(ctx, &service.SetPropertiesOptions{DeleteRetentionPolicy: &service.RetentionPolicy{Enabled: to.Ptr(true), Days: to.Ptr(int32(7))}})
	must(t, err)
	in, _ := containerOf(t, own)
	one := in.NewBlockBlobClient("blob")
	put(t, one, digits)
	_, err = one.Delete(ctx, nil)
	must(t, err)
	_, err = download(one, nil)
	refused(t, err, 404, bloberror.BlobNotFound)
	found := listed(t, in, &container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Deleted: true}})
	equal(t, []any{names(found), *found[0].Deleted, *found[0].Properties.RemainingRetentionDays}, []any{[]string{"blob"}, true, int32(6)})
	_, err = one.Undelete(ctx, nil)
	must(t, err)
	equal(t, content(t, one), digits)
}

func TestTheAccount(t *testing.T) {
	t.Parallel()
	found, err := newService(t).GetAccountInfo(ctx, nil)
	must(t, err)
	equal(t, []any{*found.AccountKind, *found.IsHierarchicalNamespaceEnabled}, []any{service.AccountKindStorageV2, false})
	_, err = serviceAt(t, endpoint()+"-secondary").GetStatistics(ctx, nil)
	must(t, err)
}

func TestKeysAndConnectionStrings(t *testing.T) {
	t.Parallel()
	one, in := newBlob(t)
	parts, err := sas.ParseURL(one.URL())
	must(t, err)
	text := "DefaultEndpointsProtocol=http;AccountName=" + account + ";AccountKey=" + key + ";BlobEndpoint=" + endpoint() + ";"
	client, err := azblob.NewClientFromConnectionString(text, nil)
	must(t, err)
	_, err = client.UploadBuffer(ctx, parts.ContainerName, "b", []byte("by a connection string"), nil)
	must(t, err)
	equal(t, content(t, in.NewBlobClient("b")), "by a connection string")
	wrong, err := azblob.NewSharedKeyCredential(account, "d3Jvbmc=")
	must(t, err)
	by, err := blob.NewClientWithSharedKeyCredential(one.URL(), wrong, &blob.ClientOptions{ClientOptions: once()})
	must(t, err)
	_, err = download(by, nil)
	refused(t, err, 403, bloberror.AuthenticationFailed)
}
