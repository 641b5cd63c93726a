// What every test needs: clients of the server under test, fresh tables, and what the server said.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before } from "node:test";
import { AzureNamedKeyCredential, TableClient, TableServiceClient } from "@azure/data-tables";

export const ENDPOINT = (process.env.PARTITA_ENDPOINT ?? "http://127.0.0.1:10002/devstoreaccount1").replace(/\/$/, "");
export const ACCOUNT = "devstoreaccount1";
export const KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

// A retry would hide a wrong answer.
export const OPTIONS = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };

export const serviceClient = (endpoint = ENDPOINT, key = KEY) =>
  new TableServiceClient(endpoint, new AzureNamedKeyCredential(ACCOUNT, key), OPTIONS);

export const tableClient = (name, endpoint = ENDPOINT, key = KEY) =>
  new TableClient(endpoint, name, new AzureNamedKeyCredential(ACCOUNT, key), OPTIONS);

export const fresh = (prefix = "js") => prefix + randomBytes(10).toString("hex");

export const cases = (file) => JSON.parse(readFileSync(new URL(`../../cases/${file}`, import.meta.url), "utf8"));

// One table for a whole file of tests, which share what `fill` puts in or keep to partitions of their own.
export function tableOfThisFile(fill = () => {}) {
  const table = tableClient(fresh());
  before(async () => {
    await table.createTable();
    await fill(table);
  });
  after(() => table.deleteTable());
  return table;
}

export async function withTable(act) {
  const table = tableClient(fresh());
  await table.createTable();
  try {
    return await act(table);
  } finally {
    await table.deleteTable();
  }
}

export const entity = (partitionKey, rowKey = "r", properties = {}) => ({ partitionKey, rowKey, ...properties });

// The properties the caller gave, without what the service adds.
export function custom({ partitionKey, rowKey, etag, timestamp, ...rest }) {
  return Object.fromEntries(Object.entries(rest).filter(([name]) => !name.startsWith("odata.")));
}

export async function all(iterator) {
  const found = [];
  for await (const one of iterator) found.push(one);
  return found;
}

export const query = (table, filter, more = {}) => all(table.listEntities({ queryOptions: { filter, ...more } }));

export const rowKeys = (entities) => entities.map((e) => e.rowKey);

// The service's error code: transactions carry it in `code`, single operations in the parsed body, be it JSON or XML.
export const codeOf = (error) => error.details?.odataError?.code ?? error.details?.["m:code"] ?? error.code;

export async function refusal(promise, statusCode, code) {
  const error = await promise.then(
    () => assert.fail(`expected ${statusCode} ${code ?? ""}, but it was done`),
    (error) => error,
  );
  assert.equal(error.name, "RestError", String(error));
  assert.deepEqual([error.statusCode, code && codeOf(error)], [statusCode, code]);
  return error;
}
