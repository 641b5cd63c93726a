// Batches: all of it or none of it.

"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { TableBatch, TableQuery } = require("azure-storage");
const { tableOfThisFile, fresh, entity, row, plain, etagOf, refusal } = require("./helper.js");

const { service, table } = tableOfThisFile();

async function rows(p) {
  const { entries } = await service.queryEntities(table, new TableQuery().where("PartitionKey eq ?", p), null);
  return entries.map(plain);
}

function batchOf(...operations) {
  const batch = new TableBatch();
  for (const [verb, ...args] of operations) batch[verb](...args);
  return batch;
}

test("every kind of operation in one batch", async () => {
  const p = fresh();
  await service.executeBatch(
    table,
    batchOf(...["a", "b", "c", "d", "e"].map((r) => ["insertEntity", entity(p, r, { Before: 1 }), { echoContent: true }])),
  );
  const answers = await service.executeBatch(
    table,
    batchOf(
      ["deleteEntity", entity(p, "a")],
      ["replaceEntity", entity(p, "b", { After: 1 })],
      ["mergeEntity", entity(p, "c", { After: 1 })],
      ["insertOrReplaceEntity", entity(p, "d", { After: 1 })],
      ["insertOrMergeEntity", entity(p, "e", { After: 1 })],
      ["insertEntity", entity(p, "o'clock 日本 😀", { After: 1 }), { echoContent: false }],
    ),
  );
  assert.deepEqual(answers.map((answer) => answer.response.statusCode), Array(6).fill(204));
  assert.deepEqual(await rows(p), [
    row(p, "b", { After: 1 }),
    row(p, "c", { After: 1, Before: 1 }),
    row(p, "d", { After: 1 }),
    row(p, "e", { After: 1, Before: 1 }),
    row(p, "o'clock 日本 😀", { After: 1 }),
  ]);
  assert.equal(etagOf(answers[2].entity), etagOf(await service.retrieveEntity(table, p, "c")));
});

test("a hundred operations fit", async () => {
  const p = fresh();
  const inserts = Array.from({ length: 100 }, (_, i) => ["insertEntity", entity(p, `r${i}`)]);
  await service.executeBatch(table, batchOf(...inserts));
  assert.equal((await rows(p)).length, 100);
});

for (const index of [0, 1, 2]) {
  test(`a failure at ${index} undoes all`, async () => {
    const p = fresh();
    await service.insertEntity(table, entity(p, "existing"));
    const operations = [["insertEntity", entity(p, "new1")], ["insertEntity", entity(p, "new2")]];
    operations.splice(index, 0, ["insertEntity", entity(p, "existing")]);
    const error = await refusal(service.executeBatch(table, batchOf(...operations)), 409, "EntityAlreadyExists");
    assert.match(error.message, new RegExp(`^${index}:`));
    assert.equal((await rows(p)).length, 1);
  });
}

test("a lone retrieve", async () => {
  const p = fresh();
  await service.insertEntity(table, entity(p, "r", { A: 1 }));
  const [answer] = await service.executeBatch(table, batchOf(["retrieveEntity", p, "r"]));
  assert.deepEqual(plain(answer.entity), row(p, "r", { A: 1 }));
});

test("a row may appear once", () => {
  const p = fresh();
  const twice = batchOf(["insertOrMergeEntity", entity(p)], ["insertOrMergeEntity", entity(p)]);
  return refusal(service.executeBatch(table, twice), 400, "InvalidDuplicateRow");
});
