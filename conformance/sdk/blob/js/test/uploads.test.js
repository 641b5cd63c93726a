// Block blobs: what is uploaded comes back, in one request or in blocks, from buffers, files and streams.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { MIB, content, put, refusal, signed, streamed, withBlob, withContainer } from "./helper.js";

const id = (number) => Buffer.from(`block-${String(number).padStart(5, "0")}`).toString("base64");
const stage = async (blob, ...numbers) => {
  for (const number of numbers) await blob.stageBlock(id(number), `${number};`, Buffer.byteLength(`${number};`));
};
const inBlocks = { blockSize: MIB, maxSingleShotSize: MIB, concurrency: 5 };

for (const size of [0, 1, 4096, 4097, MIB, 4 * MIB, 4 * MIB + 1]) {
  test(`${size} bytes`, () =>
    withContainer(async (container) => {
      const blob = container.getBlockBlobClient("a");
      const data = randomBytes(size);
      const answer = await blob.upload(data, size);
      const md5 = createHash("md5").update(data).digest();
      assert.deepEqual(Buffer.from(answer.contentMD5), md5);
      assert.deepEqual(await streamed(blob), data);
      const found = await blob.getProperties();
      assert.deepEqual([found.contentLength, found.blobType, Buffer.from(found.contentMD5)], [size, "BlockBlob", md5]);
    }));
}

test("in parallel blocks, with progress", () =>
  withContainer(async (container) => {
    const blob = container.getBlockBlobClient("a");
    const data = randomBytes(9 * MIB + 5);
    let sent = 0;
    await blob.uploadData(data, { ...inBlocks, onProgress: ({ loadedBytes }) => (sent = Math.max(sent, loadedBytes)) });
    assert.deepEqual(await blob.downloadToBuffer(0, undefined, { blockSize: MIB, concurrency: 5 }), data);
    const { committedBlocks, uncommittedBlocks } = await blob.getBlockList("all");
    assert.deepEqual([committedBlocks.map((one) => one.size), uncommittedBlocks], [[...Array(9).fill(MIB), 5], []]);
    assert.equal(sent, data.length);
  }));

test("a stream", () =>
  withContainer(async (container) => {
    const blob = container.getBlockBlobClient("a");
    const data = randomBytes(3 * MIB + 1);
    await blob.uploadStream(Readable.from([data.subarray(0, 100), data.subarray(100, 2 * MIB), data.subarray(2 * MIB)]), MIB, 3);
    assert.deepEqual(await blob.downloadToBuffer(), data);
    await blob.uploadStream(Readable.from([]), MIB, 3);
    assert.equal((await blob.getProperties()).contentLength, 0);
  }));

test("a file", () =>
  withContainer(async (container) => {
    const folder = await mkdtemp(join(tmpdir(), "partita-"));
    const data = randomBytes(2 * MIB + 3);
    await writeFile(join(folder, "in"), data);
    const blob = container.getBlockBlobClient("a");
    await blob.uploadFile(join(folder, "in"), inBlocks);
    await blob.downloadToFile(join(folder, "out"));
    assert.deepEqual(await readFile(join(folder, "out")), data);
    await rm(folder, { recursive: true });
  }));

test("what comes with an upload", () =>
  withContainer(async (container) => {
    const blob = container.getBlockBlobClient("a");
    const blobHTTPHeaders = {
      blobContentType: "text/html",
      blobContentEncoding: "gzip",
      blobContentLanguage: "de",
      blobContentDisposition: "attachment",
      blobCacheControl: "no-cache",
    };
    const more = { blobHTTPHeaders, metadata: { Key: "Value" }, tags: { t: "1" }, tier: "Cool" };
    for (const upload of [() => blob.upload("abc", 3, more), () => blob.uploadData(Buffer.from("abc"), { ...more, maxSingleShotSize: 1, blockSize: 1 })]) {
      await upload();
      const found = await blob.getProperties();
      assert.deepEqual([found.contentType, found.contentEncoding, found.contentLanguage], ["text/html", "gzip", "de"]);
      assert.deepEqual([found.contentDisposition, found.cacheControl, found.accessTier], ["attachment", "no-cache", "Cool"]);
      assert.deepEqual([found.metadata, found.tagCount], [{ key: "Value" }, 1]); // the SDK's names are in lower case
      assert.deepEqual((await blob.getTags()).tags, { t: "1" });
      await blob.delete();
    }
  }));

test("an upload overwrites unless told not to", () =>
  withBlob(async (blob) => {
    await blob.upload("new", 3);
    await refusal(blob.upload("other", 5, { conditions: { ifNoneMatch: "*" } }), 409, "BlobAlreadyExists");
    await refusal(blob.uploadData(Buffer.from("other"), { maxSingleShotSize: 1, blockSize: 2, conditions: { ifNoneMatch: "*" } }), 409, "BlobAlreadyExists");
    assert.equal(await content(blob), "new");
  }));

test("fifty uploads to one blob: one of them is there, whole", () =>
  withContainer(async (container) => {
    const bodies = [...Array(50).keys()].map((number) => String.fromCharCode(65 + number).repeat(50_000 + number));
    const answers = await Promise.all(bodies.map((body) => put(container, "one", body)));
    const { etag } = await container.getBlobClient("one").getProperties();
    assert.equal(await content(container.getBlobClient("one")), bodies[answers.findIndex((answer) => answer.etag === etag)]);
    assert.equal(new Set(answers.map((answer) => answer.etag)).size, 50);
  }));

test("blocks are staged, and committed in the order given", () =>
  withContainer(async (container) => {
    const blob = container.getBlockBlobClient("a");
    await stage(blob, 1, 2, 3);
    await refusal(blob.download(), 404, "BlobNotFound");
    const before = await blob.getBlockList("all");
    assert.deepEqual(before.uncommittedBlocks.map((one) => [one.name, one.size]), [1, 2, 3].map((number) => [id(number), 2]));
    await blob.commitBlockList([id(3), id(1), id(1)]);
    assert.equal(await content(blob), "3;1;1;");
    const after = await blob.getBlockList("all");
    assert.deepEqual([after.committedBlocks.map((one) => one.name), after.uncommittedBlocks], [[id(3), id(1), id(1)], []]);
    await stage(blob, 4);
    await blob.commitBlockList([id(1), id(4)]);
    assert.equal(await content(blob), "1;4;");
  }));

test("block lists that are refused", () =>
  withContainer(async (container) => {
    const blob = container.getBlockBlobClient("a");
    await stage(blob, 1);
    await refusal(blob.commitBlockList([id(1), id(2)]), 400, "InvalidBlockList");
    await refusal(blob.stageBlock("no base64!", "a", 1), 400, "InvalidQueryParameterValue");
    await refusal(blob.stageBlock(id(2), "", 0), 400, "InvalidHeaderValue");
  }));

test("content that was damaged on its way", () =>
  withContainer(async (container) => {
    const blob = container.getBlockBlobClient("a");
    const md5 = createHash("md5").update("other").digest();
    await refusal(blob.stageBlock(id(1), "a", 1, { transactionalContentMD5: md5 }), 400, "Md5Mismatch");
    await refusal(blob.stageBlock(id(1), "a", 1, { transactionalContentCrc64: Buffer.alloc(8) }), 400, "Crc64Mismatch");
    await blob.stageBlock(id(1), "a", 1, { transactionalContentMD5: createHash("md5").update("a").digest() });
  }));

test("from addresses", () =>
  withBlob(async (blob, container) => {
    const joined = container.getBlockBlobClient("joined");
    await joined.stageBlockFromURL(id(1), await signed(blob), 2, 3);
    await joined.stageBlockFromURL(id(2), await signed(blob));
    await joined.commitBlockList([id(1), id(2)]);
    assert.equal(await content(joined), "2340123456789");
    const copy = container.getBlockBlobClient("copy");
    await copy.syncUploadFromURL(await signed(blob), { metadata: { b: "2" } });
    assert.deepEqual([await content(copy), (await copy.getProperties()).metadata], ["0123456789", { b: "2" }]);
  }));
