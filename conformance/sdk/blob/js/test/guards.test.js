// Conditions and leases of blobs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { content, hours, refusal, withBlob, withContainer } from "./helper.js";

const OTHER = '"0x8D000000000000F"';
const [A, B] = ["aaaaaaaa-1111-2222-3333-444444444444", "bbbbbbbb-1111-2222-3333-444444444444"];

const reads = {
  download: (blob, conditions) => blob.download(0, undefined, { conditions }),
  properties: (blob, conditions) => blob.getProperties({ conditions }),
};
const writes = {
  upload: (blob, conditions) => blob.upload("new", 3, { conditions }),
  blocks: (blob, conditions) => blob.commitBlockList([], { conditions }),
  headers: (blob, conditions) => blob.setHTTPHeaders({ blobContentType: "text/plain" }, { conditions }),
  metadata: (blob, conditions) => blob.setMetadata({ a: "1" }, { conditions }),
  delete: (blob, conditions) => blob.delete({ conditions }),
};
const met = (etag) => [
  { ifMatch: etag },
  { ifMatch: "*" },
  { ifNoneMatch: OTHER },
  { ifModifiedSince: hours(-1) },
  { ifUnmodifiedSince: hours(1) },
  { tagConditions: "colour='red'" },
];
// Conditions, and whether a read answers 304 to them instead of 412.
const unmet = (etag) => [
  [{ ifMatch: OTHER }, false],
  [{ ifNoneMatch: etag }, true],
  [{ ifModifiedSince: hours(1) }, true],
  [{ ifUnmodifiedSince: hours(-1) }, false],
  [{ tagConditions: "colour='blue'" }, false],
];
const tagged = (act) =>
  withBlob(async (blob) => {
    await blob.setTags({ colour: "red" });
    return act(blob, (await blob.getProperties()).etag);
  });
// Neither 304 nor an answer to HEAD has a body, where this SDK looks for the code first.
const conditionNotMet = async (promise, status) => {
  const error = await promise.then(
    () => assert.fail("it was done"),
    (error) => error,
  );
  assert.deepEqual([error.statusCode, error.response?.headers.get("x-ms-error-code")], [status, "ConditionNotMet"], String(error));
};

for (const [name, act] of Object.entries(reads)) {
  test(`reads: ${name}`, () =>
    tagged(async (blob, etag) => {
      for (const condition of met(etag)) await act(blob, condition);
      for (const [condition, unchanged] of unmet(etag)) await conditionNotMet(act(blob, condition), unchanged ? 304 : 412);
    }));
}

for (const [name, act] of Object.entries(writes)) {
  test(`writes: ${name}`, () =>
    tagged(async (blob, etag) => {
      for (const [condition] of unmet(etag)) await conditionNotMet(act(blob, condition), 412);
      assert.equal(await content(blob), "0123456789");
      await act(blob, met(etag)[0]);
    }));
}

test("create only", () =>
  withBlob(async (blob, container) => {
    const conditions = { ifNoneMatch: "*" };
    await refusal(blob.upload("a", 1, { conditions }), 409, "BlobAlreadyExists");
    await refusal(blob.commitBlockList([], { conditions }), 409, "BlobAlreadyExists");
    await refusal(container.getAppendBlobClient("blob").create({ conditions }), 409, "BlobAlreadyExists");
    await container.getBlockBlobClient("other").upload("a", 1, { conditions });
  }));

test("a missing blob does not match", () =>
  withContainer(async (container) => {
    const blob = container.getBlockBlobClient("missing");
    await refusal(blob.upload("a", 1, { conditions: { ifMatch: OTHER } }), 412, "ConditionNotMet");
    await refusal(blob.download(0, undefined, { conditions: { ifMatch: OTHER } }), 404, "BlobNotFound");
  }));

for (const [name, act] of Object.entries(writes)) {
  test(`a write needs the lease: ${name}`, () =>
    withBlob(async (blob) => {
      await blob.getBlobLeaseClient(A).acquireLease(-1);
      await refusal(act(blob, {}), 412, "LeaseIdMissing");
      await refusal(act(blob, { leaseId: B }), 412, "LeaseIdMismatchWithBlobOperation");
      assert.equal(await content(blob), "0123456789");
      await act(blob, { leaseId: A });
    }));
}

test("the life of a lease", () =>
  withBlob(async (blob) => {
    const lease = blob.getBlobLeaseClient(A);
    const state = async () => {
      const { leaseStatus, leaseState, leaseDuration } = await blob.getProperties();
      return [leaseStatus, leaseState, leaseDuration];
    };
    assert.equal((await lease.acquireLease(60)).leaseId, A);
    assert.deepEqual(await state(), ["locked", "leased", "fixed"]);
    await refusal(blob.getBlobLeaseClient(B).acquireLease(-1), 409, "LeaseAlreadyPresent");
    await lease.renewLease();
    await lease.changeLease(B);
    await refusal(blob.getBlobLeaseClient(A).renewLease(), 409, "LeaseIdMismatchWithLeaseOperation");
    assert.ok((await lease.breakLease(30)).leaseTime > 0);
    assert.deepEqual(await state(), ["locked", "breaking", undefined]);
    await lease.breakLease(0);
    assert.deepEqual(await state(), ["unlocked", "broken", undefined]);
    await refusal(blob.setMetadata({ a: "1" }, { conditions: { leaseId: B } }), 412, "LeaseLost");
    await lease.releaseLease();
    assert.deepEqual(await state(), ["unlocked", "available", undefined]);
    await refusal(blob.getBlobLeaseClient(A).acquireLease(10), 400, "InvalidHeaderValue");
  }));
