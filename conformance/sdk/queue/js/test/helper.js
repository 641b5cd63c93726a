// What every test needs: clients of the server under test, fresh queues, and what the server said.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { QueueClient, QueueServiceClient, StorageSharedKeyCredential } from "@azure/storage-queue";

export const ENDPOINT = (process.env.PARTITA_QUEUE_ENDPOINT ?? "http://127.0.0.1:10001/devstoreaccount1").replace(/\/$/, "");
export const ACCOUNT = "devstoreaccount1";
export const KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
export const credential = new StorageSharedKeyCredential(ACCOUNT, KEY);

// A retry would hide a wrong answer.
export const OPTIONS = { retryOptions: { maxTries: 1 } };

export const serviceClient = (endpoint = ENDPOINT, who = credential) => new QueueServiceClient(endpoint, who, OPTIONS);

export const queueClient = (name, endpoint = ENDPOINT, who = credential) =>
  new QueueClient(`${endpoint}/${name}`, who, OPTIONS);

export const fresh = (prefix = "js-") => prefix + randomBytes(10).toString("hex");

export async function withQueue(act) {
  const queue = queueClient(fresh());
  await queue.create();
  try {
    return await act(queue);
  } finally {
    await queue.deleteIfExists();
  }
}

export async function all(iterator) {
  const found = [];
  for await (const one of iterator) found.push(one);
  return found;
}

export const receive = async (queue, numberOfMessages = 1, visibilityTimeout = 60) =>
  (await queue.receiveMessages({ numberOfMessages, visibilityTimeout })).receivedMessageItems;

export const peek = async (queue, numberOfMessages = 1) => (await queue.peekMessages({ numberOfMessages })).peekedMessageItems;

export const texts = (messages) => messages.map((message) => message.messageText);

export const count = async (queue) => (await queue.getProperties()).approximateMessagesCount;

export const remove = (queue, { messageId, popReceipt }) => queue.deleteMessage(messageId, popReceipt);

export const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

// The first answer that is not empty. The server decides when; a slow machine may ask late.
export async function soon(act, within = 60) {
  for (let waited = 0; waited < within; waited += 0.05) {
    const found = await act();
    if (found.length > 0) return found;
    await sleep(0.05);
  }
  assert.fail("nothing came in time");
}

export async function refusal(promise, statusCode, code) {
  const error = await promise.then(
    () => assert.fail(`expected ${statusCode} ${code ?? ""}, but it was done`),
    (error) => error,
  );
  assert.equal(error.name, "RestError", String(error));
  assert.deepEqual([error.statusCode, error.code], [statusCode, code], error.message);
  return error;
}
