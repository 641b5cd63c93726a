// Messages: what is put comes back; visibility, receipts, expiry; limits and errors.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { count, fresh, peek, queueClient, receive, refusal, remove, sleep, soon, texts, withQueue } from "./helper.js";

const ID = "0a1b2c3d-192b-4f77-a501-2ba4be007ea5";
const RECEIPT = "AgAAAAMAAAAAAAAAkP0RP0Fx2QE=";
const gone = (promise) => refusal(promise, 404, "MessageNotFound");

describe("messages", { concurrency: true }, () => {
  const TEXTS = {
    plain: "hello",
    empty: "",
    blanks: "  mess\t age1\n",
    markup: "<a href='x'>\"&amp;\" ]]></a>",
    unicode: "日本語 ñ ß Ω",
    emoji: "👩‍👩‍👧 😀",
    json: JSON.stringify({ id: 1, names: ["a", "é"] }),
    base64: Buffer.from([...Array(256).keys()]).toString("base64"),
    number: "007",
    "another number": "1e5",
    truth: "true",
  };
  for (const [name, text] of Object.entries(TEXTS)) {
    test(`a text comes back: ${name}`, () =>
      withQueue(async (queue) => {
        await queue.sendMessage(text);
        assert.deepEqual(texts(await peek(queue)), [text]);
        const [message] = await receive(queue);
        assert.equal(message.messageText, text);
        await remove(queue, message);
        assert.equal(await count(queue), 0);
      }));
  }

  for (const letter of ["a", "é", "😀", "<"]) {
    test(`the longest text of ${letter}`, () =>
      withQueue(async (queue) => {
        const text = letter.repeat(65536 / Buffer.byteLength(letter));
        await queue.sendMessage(text);
        const [message] = await receive(queue);
        assert.equal(message.messageText, text);
        await refusal(queue.sendMessage(text + "a"), 413, "RequestBodyTooLarge");
        await refusal(queue.updateMessage(message.messageId, message.popReceipt, text + "a"), 413, "RequestBodyTooLarge");
      }));
  }

  test("a character that XML cannot have", () =>
    withQueue((queue) => refusal(queue.sendMessage("a\u0001"), 400, "InvalidXmlDocument")));

  test("put says what it made", () =>
    withQueue(async (queue) => {
      const put = await queue.sendMessage("a", { visibilityTimeout: 5, messageTimeToLive: 60 });
      assert.equal(put.expiresOn - put.insertedOn, 60_000);
      assert.equal(put.nextVisibleOn - put.insertedOn, 5_000);
      const week = await queue.sendMessage("a");
      assert.equal(week.expiresOn - week.insertedOn, 7 * 24 * 3600_000);
      assert.equal((await queue.sendMessage("a", { messageTimeToLive: -1 })).expiresOn.getUTCFullYear(), 9999);
    }));

  test("get says what was put", () =>
    withQueue(async (queue) => {
      const put = await queue.sendMessage("a");
      const [got] = await receive(queue);
      assert.deepEqual([got.messageId, got.insertedOn, got.expiresOn], [put.messageId, put.insertedOn, put.expiresOn]);
      assert.deepEqual([got.dequeueCount, got.messageText], [1, "a"]);
      assert.notEqual(got.popReceipt, put.popReceipt);
    }));

  test("peek changes nothing", () =>
    withQueue(async (queue) => {
      await queue.sendMessage("a");
      for (let times = 0; times < 3; times++) assert.equal((await peek(queue, 5))[0].dequeueCount, 0);
      assert.equal((await receive(queue))[0].dequeueCount, 1);
    }));

  test("order is that of insertion", () =>
    withQueue(async (queue) => {
      const names = Array.from({ length: 40 }, (_, number) => String(number).padStart(2, "0"));
      for (const name of names) await queue.sendMessage(name);
      assert.deepEqual(texts(await peek(queue, 32)), names.slice(0, 32));
      assert.deepEqual(texts(await receive(queue, 32)), names.slice(0, 32));
      assert.deepEqual(texts(await receive(queue, 32)), names.slice(32));
      assert.deepEqual(await receive(queue, 32), []);
    }));

  test("clear", () =>
    withQueue(async (queue) => {
      for (const text of ["a", "b", "c"]) await queue.sendMessage(text);
      await receive(queue);
      await queue.clearMessages();
      assert.equal(await count(queue), 0);
    }));

  test("hidden, it comes back with another receipt", () =>
    withQueue(async (queue) => {
      await queue.sendMessage("a");
      const [taken] = await receive(queue);
      assert.deepEqual([await receive(queue), await peek(queue)], [[], []]);
      await queue.updateMessage(taken.messageId, taken.popReceipt, undefined, 0);
      const [first] = await receive(queue, 1, 1);
      const [second] = await soon(() => receive(queue));
      assert.deepEqual([second.messageId, second.dequeueCount], [first.messageId, 3]);
      await gone(remove(queue, first));
      await remove(queue, second);
      await gone(remove(queue, second));
    }));

  test("the receipt of an expired lease serves until somebody takes the message", () =>
    withQueue(async (queue) => {
      await queue.sendMessage("a");
      const [message] = await receive(queue, 1, 1);
      await soon(() => peek(queue));
      await remove(queue, message);
      assert.deepEqual(await receive(queue), []);
    }));

  test("a delayed message comes in its time, and an expired one never", () =>
    withQueue(async (queue) => {
      const put = await queue.sendMessage("later", { visibilityTimeout: 2, messageTimeToLive: 60 });
      const short = await queue.sendMessage("short", { messageTimeToLive: 1 });
      await sleep(1.1);
      assert.deepEqual(texts(await soon(() => peek(queue, 32))), ["later"]);
      assert.ok(Date.now() >= put.nextVisibleOn.getTime());
      await gone(remove(queue, short));
    }));

  test("update changes receipt, text and visibility, and keeps the rest", () =>
    withQueue(async (queue) => {
      const put = await queue.sendMessage("a");
      const [got] = await receive(queue);
      const kept = await queue.updateMessage(got.messageId, got.popReceipt, undefined, 30);
      assert.notEqual(kept.popReceipt, got.popReceipt);
      assert.ok(kept.nextVisibleOn > got.insertedOn);
      await gone(remove(queue, got));
      const changed = await queue.updateMessage(got.messageId, kept.popReceipt, "b <é>", 0);
      await gone(queue.updateMessage(got.messageId, kept.popReceipt, "c", 0));
      const [again] = await receive(queue);
      assert.deepEqual([again.messageText, again.dequeueCount], ["b <é>", 2]);
      assert.deepEqual(again.expiresOn, put.expiresOn);
      await gone(queue.deleteMessage(got.messageId, changed.popReceipt));
    }));

  test("update without text keeps it, and with an empty one empties it", () =>
    withQueue(async (queue) => {
      const put = await queue.sendMessage("a");
      const kept = await queue.updateMessage(put.messageId, put.popReceipt, undefined, 0);
      assert.deepEqual(texts(await peek(queue)), ["a"]);
      await queue.updateMessage(put.messageId, kept.popReceipt, "", 0);
      assert.deepEqual(texts(await peek(queue)), [""]);
    }));

  test("out of range", () =>
    withQueue(async (queue) => {
      const outside = (promise) => refusal(promise, 400, "OutOfRangeQueryParameterValue");
      await outside(receive(queue, 33));
      await outside(receive(queue, 0));
      await outside(peek(queue, 33));
      await outside(receive(queue, 1, 0));
      await outside(receive(queue, 1, 604801));
      await outside(queue.sendMessage("a", { visibilityTimeout: 604801, messageTimeToLive: -1 }));
      await outside(queue.sendMessage("a", { visibilityTimeout: -1 }));
    }));

  test("a time to live that is none", () =>
    withQueue(async (queue) => {
      const invalid = (promise) => refusal(promise, 400, "InvalidQueryParameterValue");
      await invalid(queue.sendMessage("a", { messageTimeToLive: 0 }));
      await invalid(queue.sendMessage("a", { messageTimeToLive: -2 }));
      await invalid(queue.sendMessage("a", { visibilityTimeout: 30, messageTimeToLive: 30 }));
    }));

  test("a missing queue", async () => {
    const queue = queueClient(fresh());
    const missing = (promise) => refusal(promise, 404, "QueueNotFound");
    await missing(queue.sendMessage("a"));
    await missing(receive(queue));
    await missing(peek(queue));
    await missing(queue.clearMessages());
    await missing(queue.updateMessage(ID, RECEIPT, "a"));
    await missing(queue.deleteMessage(ID, RECEIPT));
  });

  test("a missing message, and a receipt that is none", () =>
    withQueue(async (queue) => {
      await gone(queue.deleteMessage(ID, RECEIPT));
      await gone(queue.updateMessage(ID, RECEIPT, "a"));
      const error = await refusal(queue.deleteMessage(ID, "invalid"), 400, "InvalidQueryParameterValue");
      assert.equal(error.details.additionalProperties.Reason, "Invalid pop receipt format");
      await refusal(queue.updateMessage(ID, "invalid", "a"), 400, "InvalidQueryParameterValue");
    }));

  test("consumers beside each other take each message once", () =>
    withQueue(async (queue) => {
      const names = Array.from({ length: 100 }, (_, number) => String(number));
      await Promise.all(names.map((name) => queue.sendMessage(name)));
      const taken = [];
      const consume = async () => {
        for (let page = await receive(queue, 7); page.length > 0; page = await receive(queue, 7)) {
          taken.push(...texts(page));
          await Promise.all(page.map((message) => remove(queue, message)));
        }
      };
      await Promise.all(Array.from({ length: 8 }, consume));
      assert.deepEqual(taken.sort(), names.sort());
      assert.equal(await count(queue), 0);
    }));

  test("the poll loop of Azure Functions", () =>
    withQueue(async (queue) => {
      const poison = queueClient(`${queue.name}-poison`);
      await queue.sendMessage("bad");
      await queue.sendMessage("good");
      const done = [];
      for (let page = await receive(queue, 16, 600); page.length > 0; page = await receive(queue, 16, 600)) {
        for (const { messageId, popReceipt, messageText, dequeueCount } of page) {
          const renewed = await queue.updateMessage(messageId, popReceipt, undefined, 600);
          if (messageText === "good") done.push(messageText);
          else if (dequeueCount < 5) {
            await queue.updateMessage(messageId, renewed.popReceipt, undefined, 0);
            continue;
          } else {
            await poison.createIfNotExists();
            await poison.sendMessage(messageText);
          }
          await queue.deleteMessage(messageId, renewed.popReceipt);
        }
      }
      assert.deepEqual([done, await count(queue), texts(await peek(poison))], [["good"], 0, ["bad"]]);
      await poison.delete();
    }));
});
