package conformance

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
)

func TestSizes(t *testing.T) {
	for _, size := range []int{0, 1, 4096, 4097, mib, 4 * mib, 4*mib + 1} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			in, _ := newContainer(t)
			one, data := in.NewBlockBlobClient("a"), random(size)
			answer := put(t, one, string(data))
			sum := md5.Sum(data)
			equal(t, answer.ContentMD5, sum[:])
			equal(t, content(t, one) == string(data), true)
			found, err := one.GetProperties(ctx, nil)
			must(t, err)
			equal(t, []any{*found.ContentLength, *found.BlobType, found.ContentMD5}, []any{int64(size), blob.BlobTypeBlockBlob, sum[:]})
		})
	}
}

func TestUploadsInBlocks(t *testing.T) {
	t.Parallel()
	in, _ := newContainer(t)
	data := random(9*mib + 5)
	one := in.NewBlockBlobClient("a")
	_, err := one.UploadStream(ctx, bytes.NewReader(data), &blockblob.UploadStreamOptions{BlockSize: mib, Concurrency: 5})
	must(t, err)
	found := make([]byte, len(data))
	_, err = one.DownloadBuffer(ctx, found, &blob.DownloadBufferOptions{BlockSize: mib, Concurrency: 5})
	must(t, err)
	equal(t, bytes.Equal(found, data), true)
	blocks, err := one.GetBlockList(ctx, blockblob.BlockListTypeAll, nil)
	must(t, err)
	equal(t, []int{len(blocks.CommittedBlocks), len(blocks.UncommittedBlocks)}, []int{10, 0})
}

func TestStreamsAndFiles(t *testing.T) {
	t.Parallel()
	in, _ := newContainer(t)
	data, one := random(2*mib+3), in.NewBlockBlobClient("a")
	_, err := one.UploadStream(ctx, io.LimitReader(bytes.NewReader(data), int64(len(data))), &blockblob.UploadStreamOptions{BlockSize: mib, Concurrency: 3})
	must(t, err)
	equal(t, content(t, one) == string(data), true)
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, data, 0o600))
	source, err := os.Open(path)
	must(t, err)
	_, err = in.NewBlockBlobClient("b").UploadFile(ctx, source, &blockblob.UploadFileOptions{BlockSize: mib})
	must(t, err)
	target, err := os.Create(path + ".out")
	must(t, err)
	_, err = in.NewBlobClient("b").DownloadFile(ctx, target, nil)
	must(t, err)
	found, err := os.ReadFile(path + ".out")
	must(t, err)
	equal(t, bytes.Equal(found, data), true)
}

func TestWhatComesWithAnUpload(t *testing.T) {
	t.Parallel()
	in, _ := newContainer(t)
	one := in.NewBlockBlobClient("a")
	headers := &blob.HTTPHeaders{BlobContentType: to.Ptr("text/html"), BlobCacheControl: to.Ptr("no-cache"), BlobContentLanguage: to.Ptr("de")}
	_, err := one.Upload(ctx, body("abc"), &blockblob.UploadOptions{HTTPHeaders: headers, Metadata: metadata, Tags: map[string]string{"t": "1"}, Tier: to.Ptr(blob.AccessTierCool)})
	must(t, err)
	found, err := one.GetProperties(ctx, nil)
	must(t, err)
	equal(t, []string{*found.ContentType, *found.CacheControl, *found.ContentLanguage, *found.AccessTier}, []string{"text/html", "no-cache", "de", "Cool"})
	equal(t, []any{texts(found.Metadata), *found.TagCount}, []any{map[string]string{"Key": "Value"}, int64(1)})
}

func TestCreateOnly(t *testing.T) {
	t.Parallel()
	one, _ := newBlob(t)
	missing := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}}
	_, err := one.Upload(ctx, body("new"), &blockblob.UploadOptions{AccessConditions: missing})
	refused(t, err, 409, bloberror.BlobAlreadyExists)
	_, err = one.CommitBlockList(ctx, nil, &blockblob.CommitBlockListOptions{AccessConditions: missing})
	refused(t, err, 409, bloberror.BlobAlreadyExists)
	equal(t, content(t, one), digits)
	put(t, one, "new")
	equal(t, content(t, one), "new")
}

// Each of fifty uploads is answered; at the end the blob is one of them, whole.
func TestFiftyUploadsToOneBlob(t *testing.T) {
	t.Parallel()
	in, _ := newContainer(t)
	one := in.NewBlockBlobClient("one")
	var uploads sync.WaitGroup
	var written sync.Map
	for number := range 50 {
		uploads.Add(1)
		go func() {
			defer uploads.Done()
			whole := strings.Repeat(string(rune('A'+number)), 50_000+number)
			answer, err := one.Upload(ctx, body(whole), nil)
			if err != nil {
				t.Error(err)
				return
			}
			written.Store(*answer.ETag, whole)
		}()
	}
	uploads.Wait()
	found, err := one.GetProperties(ctx, nil)
	must(t, err)
	expected, _ := written.Load(*found.ETag)
	equal(t, expected == any(content(t, one)), true)
}

func id(number int) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "block-%05d", number))
}

func stage(t *testing.T, to *blockblob.Client, numbers ...int) {
	t.Helper()
	for _, number := range numbers {
		_, err := to.StageBlock(ctx, id(number), body(fmt.Sprintf("%d;", number)), nil)
		must(t, err)
	}
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	in, _ := newContainer(t)
	one := in.NewBlockBlobClient("a")
	stage(t, one, 1, 2, 3)
	_, err := download(one, nil)
	refused(t, err, 404, bloberror.BlobNotFound)
	_, err = one.CommitBlockList(ctx, []string{id(1), id(4)}, nil)
	refused(t, err, 400, bloberror.InvalidBlockList)
	_, err = one.CommitBlockList(ctx, []string{id(3), id(1), id(1)}, nil)
	must(t, err)
	equal(t, content(t, one), "3;1;1;")
	stage(t, one, 4)
	blocks, err := one.GetBlockList(ctx, blockblob.BlockListTypeAll, nil)
	must(t, err)
	found := []string{}
	for _, block := range append(blocks.CommittedBlocks, blocks.UncommittedBlocks...) {
		found = append(found, fmt.Sprint(*block.Name, *block.Size))
	}
	equal(t, found, []string{id(3) + "2", id(1) + "2", id(1) + "2", id(4) + "2"})
	_, err = one.CommitBlockList(ctx, []string{id(1), id(4)}, nil)
	must(t, err)
	equal(t, content(t, one), "1;4;")
}

func TestDamagedContent(t *testing.T) {
	t.Parallel()
	in, _ := newContainer(t)
	one, wrong := in.NewBlockBlobClient("a"), md5.Sum([]byte("other"))
	_, err := one.StageBlock(ctx, id(1), body("a"), &blockblob.StageBlockOptions{TransactionalValidation: blob.TransferValidationTypeMD5(wrong[:])})
	refused(t, err, 400, bloberror.MD5Mismatch)
	_, err = one.StageBlock(ctx, id(1), body("a"), &blockblob.StageBlockOptions{TransactionalValidation: blob.TransferValidationTypeCRC64(1)})
	refused(t, err, 400, bloberror.Code("Crc64Mismatch"))
	_, err = one.StageBlock(ctx, id(1), body("a"), &blockblob.StageBlockOptions{TransactionalValidation: blob.TransferValidationTypeComputeCRC64()})
	must(t, err)
	_, err = one.Upload(ctx, body("a"), &blockblob.UploadOptions{TransactionalValidation: blob.TransferValidationTypeComputeCRC64()})
	must(t, err)
}

func TestFromURLs(t *testing.T) {
	t.Parallel()
	source, in := newBlob(t)
	url := signed(t, source)
	one := in.NewBlockBlobClient("joined")
	_, err := one.StageBlockFromURL(ctx, id(1), url, &blockblob.StageBlockFromURLOptions{Range: blob.HTTPRange{Offset: 2, Count: 3}})
	must(t, err)
	_, err = one.StageBlockFromURL(ctx, id(2), url, nil)
	must(t, err)
	_, err = one.CommitBlockList(ctx, []string{id(1), id(2)}, nil)
	must(t, err)
	equal(t, content(t, one), "234"+digits)
	_, err = in.NewBlockBlobClient("copy").UploadBlobFromURL(ctx, url, nil)
	must(t, err)
	equal(t, content(t, in.NewBlobClient("copy")), digits)
}

func TestRanges(t *testing.T) {
	t.Parallel()
	one, in := newBlob(t)
	for _, ranged := range []struct {
		offset, count int64
		expected      string
	}{{0, 1, "0"}, {9, 1, "9"}, {3, 4, "3456"}, {4, 0, "456789"}, {8, 100, "89"}, {0, 10, digits}} {
		found, err := download(one, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: ranged.offset, Count: ranged.count}})
		must(t, err)
		equal(t, found, ranged.expected)
	}
	_, err := download(one, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 10, Count: 1}})
	refused(t, err, 416, bloberror.InvalidRange)
	answer, err := one.DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 2, Count: 3}, RangeGetContentMD5: to.Ptr(true)})
	must(t, err)
	sum := md5.Sum([]byte("234"))
	equal(t, []any{answer.ContentMD5, *answer.ContentRange}, []any{sum[:], "bytes 2-4/10"})
	empty := in.NewBlockBlobClient("empty")
	put(t, empty, "")
	equal(t, content(t, empty), "")
}

// cut fails the first read of a body after some bytes, as a broken connection does.
type cut struct {
	io.ReadCloser
	left int
}

func (one *cut) Read(into []byte) (int, error) {
	if one.left == 0 {
		return 0, &net.OpError{Op: "read", Err: errors.New("the connection broke")}
	}
	count, err := one.ReadCloser.Read(into[:min(len(into), one.left)])
	one.left -= count
	return count, err
}

// The SDK's reader asks again for the rest, of the same ETag.
func TestAStreamGoesOnAfterItsConnectionBroke(t *testing.T) {
	t.Parallel()
	in, _ := newContainer(t)
	data, one := random(2*mib), in.NewBlockBlobClient("a")
	put(t, one, string(data))
	answer, err := one.DownloadStream(ctx, nil)
	must(t, err)
	answer.Body = &cut{answer.Body, mib}
	found, err := io.ReadAll(answer.NewRetryReader(ctx, &blob.RetryReaderOptions{MaxRetries: 3}))
	must(t, err)
	equal(t, bytes.Equal(found, data), true)
}
