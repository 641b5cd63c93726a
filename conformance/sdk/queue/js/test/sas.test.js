// Shared access signatures: the SDK's tokens do what they grant, and nothing else.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  AnonymousCredential,
  QueueSASPermissions,
  generateAccountSASQueryParameters,
  generateQueueSASQueryParameters,
} from "@azure/storage-queue";
import { ENDPOINT, OPTIONS, all, credential, fresh, peek, receive, refusal, remove, withQueue } from "./helper.js";
import { QueueClient, QueueServiceClient } from "@azure/storage-queue";

const hours = (count) => new Date(Date.now() + count * 3600_000);
const without = (letters, given) => [...letters].filter((letter) => !given.includes(letter)).join("");

const token = (queue, letters = "raup", more = {}) =>
  generateQueueSASQueryParameters(
    { queueName: queue.name, permissions: QueueSASPermissions.parse(letters), expiresOn: hours(1), ...more },
    credential,
  ).toString();
const byPolicy = (queue, more = {}) =>
  withToken(queue, generateQueueSASQueryParameters({ queueName: queue.name, identifier: "worker", ...more }, credential).toString());
const accountToken = (types, letters, services = "q") =>
  generateAccountSASQueryParameters(
    {
      services: AccountSASServices.parse(services).toString(),
      resourceTypes: AccountSASResourceTypes.parse(types).toString(),
      permissions: AccountSASPermissions.parse(letters),
      expiresOn: hours(1),
    },
    credential,
  ).toString();
const withToken = (queue, signature) => new QueueClient(`${ENDPOINT}/${queue.name}?${signature}`, new AnonymousCredential(), OPTIONS);
const serviceWith = (signature) => new QueueServiceClient(`${ENDPOINT}?${signature}`, new AnonymousCredential(), OPTIONS);
const holder = (queue, letters, more) => withToken(queue, token(queue, letters, more));
const unauthenticated = (promise) => refusal(promise, 403, "AuthenticationFailed");

const OPERATIONS = {
  peek: ["r", (queue) => peek(queue)],
  "get metadata": ["r", (queue) => queue.getProperties()],
  put: ["a", (queue) => queue.sendMessage("b")],
  update: ["u", (queue, { messageId, popReceipt }) => queue.updateMessage(messageId, popReceipt, "c", 1)],
  get: ["p", (queue) => receive(queue)],
  delete: ["p", (queue, message) => remove(queue, message)],
};
const BEYOND = {
  create: (queue) => queue.create(),
  delete: (queue) => queue.delete(),
  clear: (queue) => queue.clearMessages(),
  "set metadata": (queue) => queue.setMetadata({ a: "1" }),
  "get policies": (queue) => queue.getAccessPolicy(),
  "set policies": (queue) => queue.setAccessPolicy([]),
};

describe("tokens", { concurrency: true }, () => {
  for (const [name, [needs, act]] of Object.entries(OPERATIONS)) {
    test(`${name} needs ${needs}, which suffices`, () =>
      withQueue(async (queue) => {
        const message = await queue.sendMessage("a");
        await refusal(act(holder(queue, without("raup", needs)), message), 403, "AuthorizationPermissionMismatch");
        await act(holder(queue, needs), message);
      }));
  }
  for (const [name, act] of Object.entries(BEYOND)) {
    test(`no queue token permits to ${name}`, () => withQueue((queue) => refusal(act(holder(queue)), 403, "AuthorizationFailure")));
  }

  test("times", () =>
    withQueue(async (queue) => {
      await peek(holder(queue, "r", { startsOn: hours(-1) }));
      await unauthenticated(peek(holder(queue, "r", { startsOn: hours(0.5) })));
      await unauthenticated(peek(holder(queue, "r", { expiresOn: hours(-0.01) })));
    }));

  test("addresses and protocols", () =>
    withQueue(async (queue) => {
      await peek(holder(queue, "r", { ipRange: { start: "0.0.0.0", end: "255.255.255.255" }, protocol: "https,http" }));
      await refusal(peek(holder(queue, "r", { ipRange: { start: "203.0.113.1" } })), 403, "AuthorizationSourceIPMismatch");
      if (ENDPOINT.startsWith("http:")) await refusal(peek(holder(queue, "r", { protocol: "https" })), 403, "AuthorizationProtocolMismatch");
    }));

  test("tampered", () =>
    withQueue(async (queue) => {
      await unauthenticated(peek(withToken(queue, token(queue, "r").replace("sp=r", "sp=raup"))));
      await unauthenticated(peek(withToken({ name: fresh() }, token(queue))));
    }));

  test("a stored policy grants, is revoked, and is revived", () =>
    withQueue(async (queue) => {
      const policy = { id: "worker", accessPolicy: { permissions: "r", expiresOn: hours(1) } };
      const client = byPolicy(queue);
      await unauthenticated(peek(client));
      for (const revoked of [[], [{ ...policy, id: "other" }], [{ id: "worker", accessPolicy: { permissions: "r", expiresOn: hours(-1) } }]]) {
        await queue.setAccessPolicy([policy]);
        await peek(client);
        await refusal(client.sendMessage("a"), 403, "AuthorizationPermissionMismatch");
        await queue.setAccessPolicy(revoked);
        await unauthenticated(peek(client));
      }
      await queue.setAccessPolicy([{ id: "worker", accessPolicy: { permissions: "r" } }]);
      await peek(byPolicy(queue, { expiresOn: hours(1) }));
    }));

  const ON_ACCOUNT = {
    list: ["s", "l", (service) => all(service.listQueues())],
    "get properties": ["s", "r", (service) => service.getProperties()],
    delete: ["c", "d", (service, queue) => service.deleteQueue(queue.name)],
    "get metadata": ["c", "r", (service, queue) => service.getQueueClient(queue.name).getProperties()],
    "set metadata": ["c", "w", (service, queue) => service.getQueueClient(queue.name).setMetadata({ a: "1" })],
    clear: ["o", "d", (service, queue) => service.getQueueClient(queue.name).clearMessages()],
    ...Object.fromEntries(
      ["peek", "put", "update", "get", "delete"].map((name) => [
        `${name} message`,
        ["o", OPERATIONS[name][0], (service, queue, message) => OPERATIONS[name][1](service.getQueueClient(queue.name), message)],
      ]),
    ),
  };
  for (const [name, [type, needs, act]] of Object.entries(ON_ACCOUNT)) {
    test(`${name} with an account token`, () =>
      withQueue(async (queue) => {
        const message = await queue.sendMessage("a");
        const refused = (types, letters, code) => refusal(act(serviceWith(accountToken(types, letters)), queue, message), 403, code);
        await refused(without("sco", type), "rwdlacup", "AuthorizationResourceTypeMismatch");
        await refused("sco", without("rwdlacup", needs), "AuthorizationPermissionMismatch");
        await act(serviceWith(accountToken(type, needs)), queue, message);
      }));
  }

  test("an account token makes queues", async () => {
    for (const letter of ["c", "w"]) {
      const name = fresh();
      await serviceWith(accountToken("c", letter)).createQueue(name);
      await serviceWith(accountToken("c", "d")).deleteQueue(name);
    }
    await refusal(serviceWith(accountToken("c", "rdlaup")).createQueue(fresh()), 403, "AuthorizationPermissionMismatch");
  });

  test("an account token for services", async () => {
    await refusal(all(serviceWith(accountToken("sco", "rl", "bf")).listQueues()), 403, "AuthorizationServiceMismatch");
    assert.ok(Array.isArray(await all(serviceWith(accountToken("sco", "rl", "bqf")).listQueues())));
  });

  test("the SDK's own addresses with tokens", () =>
    withQueue(async (queue) => {
      const address = await queue.generateSasUrl({ permissions: QueueSASPermissions.parse("r"), expiresOn: hours(1) });
      assert.deepEqual(await peek(new QueueClient(address, new AnonymousCredential(), OPTIONS)), []);
    }));
});
