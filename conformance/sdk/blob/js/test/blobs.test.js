// Properties, metadata, tags, tiers, snapshots, copies, append and page blobs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BlobClient } from "@azure/storage-blob";
import { OPTIONS, all, content, fresh, hours, names, put, refusal, serviceClient, signed, streamed, withBlob, withContainer } from "./helper.js";

test("properties of a new blob", () =>
  withBlob(async (blob) => {
    const found = await blob.getProperties();
    assert.deepEqual([found.contentLength, found.blobType, found.contentType], [10, "BlockBlob", "application/octet-stream"]);
    assert.deepEqual([found.leaseStatus, found.leaseState, found.accessTier, found.accessTierInferred], ["unlocked", "available", "Hot", true]);
    assert.deepEqual([found.isServerEncrypted, found.copyId, found.tagCount, found.metadata], [true, undefined, undefined, {}]);
    assert.deepEqual(found.createdOn, found.lastModified);
  }));

test("headers are replaced as a whole", () =>
  withBlob(async (blob) => {
    await blob.setHTTPHeaders({ blobContentType: "text/plain", blobCacheControl: "no-store", blobContentLanguage: "en" });
    await blob.setHTTPHeaders({ blobContentType: "text/html" });
    const found = await blob.getProperties();
    assert.deepEqual([found.contentType, found.cacheControl, found.contentLanguage, found.contentMD5], ["text/html", undefined, undefined, undefined]);
  }));

test("metadata is replaced", () =>
  withBlob(async (blob) => {
    await blob.setMetadata({ hello: "World", a1: "1", a_1: "2" });
    assert.deepEqual((await blob.getProperties()).metadata, { hello: "World", a1: "1", a_1: "2" });
    await blob.setMetadata({ other: "1" });
    assert.deepEqual((await blob.getProperties()).metadata, { other: "1" });
    await refusal(blob.setMetadata({ "not-a-name": "1" }), 400, "InvalidMetadata");
  }));

test("tags are replaced, and blobs are found by them", () =>
  withContainer(async (container) => {
    const place = fresh();
    for (let number = 0; number < 5; number++) await put(container, `book ${number}`, "", { tags: { place, number: `${number}` } });
    const blob = container.getBlobClient("book 0");
    assert.deepEqual((await blob.getTags()).tags, { number: "0", place });
    await blob.setTags({ "a b": "+-./:=_ " });
    assert.deepEqual((await blob.getTags()).tags, { "a b": "+-./:=_ " });
    const where = `place='${place}' AND number >= '3'`;
    assert.deepEqual(await names(container.findBlobsByTags(where)), ["book 3", "book 4"]);
    const found = await all(serviceClient().findBlobsByTags(`@container='${container.containerName}' AND place='${place}'`));
    assert.deepEqual(found.map((one) => [one.name, one.containerName, one.tags]), [1, 2, 3, 4].map((number) => [`book ${number}`, container.containerName, { place }]));
    const pages = await all(container.findBlobsByTags(`place='${place}'`).byPage({ maxPageSize: 3 }));
    assert.deepEqual(pages.map((page) => page.blobs.length), [3, 1]);
    await refusal(all(container.findBlobsByTags("nonsense")), 400, "InvalidQueryParameterValue");
  }));

test("tiers", () =>
  withBlob(async (blob) => {
    await blob.setAccessTier("Cool");
    const found = await blob.getProperties();
    assert.deepEqual([found.accessTier, found.accessTierInferred, found.accessTierChangedOn instanceof Date], ["Cool", undefined, true]);
    await blob.setAccessTier("Archive");
    await refusal(blob.download(), 409, "BlobArchived");
    await blob.setAccessTier("Hot", { rehydratePriority: "High" });
    const pending = await blob.getProperties();
    assert.deepEqual([pending.accessTier, pending.archiveStatus, pending.rehydratePriority], ["Archive", "rehydrate-pending-to-hot", "High"]);
  }));

test("a snapshot keeps what it saw", () =>
  withBlob(async (blob) => {
    await blob.setMetadata({ a: "1" });
    const { snapshot } = await blob.createSnapshot();
    await blob.upload("new", 3);
    const old = blob.withSnapshot(snapshot);
    const found = await old.getProperties();
    assert.deepEqual([await content(old), found.metadata, found.leaseState], ["0123456789", { a: "1" }, undefined]);
    await refusal(blob.delete(), 409, "SnapshotsPresent");
    await blob.delete({ deleteSnapshots: "only" });
    assert.deepEqual([await old.exists(), await blob.exists()], [false, true]);
    await blob.createSnapshot({ metadata: { own: "1" } });
    await blob.delete({ deleteSnapshots: "include" });
    assert.equal(await blob.exists(), false);
  }));

test("copies", () =>
  withBlob(async (blob, container) => {
    await blob.setMetadata({ a: "1" });
    const copy = container.getBlobClient("copy");
    const poller = await copy.beginCopyFromURL(blob.url, { intervalInMs: 1 });
    const answer = await poller.pollUntilDone();
    assert.equal(answer.copyStatus, "success");
    const found = await copy.getProperties();
    assert.deepEqual([await content(copy), found.metadata, found.copyStatus, found.copyProgress], ["0123456789", { a: "1" }, "success", "10/10"]);
    assert.deepEqual([found.copyId, found.copySource], [answer.copyId, blob.url]);
    const other = container.getBlobClient("other");
    assert.equal((await other.syncCopyFromURL(await signed(blob))).copyStatus, "success");
    assert.equal(await content(other), "0123456789");
    await refusal(other.abortCopyFromURL(answer.copyId), 409, "NoPendingCopyOperation");
    await refusal(copy.beginCopyFromURL(container.getBlobClient("missing").url), 404, "BlobNotFound");
    await refusal(copy.beginCopyFromURL(blob.url, { sourceConditions: { ifModifiedSince: hours(1) } }), 412, "SourceConditionNotMet");
  }));

test("an append blob", () =>
  withBlob(async (source, container) => {
    const log = container.getAppendBlobClient("log");
    await log.create();
    const offsets = [];
    for (const line of ["a\n", "bc\n", "d\n"]) offsets.push((await log.appendBlock(line, line.length)).blobAppendOffset);
    await log.appendBlockFromURL(await signed(source), 0, 3);
    assert.deepEqual([await content(log), offsets], ["a\nbc\nd\n012", ["0", "2", "5"]]);
    await refusal(log.appendBlock("x", 1, { conditions: { appendPosition: 3 } }), 412, "AppendPositionConditionNotMet");
    await refusal(log.appendBlock("x", 1, { conditions: { maxSize: 10 } }), 412, "MaxBlobSizeConditionNotMet");
    assert.equal((await log.createIfNotExists()).succeeded, false);
    await log.seal();
    await refusal(log.appendBlock("x", 1), 409, "BlobIsSealed");
    const found = await log.getProperties();
    assert.deepEqual([found.blobCommittedBlockCount, found.isSealed], [4, true]);
    await refusal(container.getAppendBlobClient("blob").appendBlock("x", 1), 409, "InvalidBlobType");
  }));

test("appends beside each other", () =>
  withContainer(async (container) => {
    const log = container.getAppendBlobClient("log");
    await log.create();
    const lines = [...Array(30).keys()].map((number) => `${number};`);
    await Promise.all(lines.map((line) => log.appendBlock(line, line.length)));
    assert.deepEqual((await content(log)).split(";").slice(0, -1).map(Number).sort((one, other) => one - other), [...Array(30).keys()]);
  }));

const page = (letter, count = 1) => letter.repeat(512 * count);
// Where ranges begin and end, in pages. The SDK's count is one less than the bytes.
const ranges = ({ pageRange = [], clearRange = [] }) =>
  [pageRange, clearRange].map((found) => found.map(({ offset, count }) => [offset / 512, (offset + count + 1) / 512]));

test("a page blob", () =>
  withContainer(async (container) => {
    const disk = container.getPageBlobClient("disk");
    await disk.create(16 * 512);
    assert.deepEqual(ranges(await disk.getPageRanges()), [[], []]);
    await disk.uploadPages(page("a", 4), 0, 4 * 512);
    const { snapshot } = await disk.createSnapshot();
    await disk.clearPages(512, 512);
    await disk.uploadPages(page("b"), 8 * 512, 512);
    assert.deepEqual(ranges(await disk.getPageRanges()), [[[0, 1], [2, 4], [8, 9]], []]);
    assert.deepEqual(ranges(await disk.getPageRangesDiff(0, 16 * 512, snapshot)), [[[8, 9]], [[1, 2]]]);
    assert.deepEqual((await all(disk.listPageRanges(0, 16 * 512))).length, 3);
    assert.equal((await streamed(disk)).toString(), page("a") + page("\0") + page("a", 2) + page("\0", 4) + page("b") + page("\0", 7));
    await disk.resize(2 * 512);
    assert.equal((await disk.getProperties()).contentLength, 1024);
    await disk.updateSequenceNumber("update", 7);
    await disk.updateSequenceNumber("increment");
    assert.equal((await disk.getProperties()).blobSequenceNumber, 8);
    await refusal(disk.uploadPages(page("c"), 0, 512, { conditions: { ifSequenceNumberLessThan: 8 } }), 412, "SequenceNumberConditionNotMet");
    await refusal(disk.uploadPages(page("c"), 2 * 512, 512), 416, "InvalidPageRange");
    const other = container.getPageBlobClient("other");
    await other.create(1024);
    await other.uploadPagesFromURL(await signed(disk), 0, 512, 512);
    assert.deepEqual(ranges(await other.getPageRanges()), [[[1, 2]], []]);
  }));

test("names with unusual characters", () =>
  withContainer(async (container) => {
    const unusual = ["a b  c", "a//b/", "/a", "100%", "a%20b%2Fc", "a+b", "a?b=c&d", "a#b", `a'b"c`, "<a>&amp;</a>", "[a]{b}(c)|^`~",
      "!@$*,;:=-_.", "日本語/ñ ß Ω", "👩‍👩‍👧 😀", "é", "e\u0301", "a.b..c", "a\uffffb", "a".repeat(1024), "comp=list"];
    for (const name of unusual) await put(container, name);
    for (const name of unusual) {
      assert.equal(await content(container.getBlobClient(name)), name);
      assert.equal(await content(new BlobClient(await signed(container.getBlobClient(name)), undefined, OPTIONS)), name);
    }
    assert.deepEqual((await names(container.listBlobsFlat())).sort(), [...unusual].sort());
  }));
