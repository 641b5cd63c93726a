// Lists of blobs, flat and by folders, in pages and with everything that can be included; batches.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { all, containerClient, fresh, names, put, withContainer } from "./helper.js";

// In the order of the service: by the bytes of the UTF-8 form.
const NAMES = ["A", "a", "a b", "a%2Fb", "a+b", "a-b", "a/", "a//b", "a/b", "a/b/c", "a0", "b", "ä", "日本", "😀"].sort((one, other) =>
  Buffer.compare(Buffer.from(one), Buffer.from(other)),
);
const library = containerClient(fresh());
before(async () => {
  await library.create();
  for (const name of NAMES) await put(library, name);
});
after(() => library.delete());

test("the order, and prefixes", async () => {
  assert.deepEqual(await names(library.listBlobsFlat()), NAMES);
  for (const prefix of ["a", "a/", "ä", "😀", "none"])
    assert.deepEqual(await names(library.listBlobsFlat({ prefix })), NAMES.filter((name) => name.startsWith(prefix)));
});

for (const maxPageSize of [1, 4, 15, 16]) {
  test(`pages of ${maxPageSize}`, async () => {
    const pages = await all(library.listBlobsFlat().byPage({ maxPageSize }));
    const found = pages.map((page) => page.segment.blobItems.map((one) => one.name));
    assert.deepEqual(found.flat(), NAMES);
    assert.equal(found.length, Math.ceil(NAMES.length / maxPageSize));
    const { continuationToken } = pages[0];
    if (!continuationToken) return;
    const rest = await all(library.listBlobsFlat().byPage({ continuationToken }));
    assert.deepEqual(rest.flatMap((page) => page.segment.blobItems.map((one) => one.name)), NAMES.slice(maxPageSize));
  });
}

test("folders", async () => {
  const walk = async (prefix) => (await all(library.listBlobsByHierarchy("/", { prefix }))).map((one) => [one.name, one.kind]).sort();
  const expected = [...NAMES.filter((name) => !name.includes("/")).map((name) => [name, "blob"]), ["a/", "prefix"]].sort();
  assert.deepEqual(await walk(), expected);
  assert.deepEqual(await walk("a/"), [["a/", "blob"], ["a//", "prefix"], ["a/b", "blob"], ["a/b/", "prefix"]]);
  const pages = await all(library.listBlobsByHierarchy("/").byPage({ maxPageSize: 2 }));
  const sizes = pages.map(({ segment }) => segment.blobItems.length + (segment.blobPrefixes?.length ?? 0));
  assert.deepEqual([sizes.reduce((one, other) => one + other), Math.max(...sizes)], [expected.length, 2]);
});

test("what is included", () =>
  withContainer(async (container) => {
    const blob = container.getBlockBlobClient("blob");
    await blob.upload("abc", 3, { metadata: { key: "Value" }, tags: { t: "1" } });
    await blob.createSnapshot();
    await (await container.getBlobClient("copy").beginCopyFromURL(blob.url)).pollUntilDone();
    await container.getBlockBlobClient("staged").stageBlock("MQ==", "a", 1);
    const [plain] = await all(container.listBlobsFlat());
    const properties = await blob.getProperties();
    assert.deepEqual([plain.metadata, plain.tags, plain.snapshot], [undefined, undefined, undefined]);
    assert.deepEqual([`"${plain.properties.etag}"`, plain.properties.contentLength], [properties.etag, 3]);
    assert.deepEqual([plain.properties.lastModified, plain.properties.createdOn], [properties.lastModified, properties.createdOn]);
    assert.deepEqual([plain.properties.accessTier, plain.properties.tagCount, plain.properties.leaseState], ["Hot", 1, "available"]);
    const included = await all(
      container.listBlobsFlat({ includeMetadata: true, includeTags: true, includeSnapshots: true, includeCopy: true, includeUncommitedBlobs: true }),
    );
    assert.deepEqual(included.map((one) => [one.name, Boolean(one.snapshot)]), [["blob", true], ["blob", false], ["copy", false], ["staged", false]]);
    assert.deepEqual([included[1].metadata, included[1].tags], [{ key: "Value" }, { t: "1" }]);
    assert.deepEqual([included[2].properties.copyStatus, included[2].properties.copySource], ["success", blob.url]);
  }));

test("metadata keeps the case of its names", () =>
  withContainer(async (container) => {
    await put(container, "a", "", { metadata: { MixedCase: "Value" } });
    const [found] = await all(container.listBlobsFlat({ includeMetadata: true }));
    assert.deepEqual(found.metadata, { MixedCase: "Value" });
  }));

test("batches", () =>
  withContainer(async (container) => {
    for (const name of ["a", "b ü", "c/d"]) await put(container, name);
    const batch = container.getBlobBatchClient();
    const client = (name) => container.getBlobClient(name);
    const tiers = await batch.setBlobsAccessTier([client("a"), client("b ü")], "Cool");
    assert.deepEqual(tiers.subResponses.map((one) => one.status), [200, 200]);
    const deleted = await batch.deleteBlobs([client("a"), client("missing"), client("c/d")]);
    assert.deepEqual(deleted.subResponses.map((one) => [one.status, one.errorCode]), [[202, undefined], [404, "BlobNotFound"], [202, undefined]]);
    assert.deepEqual([deleted.subResponsesSucceededCount, deleted.subResponsesFailedCount], [2, 1]);
    assert.deepEqual(await names(container.listBlobsFlat()), ["b ü"]);
  }));
