// What every test needs: a client whose methods return promises, fresh queues, and what the server said.
// `azure-storage` is retired but widely deployed; it speaks version 2018-03-28 and asks with HEAD whether a queue exists.

"use strict";

const assert = require("node:assert/strict");
const { randomBytes } = require("node:crypto");
const azure = require("azure-storage");

const ENDPOINT = (process.env.PARTITA_QUEUE_ENDPOINT ?? "http://127.0.0.1:10001/devstoreaccount1").replace(/\/$/, "");
const ACCOUNT = "devstoreaccount1";
const KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const signer = (key = KEY) =>
  azure.createQueueService(ACCOUNT, key, { primaryHost: ENDPOINT, secondaryHost: `${ENDPOINT}-secondary` });
const client = (key) => promising(signer(key));

// Each method of a callback client, as one that resolves to its result, or to its answer if it has none.
function promising(service) {
  const call = (method) => (...args) =>
    new Promise((resolve, reject) =>
      service[method](...args, (error, result, response) => (error ? reject(error) : resolve(result ?? response))),
    );
  return new Proxy({}, { get: (_, method) => call(method) });
}

const fresh = () => "legacy-" + randomBytes(10).toString("hex");

async function withQueue(act) {
  const [service, queue] = [client(), fresh()];
  await service.createQueue(queue);
  try {
    await act(service, queue);
  } finally {
    await service.deleteQueueIfExists(queue);
  }
}

const texts = (messages) => messages.map((message) => message.messageText);

async function refusal(promise, statusCode, code) {
  const error = await promise.then(
    () => assert.fail(`expected ${statusCode} ${code}, but it was done`),
    (error) => error,
  );
  assert.deepEqual([error.statusCode, error.code], [statusCode, code], error.message);
  return error;
}

module.exports = { ACCOUNT, ENDPOINT, KEY, client, signer, promising, fresh, withQueue, texts, refusal };
