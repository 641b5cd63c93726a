// Queries with TableQuery, and continuation across clients.

"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { TableBatch, TableQuery, TableUtilities } = require("azure-storage");
const { client, tableOfThisFile, entity, plain } = require("./helper.js");

const edm = TableUtilities.entityGenerator;
const { EQUAL, GREATER_THAN, LESS_THAN } = TableUtilities.QueryComparisons;
const ROWS = 2500;
const name = (i) => `r${String(i).padStart(4, "0")}`;

const { service, table } = tableOfThisFile(async (service, table) => {
  for (let start = 0; start < ROWS; start += 100) {
    const batch = new TableBatch();
    for (let i = start; i < start + 100; i++) {
      const properties = {
        Small: edm.Int32(i),
        Big: edm.Int64(String(i * 10_000_000_000)),
        Ratio: edm.Double(i + 0.5),
        Even: edm.Boolean(i % 2 === 0),
        When: edm.DateTime(new Date(Date.UTC(2021, 0, 1, 0, 0, i))),
        Uid: edm.Guid(`00000000-0000-0000-0000-${String(i).padStart(12, "0")}`),
        Blob: edm.Binary(Buffer.from([i >> 8, i & 255])),
      };
      batch.insertEntity(entity("p", name(i), properties));
    }
    await service.executeBatch(table, batch);
  }
});

async function pages(query, from = service) {
  const all = [];
  let token = null;
  do {
    const page = await from.queryEntities(table, query, token);
    all.push(page.entries.map((e) => e.RowKey._));
    token = page.continuationToken;
  } while (token);
  return all;
}

const ALL = Array.from({ length: ROWS }, (_, i) => name(i));

test("a full page is a thousand", async () => {
  const found = await pages(new TableQuery());
  assert.deepEqual(found.map((page) => page.length), [1000, 1000, 500]);
  assert.deepEqual(found.flat(), ALL);
});

test("top is the size of a page", async () => {
  const found = await pages(new TableQuery().top(300));
  assert.equal(found[0].length, 300);
  assert.deepEqual(found.flat(), ALL);
});

test("a token resumes in another client", async () => {
  const query = new TableQuery().top(900);
  const first = await service.queryEntities(table, query, null);
  const second = await client().queryEntities(table, query, first.continuationToken);
  assert.deepEqual(second.entries.map((e) => e.RowKey._), ALL.slice(900, 1800));
});

const WHERE = [
  ["equal keys", new TableQuery().where("PartitionKey eq ? and RowKey eq ?", "p", name(4)), [4]],
  ["a range", new TableQuery().where("RowKey ge ? and RowKey lt ?", name(3), name(6)), [3, 4, 5]],
  ["or", new TableQuery().where("RowKey eq ?", name(1)).or("RowKey eq ?", name(9)), [1, 9]],
  ["int32", new TableQuery().where(TableQuery.int32Filter("Small", LESS_THAN, 2)), [0, 1]],
  ["int64", new TableQuery().where(TableQuery.int64Filter("Big", EQUAL, "40000000000")), [4]],
  ["double", new TableQuery().where(TableQuery.doubleFilter("Ratio", GREATER_THAN, 2498.25)), [2498, 2499]],
  ["boolean", new TableQuery().where("RowKey lt ? and Even == ?bool?", name(5), true), [0, 2, 4]],
  ["date", new TableQuery().where(TableQuery.dateFilter("When", LESS_THAN, new Date("2021-01-01T00:00:02Z"))), [0, 1]],
  ["guid", new TableQuery().where(TableQuery.guidFilter("Uid", EQUAL, "00000000-0000-0000-0000-000000000004")), [4]],
  ["binary", new TableQuery().where(TableQuery.binaryFilter("Blob", EQUAL, Buffer.from([1, 0]))), [256]],
  ["a missing property", new TableQuery().where("Missing ne ?", "x"), []],
];
for (const [what, query, rows] of WHERE) {
  test(`where ${what}`, async () => assert.deepEqual((await pages(query)).flat(), rows.map(name)));
}

test("select gives only what is named", async () => {
  const query = new TableQuery().select("Small", "Even").where("RowKey eq ?", name(3));
  const { entries } = await service.queryEntities(table, query, null);
  assert.deepEqual(entries.map(plain), [{ Small: 3, Even: false }]);
});
