package conformance

import (
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

func TestAContainerIsMadeAndDeleted(t *testing.T) {
	t.Parallel()
	one := newService(t).NewContainerClient(fresh())
	_, err := one.GetProperties(ctx, nil)
	refused(t, err, 404, bloberror.ContainerNotFound)
	_, err = one.Create(ctx, &container.CreateOptions{Metadata: metadata})
	must(t, err)
	_, err = one.Create(ctx, nil)
	refused(t, err, 409, bloberror.ContainerAlreadyExists)
	found, err := one.GetProperties(ctx, nil)
	must(t, err)
	equal(t, texts(found.Metadata), map[string]string{"Key": "Value"})
	equal(t, []any{*found.LeaseState, *found.LeaseStatus, found.BlobPublicAccess == nil}, []any{lease.StateTypeAvailable, lease.StatusTypeUnlocked, true})
	_, err = one.SetMetadata(ctx, &container.SetMetadataOptions{Metadata: map[string]*string{"Other": to.Ptr("1")}})
	must(t, err)
	found, err = one.GetProperties(ctx, nil)
	must(t, err)
	equal(t, texts(found.Metadata), map[string]string{"Other": "1"})
	_, err = one.Delete(ctx, nil)
	must(t, err)
	_, err = one.Delete(ctx, nil)
	refused(t, err, 404, bloberror.ContainerNotFound)
}

func TestNamesOfContainersThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a_b", "-ab", "a--b", "Abc", "abc-"} {
		_, err := newService(t).CreateContainer(ctx, name, nil)
		refused(t, err, 400, bloberror.InvalidResourceName)
	}
}

func TestContainersAreListedInPages(t *testing.T) {
	t.Parallel()
	from, prefix := newService(t), fresh()
	for number := range 5 {
		name := fmt.Sprintf("%s-%d", prefix, number)
		_, err := from.CreateContainer(ctx, name, &container.CreateOptions{Metadata: metadata})
		must(t, err)
		t.Cleanup(func() { _, _ = from.DeleteContainer(ctx, name, nil) })
	}
	pages := [][]string{}
	options := service.ListContainersOptions{Prefix: &prefix, MaxResults: to.Ptr(int32(2)), Include: service.ListContainersInclude{Metadata: true}}
	for pager := from.NewListContainersPager(&options); pager.More(); {
		page, err := pager.NextPage(ctx)
		must(t, err)
		found := []string{}
		for _, one := range page.ContainerItems {
			found = append(found, (*one.Name)[len(prefix):])
			equal(t, texts(one.Metadata), map[string]string{"key": "Value"}) // of a list, the SDK's names are in lower case
		}
		pages = append(pages, found)
	}
	equal(t, pages, [][]string{{"-0", "-1"}, {"-2", "-3"}, {"-4"}})
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	one, _ := newContainer(t)
	expiry := hours(2)
	_, err := one.SetAccessPolicy(ctx, &container.SetAccessPolicyOptions{ContainerACL: []*container.SignedIdentifier{
		{ID: to.Ptr("whole"), AccessPolicy: &container.AccessPolicy{Permission: to.Ptr("racwdl"), Start: to.Ptr(hours(-2)), Expiry: &expiry}},
	}})
	must(t, err)
	found, err := one.GetAccessPolicy(ctx, nil)
	must(t, err)
	equal(t, len(found.SignedIdentifiers), 1)
	policy := found.SignedIdentifiers[0]
	equal(t, []any{*policy.ID, *policy.AccessPolicy.Permission, policy.AccessPolicy.Expiry.Unix()}, []any{"whole", "racwdl", expiry.Unix()})
}

func TestPublicAccess(t *testing.T) {
	t.Parallel()
	in, _ := containerOf(t, served(t, "--blob-public-access", "on"))
	one := in.NewBlockBlobClient("blob")
	put(t, one, digits)
	stranger, err := container.NewClientWithNoCredential(in.URL(), &container.ClientOptions{ClientOptions: once()})
	must(t, err)
	_, err = download(stranger.NewBlobClient("blob"), nil)
	refused(t, err, 401, bloberror.NoAuthenticationInformation)
	_, err = in.SetAccessPolicy(ctx, &container.SetAccessPolicyOptions{Access: to.Ptr(container.PublicAccessTypeBlob)})
	must(t, err)
	equal(t, content(t, stranger.NewBlobClient("blob")), content(t, one))
	_, err = stranger.NewListBlobsFlatPager(nil).NextPage(ctx)
	refused(t, err, 401, bloberror.NoAuthenticationInformation)
	_, err = in.SetAccessPolicy(ctx, &container.SetAccessPolicyOptions{Access: to.Ptr(container.PublicAccessTypeContainer)})
	must(t, err)
	equal(t, names(listed(t, stranger, nil)), []string{"blob"})
	_, err = stranger.NewBlockBlobClient("new").Upload(ctx, body("a"), nil)
	refused(t, err, 401, bloberror.NoAuthenticationInformation)
}

func TestALeaseOfAContainerGuardsDeletion(t *testing.T) {
	t.Parallel()
	one, _ := newContainer(t)
	holder, err := lease.NewContainerClient(one, nil)
	must(t, err)
	_, err = holder.AcquireLease(ctx, 60, nil)
	must(t, err)
	_, err = one.Delete(ctx, nil)
	refused(t, err, 412, bloberror.LeaseIDMissing)
	put(t, one.NewBlockBlobClient("a"), "still allowed")
	_, err = one.Delete(ctx, &container.DeleteOptions{AccessConditions: &container.AccessConditions{LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: holder.LeaseID()}}})
	must(t, err)
}

// In the order of the service: by the bytes of the UTF-8 form, which is Go's own order.
var ordered = []string{"A", "a", "a b", "a%2Fb", "a+b", "a-b", "a/", "a//b", "a/b", "a/b/c", "a0", "b", "ä", "日本", "😀"}

func TestListsOfBlobs(t *testing.T) {
	t.Parallel()
	in, _ := newContainer(t)
	for _, name := range ordered {
		put(t, in.NewBlockBlobClient(name), name)
		equal(t, content(t, in.NewBlobClient(name)), name)
	}
	equal(t, names(listed(t, in, nil)), ordered)
	equal(t, names(listed(t, in, &container.ListBlobsFlatOptions{MaxResults: to.Ptr(int32(4))})), ordered)
	equal(t, names(listed(t, in, &container.ListBlobsFlatOptions{Prefix: to.Ptr("a/")})), []string{"a/", "a//b", "a/b", "a/b/c"})
	for _, size := range []int32{1, 3, 5000} {
		blobs, folders := []string{}, []string{}
		options := container.ListBlobsHierarchyOptions{Prefix: to.Ptr("a/"), MaxResults: &size}
		for pager := in.NewListBlobsHierarchyPager("/", &options); pager.More(); {
			page, err := pager.NextPage(ctx)
			must(t, err)
			blobs = append(blobs, names(page.Segment.BlobItems)...)
			for _, folder := range page.Segment.BlobPrefixes {
				folders = append(folders, *folder.Name)
			}
		}
		equal(t, [][]string{blobs, folders}, [][]string{{"a/", "a/b"}, {"a//", "a/b/"}})
	}
}

func TestWhatIsIncluded(t *testing.T) {
	t.Parallel()
	one, in := newBlob(t)
	_, err := one.SetMetadata(ctx, metadata, nil)
	must(t, err)
	_, err = one.SetTags(ctx, map[string]string{"t": "1"}, nil)
	must(t, err)
	_, err = one.CreateSnapshot(ctx, nil)
	must(t, err)
	_, err = in.NewBlobClient("copy").StartCopyFromURL(ctx, one.URL(), nil)
	must(t, err)
	stage(t, in.NewBlockBlobClient("staged"), 1)
	plain := listed(t, in, nil)
	equal(t, []any{names(plain), plain[0].Metadata == nil, plain[0].BlobTags == nil}, []any{[]string{"blob", "copy"}, true, true})
	everything := container.ListBlobsInclude{Metadata: true, Tags: true, Snapshots: true, Copy: true, UncommittedBlobs: true, Deleted: true}
	found := listed(t, in, &container.ListBlobsFlatOptions{Include: everything, MaxResults: to.Ptr(int32(1))})
	equal(t, names(found), []string{"blob", "blob", "copy", "staged"})
	equal(t, []bool{text(found[0].Snapshot) != "", text(found[1].Snapshot) != ""}, []bool{true, false})
	equal(t, []string{*found[1].BlobTags.BlobTagSet[0].Key, text(found[1].Metadata["key"])}, []string{"t", "Value"})
	equal(t, []any{*found[2].Properties.CopySource, *found[2].Properties.ContentLength}, []any{one.URL(), int64(10)})
}

func TestBatches(t *testing.T) {
	t.Parallel()
	in, _ := newContainer(t)
	for _, name := range []string{"a", "b ü", "c/d"} {
		put(t, in.NewBlockBlobClient(name), name)
	}
	batch, err := in.NewBatchBuilder()
	must(t, err)
	for _, name := range []string{"a", "missing", "c/d"} {
		must(t, batch.Delete(name, nil))
	}
	answer, err := in.SubmitBatch(ctx, batch, nil)
	must(t, err)
	failed := []bool{}
	for _, part := range answer.Responses {
		failed = append(failed, part.Error != nil)
	}
	equal(t, failed, []bool{false, true, false})
	refused(t, answer.Responses[1].Error, 404, bloberror.BlobNotFound)
	equal(t, names(listed(t, in, nil)), []string{"b ü"})
	tiers, err := in.NewBatchBuilder()
	must(t, err)
	must(t, tiers.SetTier("b ü", "Cool", nil))
	_, err = in.SubmitBatch(ctx, tiers, nil)
	must(t, err)
	equal(t, string(*listed(t, in, nil)[0].Properties.AccessTier), "Cool")
}
