package conformance

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
)

func TestPropertiesAndMetadata(t *testing.T) {
	t.Parallel()
	one, _ := newBlob(t)
	_, err := one.SetHTTPHeaders(ctx, blob.HTTPHeaders{BlobContentType: to.Ptr("text/plain"), BlobCacheControl: to.Ptr("no-store")}, nil)
	must(t, err)
	_, err = one.SetHTTPHeaders(ctx, blob.HTTPHeaders{BlobContentType: to.Ptr("text/html")}, nil)
	must(t, err)
	_, err = one.SetMetadata(ctx, map[string]*string{"Hello": to.Ptr("World"), "A1": to.Ptr("1"), "A_1": to.Ptr("2")}, nil)
	must(t, err)
	found, err := one.GetProperties(ctx, nil)
	must(t, err)
	equal(t, []any{*found.ContentType, found.CacheControl == nil}, []any{"text/html", true})
	// The SDK's names begin with a capital.
	equal(t, texts(found.Metadata), map[string]string{"Hello": "World", "A1": "1", "A_1": "2"})
	_, err = one.SetMetadata(ctx, map[string]*string{"not-a-name": to.Ptr("1")}, nil)
	refused(t, err, 400, bloberror.InvalidMetadata)
}

func TestTags(t *testing.T) {
	t.Parallel()
	one, in := newBlob(t)
	place := fresh()
	_, err := one.SetTags(ctx, map[string]string{"place": place, "number": "5"}, nil)
	must(t, err)
	tags, err := one.GetTags(ctx, nil)
	must(t, err)
	found := map[string]string{}
	for _, tag := range tags.BlobTagSet {
		found[*tag.Key] = *tag.Value
	}
	equal(t, found, map[string]string{"place": place, "number": "5"})
	for where, expected := range map[string]int{"number > '4'": 1, "number = '6'": 0} {
		blobs, err := newService(t).FilterBlobs(ctx, fmt.Sprintf("place='%s' AND %s", place, where), nil)
		must(t, err)
		equal(t, len(blobs.Blobs), expected)
		blobs2, err := in.FilterBlobs(ctx, where, nil)
		must(t, err)
		equal(t, len(blobs2.Blobs), expected)
	}
}

func TestTiers(t *testing.T) {
	t.Parallel()
	one, _ := newBlob(t)
	_, err := one.SetTier(ctx, blob.AccessTierArchive, nil)
	must(t, err)
	_, err = download(one, nil)
	refused(t, err, 409, bloberror.BlobArchived)
	_, err = one.SetTier(ctx, blob.AccessTierHot, &blob.SetTierOptions{RehydratePriority: to.Ptr(blob.RehydratePriorityHigh)})
	must(t, err)
	found, err := one.GetProperties(ctx, nil)
	must(t, err)
	equal(t, []string{*found.AccessTier, *found.ArchiveStatus}, []string{"Archive", "rehydrate-pending-to-hot"})
}

func TestSnapshots(t *testing.T) {
	t.Parallel()
	one, _ := newBlob(t)
	taken, err := one.CreateSnapshot(ctx, nil)
	must(t, err)
	put(t, one, "new")
	old, err := one.WithSnapshot(*taken.Snapshot)
	must(t, err)
	equal(t, []string{content(t, old), content(t, one)}, []string{digits, "new"})
	_, err = one.Delete(ctx, nil)
	refused(t, err, 409, bloberror.SnapshotsPresent)
	_, err = one.Delete(ctx, &blob.DeleteOptions{DeleteSnapshots: to.Ptr(blob.DeleteSnapshotsOptionTypeInclude)})
	must(t, err)
	_, err = download(old, nil)
	refused(t, err, 404, bloberror.BlobNotFound)
}

func TestCopies(t *testing.T) {
	t.Parallel()
	one, in := newBlob(t)
	copied := in.NewBlobClient("copy")
	started, err := copied.StartCopyFromURL(ctx, one.URL(), nil)
	must(t, err)
	found, err := copied.GetProperties(ctx, nil)
	must(t, err)
	equal(t, []any{content(t, copied), *found.CopyStatus, *found.CopyID, *found.CopyProgress}, []any{digits, blob.CopyStatusTypeSuccess, *started.CopyID, "10/10"})
	other := in.NewBlobClient("other")
	_, err = other.CopyFromURL(ctx, signed(t, one), nil)
	must(t, err)
	equal(t, content(t, other), digits)
	_, err = copied.StartCopyFromURL(ctx, in.NewBlobClient("missing").URL(), nil)
	refused(t, err, 404, bloberror.BlobNotFound)
	_, err = copied.AbortCopyFromURL(ctx, *started.CopyID, nil)
	refused(t, err, 409, bloberror.NoPendingCopyOperation)
}

func TestAppendBlobs(t *testing.T) {
	t.Parallel()
	source, in := newBlob(t)
	log := in.NewAppendBlobClient("log")
	_, err := log.Create(ctx, nil)
	must(t, err)
	var appends sync.WaitGroup
	for number := range 20 {
		appends.Add(1)
		go func() {
			defer appends.Done()
			if _, err := log.AppendBlock(ctx, body(fmt.Sprintf("%02d;", number)), nil); err != nil {
				t.Error(err)
			}
		}()
	}
	appends.Wait()
	lines := strings.Split(strings.TrimSuffix(content(t, log), ";"), ";")
	sort.Strings(lines)
	equal(t, []any{len(lines), lines[0], lines[19]}, []any{20, "00", "19"})
	_, err = log.AppendBlock(ctx, body("x"), &appendblob.AppendBlockOptions{AppendPositionAccessConditions: &appendblob.AppendPositionAccessConditions{AppendPosition: to.Ptr(int64(3))}})
	refused(t, err, 412, bloberror.AppendPositionConditionNotMet)
	answer, err := log.AppendBlockFromURL(ctx, signed(t, source), nil)
	must(t, err)
	equal(t, []any{*answer.BlobAppendOffset, *answer.BlobCommittedBlockCount}, []any{"60", int32(21)})
	_, err = log.Seal(ctx, nil)
	must(t, err)
	_, err = log.AppendBlock(ctx, body("x"), nil)
	refused(t, err, 409, bloberror.Code("BlobIsSealed"))
	_, err = in.NewAppendBlobClient("blob").AppendBlock(ctx, body("x"), nil)
	refused(t, err, 409, bloberror.InvalidBlobType)
}

const page = 512

func pages(t *testing.T, disk *pageblob.Client, since string) (written, cleared [][2]int64) {
	t.Helper()
	add := func(list pageblob.PageList) {
		for _, one := range list.PageRange {
			written = append(written, [2]int64{*one.Start / page, (*one.End + 1) / page})
		}
		for _, one := range list.ClearRange {
			cleared = append(cleared, [2]int64{*one.Start / page, (*one.End + 1) / page})
		}
	}
	if since == "" {
		for pager := disk.NewGetPageRangesPager(&pageblob.GetPageRangesOptions{MaxResults: to.Ptr(int32(2))}); pager.More(); {
			found, err := pager.NextPage(ctx)
			must(t, err)
			add(found.PageList)
		}
		return
	}
	for pager := disk.NewGetPageRangesDiffPager(&pageblob.GetPageRangesDiffOptions{PrevSnapshot: &since}); pager.More(); {
		found, err := pager.NextPage(ctx)
		must(t, err)
		add(found.PageList)
	}
	return
}

func TestPageBlobs(t *testing.T) {
	t.Parallel()
	in, _ := newContainer(t)
	disk := in.NewPageBlobClient("disk")
	_, err := disk.Create(ctx, 16*page, nil)
	must(t, err)
	write := func(number, count int64, letter string) error {
		_, err := disk.UploadPages(ctx, body(strings.Repeat(letter, int(count)*page)), blob.HTTPRange{Offset: number * page, Count: count * page}, nil)
		return err
	}
	must(t, write(0, 4, "a"))
	taken, err := disk.CreateSnapshot(ctx, nil)
	must(t, err)
	_, err = disk.ClearPages(ctx, blob.HTTPRange{Offset: page, Count: page}, nil)
	must(t, err)
	must(t, write(8, 1, "b"))
	written, cleared := pages(t, disk, "")
	equal(t, [][][2]int64{written, cleared}, [][][2]int64{{{0, 1}, {2, 4}, {8, 9}}, nil})
	written, cleared = pages(t, disk, *taken.Snapshot)
	equal(t, [][][2]int64{written, cleared}, [][][2]int64{{{8, 9}}, {{1, 2}}})
	found := content(t, disk)
	equal(t, []any{len(found), found[0], found[page], found[8*page]}, []any{16 * page, byte('a'), byte(0), byte('b')})
	refused(t, write(16, 1, "c"), 416, bloberror.InvalidPageRange)
	_, err = disk.Resize(ctx, 2*page, nil)
	must(t, err)
	_, err = disk.UpdateSequenceNumber(ctx, &pageblob.UpdateSequenceNumberOptions{ActionType: to.Ptr(pageblob.SequenceNumberActionTypeUpdate), SequenceNumber: to.Ptr(int64(7))})
	must(t, err)
	properties, err := disk.GetProperties(ctx, nil)
	must(t, err)
	equal(t, []int64{*properties.ContentLength, *properties.BlobSequenceNumber}, []int64{2 * page, 7})
}

func TestConditions(t *testing.T) {
	t.Parallel()
	one, _ := newBlob(t)
	found, err := one.GetProperties(ctx, nil)
	must(t, err)
	unmet := func(when *blob.ModifiedAccessConditions, status int) {
		t.Helper()
		conditions := &blob.AccessConditions{ModifiedAccessConditions: when}
		_, err := download(one, &blob.DownloadStreamOptions{AccessConditions: conditions})
		refused(t, err, status, bloberror.ConditionNotMet)
		_, err = one.SetMetadata(ctx, metadata, &blob.SetMetadataOptions{AccessConditions: conditions})
		refused(t, err, 412, bloberror.ConditionNotMet)
		_, err = one.Upload(ctx, body("new"), &blockblob.UploadOptions{AccessConditions: conditions})
		refused(t, err, 412, bloberror.ConditionNotMet)
		_, err = one.Delete(ctx, &blob.DeleteOptions{AccessConditions: conditions})
		refused(t, err, 412, bloberror.ConditionNotMet)
	}
	unmet(&blob.ModifiedAccessConditions{IfMatch: to.Ptr(azcore.ETag(`"0x8D000000000000F"`))}, 412)
	unmet(&blob.ModifiedAccessConditions{IfNoneMatch: found.ETag}, 304)
	unmet(&blob.ModifiedAccessConditions{IfModifiedSince: to.Ptr(hours(1))}, 304)
	unmet(&blob.ModifiedAccessConditions{IfUnmodifiedSince: to.Ptr(hours(-1))}, 412)
	unmet(&blob.ModifiedAccessConditions{IfTags: to.Ptr("colour='red'")}, 412)
	_, err = one.Upload(ctx, body("new"), &blockblob.UploadOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: found.ETag}}})
	must(t, err)
	equal(t, content(t, one), "new")
}

func TestLeases(t *testing.T) {
	t.Parallel()
	one, _ := newBlob(t)
	holder, err := lease.NewBlobClient(one, nil)
	must(t, err)
	_, err = holder.AcquireLease(ctx, 60, nil)
	must(t, err)
	_, err = one.Upload(ctx, body("new"), nil)
	refused(t, err, 412, bloberror.LeaseIDMissing)
	with := &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: holder.LeaseID()}}
	_, err = one.Upload(ctx, body("new"), &blockblob.UploadOptions{AccessConditions: with})
	must(t, err)
	other, err := lease.NewBlobClient(one, nil)
	must(t, err)
	_, err = other.AcquireLease(ctx, -1, nil)
	refused(t, err, 409, bloberror.LeaseAlreadyPresent)
	_, err = holder.RenewLease(ctx, nil)
	must(t, err)
	_, err = holder.ChangeLease(ctx, "55555555-1111-2222-3333-444444444444", nil)
	must(t, err)
	broken, err := holder.BreakLease(ctx, &lease.BlobBreakOptions{BreakPeriod: to.Ptr(int32(0))})
	must(t, err)
	equal(t, *broken.LeaseTime, int32(0))
	_, err = holder.RenewLease(ctx, nil)
	refused(t, err, 409, bloberror.LeaseIsBrokenAndCannotBeRenewed)
	_, err = holder.ReleaseLease(ctx, nil)
	must(t, err)
	found, err := one.GetProperties(ctx, nil)
	must(t, err)
	equal(t, *found.LeaseState, lease.StateTypeAvailable)
}

func TestUnusualNames(t *testing.T) {
	t.Parallel()
	in, _ := newContainer(t)
	unusual := []string{"a b  c", "a//b/", "100%", "a%20b%2Fc", "a+b", "a?b=c&d", "a#b", `a'b"c`, "<a>&amp;</a>", "[a]{b}(c)|^`~",
		"!@$*,;:=-_.", "日本語/ñ ß Ω", "👩‍👩‍👧 😀", "é", "e\u0301", "a.b..c", strings.Repeat("a", 1024), "comp=list"}
	for _, name := range unusual {
		one := in.NewBlockBlobClient(name)
		put(t, one, name)
		equal(t, content(t, one), name)
		by, err := blob.NewClientWithNoCredential(signed(t, one), &blob.ClientOptions{ClientOptions: once()})
		must(t, err)
		equal(t, content(t, by), name)
	}
	sort.Strings(unusual)
	equal(t, names(listed(t, in, nil)), unusual)
}

func TestTimesAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	one, _ := newBlob(t)
	found, err := one.GetProperties(ctx, nil)
	must(t, err)
	equal(t, found.CreationTime.Equal(*found.LastModified), true)
	equal(t, found.Date.Sub(*found.LastModified) >= 0 && time.Since(*found.LastModified) < 24*time.Hour, true)
}
