// Queues: made once, listed in order and in pages, with metadata and stored access policies.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { all, count, fresh, queueClient, receive, refusal, serviceClient, withQueue } from "./helper.js";

const service = serviceClient();

describe("queues", { concurrency: true }, () => {
  test("a queue is made, exists, and is deleted", async () => {
    const queue = queueClient(fresh());
    assert.equal(await queue.exists(), false);
    assert.equal((await queue.create())._response.status, 201);
    assert.equal(await queue.exists(), true);
    assert.equal((await queue.delete())._response.status, 204);
    assert.equal(await queue.exists(), false);
    await refusal(queue.delete(), 404, "QueueNotFound");
  });

  test("made if it does not exist, deleted if it does", async () => {
    const queue = queueClient(fresh());
    assert.equal((await queue.createIfNotExists()).succeeded, true);
    assert.equal((await queue.createIfNotExists()).succeeded, false);
    const other = await queue.createIfNotExists({ metadata: { a: "1" } });
    assert.deepEqual([other.succeeded, other.errorCode], [false, "QueueAlreadyExists"]);
    assert.equal((await queue.deleteIfExists()).succeeded, true);
    const gone = await queue.deleteIfExists();
    assert.deepEqual([gone.succeeded, gone.errorCode], [false, "QueueNotFound"]);
  });

  test("another queue of the name is refused", () =>
    withQueue((queue) => refusal(queue.create({ metadata: { other: "1" } }), 409, "QueueAlreadyExists")));

  test("made again at once, it is empty", () =>
    withQueue(async (queue) => {
      await queue.sendMessage("before");
      await queue.delete();
      await queue.create();
      assert.equal(await count(queue), 0);
    }));

  for (const name of ["ab", "a".repeat(64)]) {
    test(`the length of a name: ${name.length}`, () => refusal(queueClient(name).create(), 400, "OutOfRangeInput"));
  }
  for (const name of ["a_b", "-ab", "a--b", "Abc", "queue-"]) {
    test(`the characters of a name: ${name}`, () => refusal(queueClient(name).create(), 400, "InvalidResourceName"));
  }

  test("metadata comes back, and is replaced as a whole", () =>
    withQueue(async (queue) => {
      const metadata = { hello: "world", number: "43", under_score: "va@lue", json: '{"a": [1]}' };
      await queue.setMetadata(metadata);
      assert.deepEqual((await queue.getProperties()).metadata, metadata);
      await queue.setMetadata({ b: "3" });
      assert.deepEqual((await queue.getProperties()).metadata, { b: "3" });
      await queue.setMetadata();
      assert.deepEqual((await queue.getProperties()).metadata ?? {}, {});
    }));

  test("a name of metadata is an identifier", () =>
    withQueue(async (queue) => {
      await refusal(queue.setMetadata({ "invalid-meta": "1" }), 400, "InvalidMetadata");
      await refusal(queue.setMetadata({ 12345: "1" }), 400, "InvalidMetadata");
    }));

  test("the count has invisible messages too", () =>
    withQueue(async (queue) => {
      for (const text of ["a", "b", "c"]) await queue.sendMessage(text);
      await receive(queue);
      await queue.sendMessage("later", { visibilityTimeout: 60 });
      assert.equal(await count(queue), 4);
    }));

  test("policies come back", () =>
    withQueue(async (queue) => {
      const full = { permissions: "raup", startsOn: new Date("2026-01-02T03:04:05Z"), expiresOn: new Date("2036-01-01") };
      await queue.setAccessPolicy([
        { id: "full", accessPolicy: full },
        { id: "reader", accessPolicy: { permissions: "r" } },
      ]);
      const { signedIdentifiers } = await queue.getAccessPolicy();
      assert.deepEqual(signedIdentifiers.map(({ id }) => id), ["full", "reader"]);
      assert.deepEqual({ ...signedIdentifiers[0].accessPolicy }, full);
      assert.equal(signedIdentifiers[1].accessPolicy.permissions, "r");
      await queue.setAccessPolicy([]);
      assert.deepEqual((await queue.getAccessPolicy()).signedIdentifiers, []);
      const six = Array.from({ length: 6 }, (_, id) => ({ id: String(id), accessPolicy: { permissions: "r" } }));
      await refusal(queue.setAccessPolicy(six), 400, "InvalidXmlDocument");
    }));

  test("a missing queue", async () => {
    const queue = queueClient(fresh());
    await refusal(queue.getProperties(), 404, "QueueNotFound");
    await refusal(queue.setMetadata({ a: "1" }), 404, "QueueNotFound");
    await refusal(queue.getAccessPolicy(), 404, "QueueNotFound");
    await refusal(queue.setAccessPolicy([]), 404, "QueueNotFound");
  });
});

describe("lists", () => {
  const prefix = fresh("list-").slice(0, 15);
  const names = Array.from({ length: 7 }, (_, number) => `${prefix}-${number}`);
  const listed = async (options) => (await all(service.listQueues({ prefix, ...options }))).map(({ name }) => name);

  before(() => Promise.all(names.map((name) => service.createQueue(name, { metadata: { number: name.at(-1) } }))));
  after(() => Promise.all(names.map((name) => service.deleteQueue(name))));

  test("by prefix, in order", async () => {
    assert.deepEqual(await listed(), names);
    assert.deepEqual(await listed({ prefix: names[3] }), [names[3]]);
    assert.deepEqual(await listed({ prefix: prefix + "-x" }), []);
  });

  for (const maxPageSize of [1, 2, 3, 7, 8]) {
    test(`in pages of ${maxPageSize}`, async () => {
      const pages = await all(service.listQueues({ prefix }).byPage({ maxPageSize }));
      assert.deepEqual(pages.flatMap(({ queueItems }) => queueItems.map(({ name }) => name)), names);
      assert.equal(pages.length, Math.ceil(7 / maxPageSize));
    });
  }

  test("on from a token", async () => {
    const first = (await service.listQueues({ prefix }).byPage({ maxPageSize: 3 }).next()).value;
    const rest = await all(service.listQueues({ prefix }).byPage({ continuationToken: first.continuationToken }));
    assert.deepEqual(rest.flatMap(({ queueItems }) => queueItems.map(({ name }) => name)), names.slice(3));
  });

  test("with metadata", async () => {
    const found = await all(service.listQueues({ prefix, includeMetadata: true }));
    assert.deepEqual(found.map(({ metadata }) => ({ ...metadata })), names.map((name) => ({ number: name.at(-1) })));
  });
});
