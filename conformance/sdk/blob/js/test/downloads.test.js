// Downloads: whole, ranges, streams, checksums.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { MIB, refusal, streamed, withBlob, withContainer } from "./helper.js";

test("ranges", () =>
  withBlob(async (blob) => {
    for (const [offset, count, expected] of [
      [0, 1, "0"],
      [9, 1, "9"],
      [3, 4, "3456"],
      [4, undefined, "456789"],
      [8, 100, "89"],
      [0, 10, "0123456789"],
    ]) {
      assert.equal((await streamed(blob, offset, count)).toString(), expected);
    }
    await refusal(blob.download(10, 1), 416, "InvalidRange");
  }));

test("a range over many blocks", () =>
  withContainer(async (container) => {
    const blob = container.getBlockBlobClient("a");
    const data = randomBytes(5 * MIB + 3);
    await blob.uploadData(data, { maxSingleShotSize: MIB, blockSize: 700_000, concurrency: 4 });
    for (const [offset, count] of [[0, 1], [699_999, 2], [MIB, 3 * MIB], [5 * MIB + 2, 1]])
      assert.deepEqual(await streamed(blob, offset, count), data.subarray(offset, offset + count));
  }));

test("checksums of ranges", () =>
  withBlob(async (blob) => {
    const answer = await blob.download(2, 3, { rangeGetContentMD5: true });
    assert.deepEqual(Buffer.from(answer.contentMD5), createHash("md5").update("234").digest());
    assert.deepEqual(Buffer.from(answer.blobContentMD5), createHash("md5").update("0123456789").digest());
    assert.equal((await blob.download(2, 3, { rangeGetContentCrc64: true })).contentCrc64?.length, 8);
  }));

test("what comes with a download", () =>
  withBlob(async (blob) => {
    await blob.setMetadata({ a: "1" });
    const [found, expected] = [await blob.download(), await blob.getProperties()];
    for (const field of ["etag", "contentLength", "contentType", "lastModified", "createdOn", "blobType", "metadata", "acceptRanges"])
      assert.deepEqual(found[field], expected[field], field);
    assert.deepEqual([found.acceptRanges, found.contentRange], ["bytes", undefined]);
    assert.equal((await blob.download(1, 2)).contentRange, "bytes 1-2/10");
  }));

test("a missing blob", () =>
  withContainer(async (container) => {
    const blob = container.getBlobClient("missing");
    assert.equal(await blob.exists(), false);
    await refusal(blob.download(), 404, "BlobNotFound");
    await refusal(blob.getProperties(), 404, undefined); // an answer to HEAD has no body, where this SDK looks for the code
    await refusal(blob.delete(), 404, "BlobNotFound");
    assert.equal((await blob.deleteIfExists()).succeeded, false);
  }));
