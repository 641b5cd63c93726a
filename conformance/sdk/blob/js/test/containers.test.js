// Containers: made once, listed in order and in pages, with metadata, policies and leases.

import assert from "node:assert/strict";
import { test } from "node:test";
import { all, containerClient, content, fresh, hours, names, noBinary, nobody, put, refusal, serviceClient, withContainer, withServer } from "./helper.js";

const service = serviceClient();

test("a container is made and deleted", async () => {
  const container = containerClient(fresh());
  assert.equal(await container.exists(), false);
  assert.equal((await container.createIfNotExists()).succeeded, true);
  assert.equal((await container.createIfNotExists()).succeeded, false);
  await refusal(container.create(), 409, "ContainerAlreadyExists");
  assert.equal(await container.exists(), true);
  assert.equal((await container.deleteIfExists()).succeeded, true);
  assert.equal((await container.deleteIfExists()).succeeded, false);
  await refusal(container.delete(), 404, "ContainerNotFound");
});

test("a deleted name is free at once, and empty", () =>
  withContainer(async (container) => {
    await put(container, "a");
    await container.delete();
    await container.create();
    assert.deepEqual(await all(container.listBlobsFlat()), []);
  }));

test("names that are refused", async () => {
  for (const name of ["a_b", "-ab", "a--b", "Abc", "abc-"]) await refusal(containerClient(name).create(), 400, "InvalidResourceName");
});

test("metadata is replaced", () =>
  withContainer(async (container) => {
    await container.setMetadata({ hello: "World", number_1: "42" });
    assert.deepEqual((await container.getProperties()).metadata, { hello: "World", number_1: "42" });
    await container.setMetadata({ other: "1" });
    assert.deepEqual((await container.getProperties()).metadata, { other: "1" });
  }));

test("properties", () =>
  withContainer(async (container) => {
    const found = await container.getProperties();
    assert.deepEqual([found.leaseStatus, found.leaseState, found.leaseDuration], ["unlocked", "available", undefined]);
    assert.deepEqual([found.blobPublicAccess, found.hasImmutabilityPolicy, found.hasLegalHold], [undefined, false, false]);
    assert.match(found.etag, /^"0x[0-9A-F]+"$/);
  }));

test("lists: a prefix, metadata, pages", async () => {
  const prefix = fresh();
  const made = await Promise.all(
    [...Array(7).keys()].map((number) => service.createContainer(`${prefix}-${number}`, { metadata: { number: `${number}` } })),
  );
  const found = await all(service.listContainers({ prefix, includeMetadata: true }));
  assert.deepEqual(found.map((one) => [one.name, one.metadata.number]), [...Array(7).keys()].map((number) => [`${prefix}-${number}`, `${number}`]));
  assert.deepEqual([found[0].properties.leaseState, found[0].properties.publicAccess], ["available", undefined]);
  const pages = await all(service.listContainers({ prefix }).byPage({ maxPageSize: 3 }));
  assert.deepEqual(pages.map((page) => page.containerItems.length), [3, 3, 1]);
  const rest = service.listContainers({ prefix }).byPage({ continuationToken: pages[0].continuationToken });
  assert.deepEqual((await rest.next()).value.containerItems.map((one) => one.name), found.slice(3).map((one) => one.name));
  await Promise.all(made.map(({ containerClient }) => containerClient.delete()));
});

test("policies come back", () =>
  withContainer(async (container) => {
    assert.deepEqual((await container.getAccessPolicy()).signedIdentifiers, []);
    const [startsOn, expiresOn] = [hours(-2), hours(2)];
    await container.setAccessPolicy(undefined, [
      { id: "whole", accessPolicy: { permissions: "racwdl", startsOn, expiresOn } },
      { id: "only permission", accessPolicy: { permissions: "r" } },
    ]);
    const { signedIdentifiers: found, blobPublicAccess } = await container.getAccessPolicy();
    assert.deepEqual(found.map((one) => [one.id, one.accessPolicy.permissions]), [["whole", "racwdl"], ["only permission", "r"]]);
    assert.equal(Math.trunc(found[0].accessPolicy.expiresOn / 1000), Math.trunc(expiresOn / 1000));
    assert.equal(blobPublicAccess, undefined);
  }));

test("nobody reads without a key", () =>
  withContainer(async (container) => {
    await put(container, "a", "1");
    const stranger = containerClient(container.containerName, undefined, nobody);
    await refusal(stranger.getBlobClient("a").download(), 401, "NoAuthenticationInformation");
    await refusal(all(stranger.listBlobsFlat()), 401, "NoAuthenticationInformation");
    await container.setAccessPolicy("container");
    assert.equal((await container.getProperties()).blobPublicAccess, "container");
    await refusal(stranger.getBlobClient("a").download(), 409, "PublicAccessNotPermitted"); // the operator allows it, or not
  }));

test("public access", { skip: noBinary }, () =>
  withServer(["--blob-public-access", "on"], async (endpoint) => {
    for (const [level, reads, lists] of [[undefined, false, false], ["blob", true, false], ["container", true, true]]) {
      await withContainer(async (container) => {
        await put(container, "a", "1");
        await container.setAccessPolicy(level);
        const stranger = containerClient(container.containerName, endpoint, nobody);
        for (const [allowed, act] of [
          [reads, () => stranger.getBlobClient("a").download()],
          [lists, () => all(stranger.listBlobsFlat())],
          [false, () => put(stranger, "b")],
        ]) {
          await (allowed ? act() : refusal(act(), 401, "NoAuthenticationInformation"));
        }
      }, serviceClient(endpoint));
    }
  }));

test("a lease guards deletion", () =>
  withContainer(async (container) => {
    const lease = container.getBlobLeaseClient();
    await lease.acquireLease(60);
    assert.equal((await container.getProperties()).leaseDuration, "fixed");
    await put(container, "a");
    await refusal(container.delete(), 412, "LeaseIdMissing");
    await lease.renewLease();
    await lease.changeLease("55555555-1111-2222-3333-444444444444");
    assert.equal((await lease.breakLease(0)).leaseTime, 0);
    assert.equal((await container.getProperties()).leaseState, "broken");
    await lease.releaseLease();
    assert.equal((await container.getProperties()).leaseState, "available");
  }));

test("conditions", () =>
  withContainer(async (container) => {
    await refusal(container.delete({ conditions: { ifUnmodifiedSince: hours(-1) } }), 412, "ConditionNotMet");
    await container.delete({ conditions: { ifModifiedSince: hours(-1) } });
  }));

test("a missing container", async () => {
  const missing = containerClient(fresh());
  for (const act of [
    () => missing.getProperties(),
    () => missing.getAccessPolicy(),
    () => missing.setMetadata({ a: "1" }),
    () => put(missing, "a"),
    () => all(missing.listBlobsFlat()),
  ])
    await refusal(act(), 404, "ContainerNotFound");
});

test("blobs through the container", () =>
  withContainer(async (container) => {
    const { blockBlobClient } = await container.uploadBlockBlob("a", "1", 1);
    assert.equal(await content(blockBlobClient), "1");
    await container.deleteBlob("a");
    assert.deepEqual(await names(container.listBlobsFlat()), []);
  }));
