// Messages: what is put comes back; visibility and receipts; limits and errors; tokens.

"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const azure = require("azure-storage");
const { ACCOUNT, ENDPOINT, KEY, promising, signer, fresh, withQueue, texts, refusal } = require("./helper.js");

const { TextBase64QueueMessageEncoder, BinaryBase64QueueMessageEncoder, TextXmlQueueMessageEncoder } = azure.QueueMessageEncoder;
const ID = "0a1b2c3d-192b-4f77-a501-2ba4be007ea5";
const RECEIPT = "AgAAAAMAAAAAAAAAkP0RP0Fx2QE=";
const gone = (promise) => refusal(promise, 404, "MessageNotFound");
const hours = (count) => new Date(Date.now() + count * 3600_000);

function coded(encoder) {
  const service = signer();
  service.messageEncoder = encoder;
  return promising(service);
}

for (const [name, text] of Object.entries({
  plain: "hello",
  markup: "<a href='x'>\"&amp;\"</a>",
  unicode: "日本語 ñ 😀",
  longest: "a".repeat(65536),
})) {
  test(`a text comes back: ${name}`, () =>
    withQueue(async (_, queue) => {
      const service = coded(new TextXmlQueueMessageEncoder());
      await service.createMessage(queue, text);
      assert.deepEqual(texts(await service.peekMessages(queue)), [text]);
      const message = await service.getMessage(queue);
      assert.equal(message.messageText, text);
      await service.deleteMessage(queue, message.messageId, message.popReceipt);
    }));
}

test("base64 of texts and of bytes", () =>
  withQueue(async (_, queue) => {
    const text = coded(new TextBase64QueueMessageEncoder());
    await text.createMessage(queue, "é");
    assert.equal((await coded(undefined).getMessage(queue)).messageText, "w6k=");
    const bytes = coded(new BinaryBase64QueueMessageEncoder());
    await bytes.createMessage(queue, Buffer.from([0, 1, 255]));
    assert.deepEqual((await bytes.getMessage(queue)).messageText, Buffer.from([0, 1, 255]));
  }));

test("what is too long", () =>
  withQueue((_, queue) =>
    refusal(coded(new TextXmlQueueMessageEncoder()).createMessage(queue, "a".repeat(65537)), 413, "RequestBodyTooLarge")));

test("order, several messages, clear", () =>
  withQueue(async (service, queue) => {
    for (const text of ["1", "2", "3"]) await service.createMessage(queue, text);
    assert.deepEqual(texts(await service.peekMessages(queue, { numOfMessages: 32 })), ["1", "2", "3"]);
    assert.deepEqual(texts(await service.getMessages(queue, { numOfMessages: 2, visibilityTimeout: 60 })), ["1", "2"]);
    await service.clearMessages(queue);
    assert.deepEqual(await service.getMessages(queue, { numOfMessages: 32 }), []);
  }));

test("visibility, update and receipts", () =>
  withQueue(async (service, queue) => {
    const put = await service.createMessage(queue, "a", { messageTimeToLive: 600, visibilityTimeout: 0 });
    const first = await service.getMessage(queue, { visibilityTimeout: 60 });
    assert.deepEqual([first.messageId, Number(first.dequeueCount)], [put.messageId, 1]);
    assert.deepEqual(await service.peekMessages(queue), []);
    const renewed = await service.updateMessage(queue, first.messageId, first.popReceipt, 30);
    await gone(service.deleteMessage(queue, first.messageId, first.popReceipt));
    await service.updateMessage(queue, first.messageId, renewed.popReceipt, 0, { messageText: "b" });
    const second = await service.getMessage(queue);
    assert.deepEqual([second.messageText, Number(second.dequeueCount)], ["b", 2]);
    await service.deleteMessage(queue, second.messageId, second.popReceipt);
    await gone(service.deleteMessage(queue, second.messageId, second.popReceipt));
  }));

test("errors", () =>
  withQueue(async (service, queue) => {
    await refusal(service.createMessage(fresh(), "a"), 404, "QueueNotFound");
    await refusal(service.getMessages(fresh()), 404, "QueueNotFound");
    await refusal(service.getMessages(queue, { numOfMessages: 33 }), 400, "OutOfRangeQueryParameterValue");
    await gone(service.deleteMessage(queue, ID, RECEIPT));
    await refusal(service.deleteMessage(queue, ID, "invalid"), 400, "InvalidQueryParameterValue");
    await refusal(service.updateMessage(queue, ID, "invalid", 1), 400, "InvalidQueryParameterValue");
  }));

// Tokens, of version 2018-03-28

const withToken = (token) => promising(azure.createQueueServiceWithSas(ENDPOINT, token));
const queueToken = (queue, Permissions, more = {}) =>
  signer().generateSharedAccessSignature(queue, { AccessPolicy: { Permissions, Expiry: hours(1), ...more } });
const accountToken = (ResourceTypes, Permissions, Services = "q") =>
  azure.generateAccountSharedAccessSignature(ACCOUNT, KEY, { AccessPolicy: { ResourceTypes, Permissions, Services, Expiry: hours(1) } });

test("permissions of a queue token", () =>
  withQueue(async (service, queue) => {
    const operations = {
      r: (holder) => holder.peekMessages(queue),
      a: (holder) => holder.createMessage(queue, "a"),
      u: async (holder) => {
        const { messageId, popReceipt } = await service.createMessage(queue, "b");
        return holder.updateMessage(queue, messageId, popReceipt, 0);
      },
      p: (holder) => holder.getMessages(queue),
    };
    for (const [letter, act] of Object.entries(operations)) {
      await act(withToken(queueToken(queue, letter)));
      await refusal(act(withToken(queueToken(queue, "raup".replace(letter, "")))), 403, "AuthorizationPermissionMismatch");
    }
    await refusal(withToken(queueToken(queue, "raup")).deleteQueue(queue), 403, "AuthorizationFailure");
    await refusal(withToken(queueToken(queue, "r", { Start: hours(0.5) })).peekMessages(queue), 403, "AuthenticationFailed");
    await refusal(withToken(queueToken(queue, "r", { Expiry: hours(-0.01) })).peekMessages(queue), 403, "AuthenticationFailed");
  }));

test("a stored policy", () =>
  withQueue(async (service, queue) => {
    const holder = withToken(signer().generateSharedAccessSignature(queue, { Id: "worker" }));
    await refusal(holder.peekMessages(queue), 403, "AuthenticationFailed");
    await service.setQueueAcl(queue, { worker: { Permissions: "r", Expiry: hours(1) } });
    assert.deepEqual(await holder.peekMessages(queue), []);
    await refusal(holder.createMessage(queue, "a"), 403, "AuthorizationPermissionMismatch");
    await service.setQueueAcl(queue, {});
    await refusal(holder.peekMessages(queue), 403, "AuthenticationFailed");
  }));

test("an account token", async () => {
  const queue = fresh();
  await refusal(withToken(accountToken("so", "rwdlacup")).createQueue(queue), 403, "AuthorizationResourceTypeMismatch");
  await withToken(accountToken("c", "c")).createQueue(queue);
  await withToken(accountToken("o", "a")).createMessage(queue, "a");
  const message = await withToken(accountToken("o", "p")).getMessage(queue);
  assert.equal(message.messageText, "a");
  await refusal(withToken(accountToken("sco", "rwdlacup", "bf")).peekMessages(queue), 403, "AuthorizationServiceMismatch");
  const { entries } = await withToken(accountToken("s", "l")).listQueuesSegmentedWithPrefix(queue, null);
  assert.deepEqual(entries.map(({ name }) => name), [queue]);
  await withToken(accountToken("c", "d")).deleteQueue(queue);
});
