// Shared access signatures: the SDK's tokens do what they grant, and nothing else.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  BlobClient,
  BlobSASPermissions,
  BlobServiceClient,
  BlockBlobClient,
  ContainerClient,
  ContainerSASPermissions,
} from "@azure/storage-blob";
import { OPTIONS, all, content, fresh, hours, names, put, refusal, serviceClient, withBlob, withContainer } from "./helper.js";

const holder = async (blob, letters, more) =>
  new BlockBlobClient(
    await blob.generateSasUrl({ permissions: BlobSASPermissions.parse(letters), expiresOn: hours(1), ...more }),
    undefined,
    OPTIONS,
  );
const containerHolder = async (container, letters, more) =>
  new ContainerClient(
    await container.generateSasUrl({ permissions: letters && ContainerSASPermissions.parse(letters), expiresOn: letters && hours(1), ...more }),
    undefined,
    OPTIONS,
  );
const accountHolder = (types, letters) =>
  new BlobServiceClient(
    serviceClient().generateAccountSasUrl(hours(1), AccountSASPermissions.parse(letters), AccountSASResourceTypes.parse(types).toString()),
    undefined,
    OPTIONS,
  );
const unauthenticated = (promise) => refusal(promise, 403, "AuthenticationFailed");

const operations = {
  download: ["r", (blob) => blob.download()],
  "block list": ["r", (blob) => blob.getBlockList("all")],
  overwrite: ["w", (blob) => blob.upload("new", 3)],
  metadata: ["w", (blob) => blob.setMetadata({ a: "1" })],
  lease: ["w", (blob) => blob.getBlobLeaseClient().acquireLease(15)],
  delete: ["d", (blob) => blob.delete()],
  "get tags": ["t", (blob) => blob.getTags()],
  "set tags": ["t", (blob) => blob.setTags({ a: "1" })],
};
for (const [name, [needs, act]] of Object.entries(operations)) {
  test(`${name} needs ${needs}`, () =>
    withBlob(async (blob, container) => {
      await refusal(holder(blob, "rawdt".replace(needs, "")).then(act), 403, "AuthorizationPermissionMismatch");
      const byContainer = await containerHolder(container, "rawdt".replace(needs, ""));
      await refusal(act(byContainer.getBlockBlobClient("blob")), 403, "AuthorizationPermissionMismatch");
      await act(await holder(blob, needs));
    }));
}

test("create is not overwrite", () =>
  withContainer(async (container) => {
    const blob = container.getBlockBlobClient("a");
    await (await holder(blob, "c")).upload("new", 3);
    await refusal((await holder(blob, "c")).upload("other", 5), 403, "UnauthorizedBlobOverwrite");
    assert.equal(await content(blob), "new");
  }));

test("a container's token lists, but does not delete its container", () =>
  withBlob(async (_, container) => {
    assert.deepEqual(await names((await containerHolder(container, "l")).listBlobsFlat()), ["blob"]);
    await refusal(all((await containerHolder(container, "r")).listBlobsFlat()), 403, "AuthorizationPermissionMismatch");
    await refusal((await containerHolder(container, "racwdl")).delete(), 403, "AuthorizationFailure");
  }));

test("a token is for its blob and its time", () =>
  withBlob(async (blob, container) => {
    await put(container, "other");
    const url = new URL((await holder(blob, "r")).url);
    url.pathname = url.pathname.replace(/blob$/, "other");
    await unauthenticated(new BlobClient(url.href, undefined, OPTIONS).download());
    await unauthenticated((await holder(blob, "r", { startsOn: hours(0.5) })).download());
    await unauthenticated((await holder(blob, "r", { expiresOn: hours(-0.01) })).download());
    await refusal((await holder(blob, "r", { ipRange: { start: "203.0.113.1", end: "203.0.113.9" } })).download(), 403, "AuthorizationSourceIPMismatch");
  }));

test("a token for a snapshot", () =>
  withBlob(async (blob) => {
    const { snapshot } = await blob.createSnapshot();
    await blob.upload("new", 3);
    assert.equal(await content(await holder(blob.withSnapshot(snapshot), "r")), "0123456789");
  }));

test("headers of the answer", () =>
  withBlob(async (blob) => {
    const more = { cacheControl: "no-cache", contentDisposition: 'attachment; filename="a b.txt"', contentLanguage: "de", contentType: "text/plain" };
    const found = await (await holder(blob, "r", more)).download();
    for (const [name, value] of Object.entries(more)) assert.equal(found[name], value);
  }));

test("a stored policy grants, and is revoked", () =>
  withBlob(async (_, container) => {
    const client = (await containerHolder(container, undefined, { identifier: "reader" })).getBlobClient("blob");
    await unauthenticated(client.download());
    await container.setAccessPolicy(undefined, [{ id: "reader", accessPolicy: { permissions: "r", expiresOn: hours(1) } }]);
    assert.equal(await content(client), "0123456789");
    await refusal(client.delete(), 403, "AuthorizationPermissionMismatch");
    await container.setAccessPolicy(undefined, []);
    await unauthenticated(client.download());
  }));

test("a token of the account", async () => {
  const service = accountHolder("sco", "rwdlact");
  const name = fresh();
  const { containerClient } = await service.createContainer(name);
  await put(containerClient, "a", "1");
  assert.deepEqual([await names(containerClient.listBlobsFlat()), await names(service.listContainers({ prefix: name }))], [["a"], [name]]);
  const blob = (types) => accountHolder(types, "r").getContainerClient(name).getBlobClient("a");
  assert.equal(await content(blob("o")), "1");
  await refusal(blob("sc").download(), 403, "AuthorizationResourceTypeMismatch");
  await refusal(blob("o").delete(), 403, "AuthorizationPermissionMismatch");
  await containerClient.delete();
});
