// Entities: types, the four ways to write, weird keys, etags.

"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { TableUtilities } = require("azure-storage");
const { tableOfThisFile, fresh, entity, row, plain, etagOf, refusal } = require("./helper.js");
const keys = require("../../cases/keys.json");

const { service, table } = tableOfThisFile();
const edm = TableUtilities.entityGenerator;
const read = (p, r = "r") => service.retrieveEntity(table, p, r);
const custom = async (p) => {
  const { PartitionKey, RowKey, ...rest } = plain(await read(p));
  return rest;
};

const VALUES = {
  string: edm.String("Grüße, 日本語, 😀 'quoted'"),
  "empty string": edm.String(""),
  "string like a date": edm.String("2021-01-01T00:00:00Z"),
  boolean: edm.Boolean(true),
  int32: edm.Int32(-(2 ** 31)),
  int64: edm.Int64("9223372036854775807"),
  double: edm.Double(3.25),
  "huge double": edm.Double(1e300),
  date: edm.DateTime(new Date("2021-03-04T05:06:07.120Z")),
  guid: edm.Guid("0f8fad5b-d9cb-469f-a165-70867728950e"),
  binary: edm.Binary(Buffer.from([0, 1, 254, 255])),
};
for (const [name, value] of Object.entries(VALUES)) {
  test(`round trip: ${name}`, async () => {
    const p = fresh();
    await service.insertEntity(table, entity(p, "r", { Value: value }));
    assert.deepEqual((await read(p)).Value._, value._);
  });
}

for (const [name, expected] of [["NaN", NaN], ["Infinity", Infinity], ["-Infinity", -Infinity]]) {
  test(`round trip: ${name}`, async () => {
    const p = fresh();
    await service.insertEntity(table, entity(p, "r", { Value: edm.Double(expected) }));
    assert.equal(Number((await read(p)).Value._), expected);
  });
}

test("insert returns the entity when asked to", async () => {
  const p = fresh();
  const echoed = await service.insertEntity(table, entity(p, "r", { A: 1 }), { echoContent: true });
  assert.deepEqual(plain(echoed), row(p, "r", { A: 1 }));
  await refusal(service.insertEntity(table, entity(p)), 409, "EntityAlreadyExists");
});

// How each write treats {A: 1, B: 1} when it sends {B: 2, C: 2}, and whether it creates what is missing.
const WRITES = [
  ["replaceEntity", { B: 2, C: 2 }, false],
  ["mergeEntity", { A: 1, B: 2, C: 2 }, false],
  ["insertOrReplaceEntity", { B: 2, C: 2 }, true],
  ["insertOrMergeEntity", { A: 1, B: 2, C: 2 }, true],
];
for (const [verb, expected, creates] of WRITES) {
  test(verb, async () => {
    const p = fresh();
    const sent = entity(p, "r", { B: 2, C: 2 });
    if (creates) await service[verb](table, sent);
    else await refusal(service[verb](table, sent), 404, "ResourceNotFound");

    await service.insertOrReplaceEntity(table, entity(p, "r", { A: 1, B: 1 }));
    await service[verb](table, sent);
    assert.deepEqual(await custom(p), expected);
  });
}

test("an etag guards replace, merge and delete", async () => {
  const p = fresh();
  const stale = etagOf(await service.insertEntity(table, entity(p, "r", { A: 1 })));
  const current = etagOf(await service.insertOrReplaceEntity(table, entity(p, "r", { A: 2 })));
  assert.equal(etagOf(await read(p)), current);

  const withETag = (etag) => entity(p, "r", { A: 3, ".metadata": { etag } });
  for (const verb of ["replaceEntity", "mergeEntity", "deleteEntity"]) {
    await refusal(service[verb](table, withETag(stale)), 412, "UpdateConditionNotSatisfied");
  }
  const next = etagOf(await service.mergeEntity(table, withETag(current)));
  assert.deepEqual(await custom(p), { A: 3 });
  await service.deleteEntity(table, withETag(next));
  await refusal(read(p), 404, "ResourceNotFound");
  await refusal(service.deleteEntity(table, entity(p)), 404, "ResourceNotFound");
});

for (const key of keys.legal) {
  test(`key ${JSON.stringify(key)}`, async () => {
    await service.insertEntity(table, entity(key, key, { Turn: "insert" }));
    assert.deepEqual(plain(await read(key, key)), row(key, key, { Turn: "insert" }));
    await service.mergeEntity(table, entity(key, key, { Turn: "merge" }));
    assert.deepEqual(plain(await read(key, key)), row(key, key, { Turn: "merge" }));
    await service.deleteEntity(table, entity(key, key));
    await refusal(read(key, key), 404, "ResourceNotFound");
  });
}

for (const key of keys.forbidden) {
  test(`key ${JSON.stringify(key)} is refused`, () =>
    refusal(service.insertEntity(table, entity(key)), 400, "OutOfRangeInput"));
}
