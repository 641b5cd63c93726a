// What every test needs: a client whose methods return promises, fresh tables, and what the server said.
// `azure-storage` is retired but widely deployed; it speaks MERGE, version 2018-03-28 and its own multipart dialect.

"use strict";

const assert = require("node:assert/strict");
const { randomBytes } = require("node:crypto");
const { after, before } = require("node:test");
const azure = require("azure-storage");

const ENDPOINT = (process.env.PARTITA_ENDPOINT ?? "http://127.0.0.1:10002/devstoreaccount1").replace(/\/$/, "");
const ACCOUNT = "devstoreaccount1";
const KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const client = (key = KEY) => promising(azure.createTableService(ACCOUNT, key, ENDPOINT));

// Each method of a callback client, as one that resolves to its result.
function promising(service) {
  const call = (method) => (...args) =>
    new Promise((resolve, reject) =>
      service[method](...args, (error, result, response) => {
        if (error) reject(error);
        else resolve(result?.entities || !response?.isSuccessful ? result : (result ?? response));
      }),
    );
  return new Proxy({}, { get: (_, method) => call(method) });
}

const fresh = () => "legacy" + randomBytes(10).toString("hex");

// One table for a whole file of tests, which share what `fill` puts in or keep to partitions of their own.
function tableOfThisFile(fill = () => {}) {
  const [service, table] = [client(), fresh()];
  before(async () => {
    await service.createTable(table);
    await fill(service, table);
  });
  after(() => service.deleteTable(table));
  return { service, table };
}

const { String: text } = azure.TableUtilities.entityGenerator;
const entity = (p, r = "r", properties = {}) => ({ PartitionKey: text(p), RowKey: text(r), ...properties });

// What `plain` makes of an entity written with such keys and properties.
const row = (PartitionKey, RowKey, properties) => ({ PartitionKey, RowKey, ...properties });

// An entity as read, in plain values and without what the service adds.
function plain(found) {
  const values = Object.entries(found).filter(([name]) => name !== ".metadata" && name !== "Timestamp");
  return Object.fromEntries(values.map(([name, property]) => [name, property._]));
}

const etagOf = (answer) => answer[".metadata"].etag;

async function refusal(promise, statusCode, code) {
  const error = await promise.then(
    () => assert.fail(`expected ${statusCode} ${code}, but it was done`),
    (error) => error,
  );
  assert.deepEqual([error.statusCode, error.code], [statusCode, code], error.message);
  return error;
}

module.exports = { ACCOUNT, ENDPOINT, KEY, client, promising, fresh, tableOfThisFile, entity, row, plain, etagOf, refusal };
