// Queues and their service: made once, listed in pages, with metadata, policies, properties and statistics.

"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { LocationMode } = require("azure-storage").StorageUtilities;
const { client, fresh, withQueue, refusal } = require("./helper.js");

const service = client();

test("a queue is made and deleted", async () => {
  const queue = fresh();
  assert.equal((await service.doesQueueExist(queue)).exists, false);
  await service.createQueue(queue);
  assert.equal((await service.doesQueueExist(queue)).exists, true);
  await service.deleteQueue(queue);
  await refusal(service.deleteQueue(queue), 404, "QueueNotFound");
});

test("if it is missing, and if it exists", async () => {
  const queue = fresh();
  assert.equal((await service.createQueueIfNotExists(queue)).created, true);
  assert.equal((await service.createQueueIfNotExists(queue)).created, false);
  await refusal(service.createQueue(queue, { metadata: { other: "1" } }), 409, "QueueAlreadyExists");
  assert.equal(await service.deleteQueueIfExists(queue), true);
  assert.equal(await service.deleteQueueIfExists(queue), false);
});

test("metadata and the count", () =>
  withQueue(async (service, queue) => {
    await service.setQueueMetadata(queue, { foo: "bar", baz: "qux" });
    await service.createMessage(queue, "a");
    const found = await service.getQueueMetadata(queue);
    assert.deepEqual([{ ...found.metadata }, Number(found.approximateMessageCount)], [{ foo: "bar", baz: "qux" }, 1]);
    await service.setQueueMetadata(queue, {});
    assert.deepEqual({ ...(await service.getQueueMetadata(queue)).metadata }, {});
  }));

test("lists in pages, with metadata", async () => {
  const prefix = fresh().slice(0, 15);
  const names = Array.from({ length: 5 }, (_, number) => `${prefix}-${number}`);
  for (const name of names) await service.createQueue(name, { metadata: { name } });
  const found = [];
  let token = null;
  do {
    const page = await service.listQueuesSegmentedWithPrefix(prefix, token, { maxResults: 2, include: "metadata" });
    found.push(...page.entries);
    token = page.continuationToken;
  } while (token);
  assert.deepEqual(found.map(({ name }) => name), names);
  assert.deepEqual(found.map(({ metadata }) => metadata.name), names);
  for (const name of names) await service.deleteQueue(name);
});

test("policies", () =>
  withQueue(async (service, queue) => {
    const Expiry = new Date("2036-01-01T00:00:00Z");
    await service.setQueueAcl(queue, { full: { Permissions: "raup", Expiry }, reader: { Permissions: "r", Expiry } });
    const { signedIdentifiers } = await service.getQueueAcl(queue);
    assert.deepEqual(Object.keys(signedIdentifiers), ["full", "reader"]);
    assert.deepEqual([signedIdentifiers.full.Permissions, signedIdentifiers.full.Expiry.getTime()], ["raup", Expiry.getTime()]);
    await service.setQueueAcl(queue, {});
    assert.deepEqual({ ...(await service.getQueueAcl(queue)).signedIdentifiers }, {});
  }));

test("properties", async () => {
  const before = await service.getServiceProperties();
  const rule = { AllowedMethods: ["GET", "PUT"], AllowedOrigins: ["example.com"], AllowedHeaders: ["*"], ExposedHeaders: ["*"], MaxAgeInSeconds: 60 };
  await service.setServiceProperties({ ...before, Cors: { CorsRule: [rule] } });
  const found = await service.getServiceProperties();
  assert.deepEqual(found.Cors.CorsRule[0].AllowedOrigins, ["example.com"]);
  await service.setServiceProperties({ ...before, Cors: {} });
});

test("statistics", async () => {
  const { GeoReplication } = await service.getServiceStats({ locationMode: LocationMode.SECONDARY_ONLY });
  assert.equal(GeoReplication.Status, "live");
});

test("a wrong key", () => refusal(client(Buffer.alloc(64).toString("base64")).createQueue(fresh()), 403, "AuthenticationFailed"));
