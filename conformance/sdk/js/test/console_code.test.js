// Code that the console copies as JavaScript, run as it is. crates/console/web/test/code.ts writes it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { dirname } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { ACCOUNT, cases, ENDPOINT, KEY, tableClient } from "./helper.js";

const here = dirname(fileURLToPath(import.meta.url));

// A signed request without the SDK, because what is stored is compared as the service writes it.
async function send(method, path, body) {
  const date = new Date().toUTCString();
  const url = new URL(ENDPOINT + path);
  const signature = createHmac("sha256", Buffer.from(KEY, "base64")).update(`${date}\n/${ACCOUNT}${url.pathname}`, "utf8").digest("base64");
  const headers = { "x-ms-date": date, "x-ms-version": "2019-02-02", Authorization: `SharedKeyLite ${ACCOUNT}:${signature}`, Accept: "application/json;odata=minimalmetadata", "Content-Type": "application/json" };
  const answer = await fetch(url, { method, headers, body });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
  return text;
}

// The entity without what differs in any case; numbers as texts, so that 1 is not 1.0.
async function stored(table, row) {
  const text = await send("GET", `/${table}(PartitionKey='it%27%27s',RowKey='${encodeURIComponent(row)}')`);
  const found = JSON.parse(text.replace(/:(-?\d[\d.eE+-]*)(?=[,}])/g, ':"number $1"'));
  return Object.fromEntries(Object.entries(found).filter(([name]) => !name.startsWith("odata.") && name !== "Timestamp" && name !== "RowKey"));
}

function run(code) {
  const connection = `DefaultEndpointsProtocol=http;AccountName=${ACCOUNT};AccountKey=${KEY};TableEndpoint=${ENDPOINT};`;
  return execFileSync(process.execPath, ["--input-type=module", "-e", code], { cwd: here, encoding: "utf8", env: { ...process.env, AZURE_STORAGE_CONNECTION_STRING: connection } });
}

test("the copied code writes every type as it is, and finds it", async () => {
  const { code, entity } = cases("console_code.json");
  const { table, write, read } = code.JavaScript;
  const row = JSON.parse(entity).RowKey;
  const client = tableClient(table);
  await client.createTable();
  try {
    await send("POST", `/${table}`, entity.replace(JSON.stringify(row), '"reference"'));
    assert.equal(run(write), "");
    assert.deepEqual(await stored(table, row), await stored(table, "reference"));
    const shown = run(read);
    assert.equal(shown.match(/rowKey/g).length, 2, shown);
  } finally {
    await client.deleteTable();
  }
});
