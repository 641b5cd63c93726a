// Transactions: all of it or none of it, and which operation was to blame.

import assert from "node:assert/strict";
import { test } from "node:test";
import { odata } from "@azure/data-tables";
import { custom, entity, fresh, query, refusal, rowKeys, tableClient, tableOfThisFile } from "./helper.js";

const table = tableOfThisFile();
const rows = (p) => query(table, odata`PartitionKey eq ${p}`);
const numbers = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);

// The SDK has no field for the index; it is the number before the message's first colon.
async function refusedAt(actions, statusCode, code, index, of = table) {
  const error = await refusal(of.submitTransaction(actions), statusCode, code);
  assert.match(error.message, new RegExp(`^${index}:`));
}

test("a hundred mixed operations", async () => {
  const p = fresh();
  const e = (i, turn) => entity(p, `r${String(i).padStart(3, "0")}`, { [turn]: 1 });
  await table.submitTransaction(numbers(0, 80).map((i) => ["create", e(i, "Before")]));
  const actions = [
    ...numbers(0, 20).map((i) => ["delete", e(i, "After")]),
    ...numbers(20, 35).map((i) => ["update", e(i, "After"), "Replace"]),
    ...numbers(35, 50).map((i) => ["update", e(i, "After"), "Merge"]),
    ...numbers(50, 65).map((i) => ["upsert", e(i, "After"), "Replace"]),
    ...numbers(65, 90).map((i) => ["upsert", e(i, "After"), "Merge"]),
    ...numbers(90, 100).map((i) => ["create", e(i, "After")]),
  ];
  const answer = await table.submitTransaction(actions);
  assert.deepEqual(answer.subResponses.map((part) => part.status), Array(100).fill(204));

  const merged = (i) => (i >= 35 && i < 50) || (i >= 65 && i < 80);
  const found = await rows(p);
  assert.deepEqual(rowKeys(found), numbers(20, 100).map((i) => e(i).rowKey));
  const expected = numbers(20, 100).map((i) => (merged(i) ? { Before: 1, After: 1 } : { After: 1 }));
  assert.deepEqual(found.map(custom), expected);
  assert.deepEqual(found.map(({ etag }) => etag), answer.subResponses.slice(20).map(({ etag }) => etag.trim()));
  assert.equal(answer.getResponseForEntity("r095").etag.trim(), found.at(-5).etag);
});

const FAILING = [
  ["EntityAlreadyExists", 409, (p) => ["create", entity(p, "existing")]],
  ["ResourceNotFound", 404, (p) => ["update", entity(p, "missing")]],
  ["ResourceNotFound", 404, (p) => ["delete", entity(p, "missing")]],
  ["UpdateConditionNotSatisfied", 412, (p, etag) => ["update", entity(p, "existing"), "Merge", { etag }]],
  ["PropertyValueTooLarge", 400, (p) => ["upsert", entity(p, "missing", { Text: "x".repeat(32769) })]],
];
for (const [code, status, failing] of FAILING) {
  for (const index of [0, 2, 4]) {
    test(`${code} of ${failing("p")[0]} at ${index} undoes all`, async () => {
      const p = fresh();
      const { etag: stale } = await table.createEntity(entity(p, "existing"));
      await table.upsertEntity(entity(p, "existing"));
      const actions = numbers(0, 4).map((i) => ["create", entity(p, `new${i}`)]);
      actions.splice(index, 0, failing(p, stale));
      await refusedAt(actions, status, code, index);
      assert.deepEqual(rowKeys(await rows(p)), ["existing"]);
    });
  }
}

test("single operation", async () => {
  const p = fresh();
  const { subResponses } = await table.submitTransaction([["create", entity(p)]]);
  assert.equal(subResponses[0].etag.trim(), (await table.getEntity(p, "r")).etag);
});

test("single failing operation", () =>
  refusal(table.submitTransaction([["update", entity(fresh())]]), 404, "ResourceNotFound"));

test("a row may appear once", async () => {
  const p = fresh();
  await refusedAt(["a", "b", "a"].map((r) => ["upsert", entity(p, r)]), 400, "InvalidDuplicateRow", 2);
  assert.deepEqual(await rows(p), []);
});

test("one partition only", () =>
  assert.rejects(
    table.submitTransaction([["upsert", entity("a")], ["upsert", entity("b")]]),
    /same partitionKey/, // the SDK does not let it out
  ));

test("more than a hundred operations are refused", async () => {
  const p = fresh();
  await refusedAt(numbers(0, 101).map((i) => ["upsert", entity(p, `r${i}`)]), 400, "InvalidInput", 99);
  assert.deepEqual(await rows(p), []);
});

test("more than four mebibytes are refused", async () => {
  const p = fresh();
  const big = { A: "x".repeat(30000), B: "x".repeat(20000) };
  const actions = numbers(0, 90).map((i) => ["upsert", entity(p, `r${i}`, big)]);
  await refusal(table.submitTransaction(actions), 413, "RequestBodyTooLarge");
  assert.deepEqual(await rows(p), []);
});

test("missing table", () =>
  refusedAt([["upsert", entity("p", "a")], ["upsert", entity("p", "b")]], 404, "TableNotFound", 0, tableClient(fresh())));

test("quotes, unicode and boundaries travel", async () => {
  const p = fresh();
  const Text = "--changeset_x\r\n\r\n{'é'}";
  await table.submitTransaction([["create", entity(p, "o'clock 日本 😀 100%", { Text })]]);
  assert.equal((await table.getEntity(p, "o'clock 日本 😀 100%")).Text, Text);
});
