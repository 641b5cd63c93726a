// Entities: every type survives the round trip, and each way to write means what it says.

import assert from "node:assert/strict";
import { test } from "node:test";
import { odata } from "@azure/data-tables";
import { custom, entity, fresh, query, refusal, tableOfThisFile } from "./helper.js";

const table = tableOfThisFile();
const int64 = (value) => ({ type: "Int64", value });
const double = (value) => ({ type: "Double", value });
const guid = (value) => ({ type: "Guid", value });

// Name, what is written, and what is read back where the SDK reads another shape than it writes.
const VALUES = [
  ["string", "text"],
  ["empty string", ""],
  ["blank string", "  \t\r\n "],
  ["quotes", "'\"\\/<&>"],
  ["accents", "Grüße, Ελλάδα, 日本語"],
  ["emoji", "😀👩‍👩‍👧"],
  ["string like a date", "2021-01-01T00:00:00Z"],
  ["string like a number", { type: "String", value: "42" }, "42"],
  ["true", true],
  ["false", false],
  ["boolean as text", { type: "Boolean", value: "true" }, true],
  ["int32", 42],
  ["int32 minimum", -(2 ** 31)],
  ["int32 maximum", 2 ** 31 - 1],
  ["int64", 42n],
  ["int64 minimum", -(2n ** 63n)],
  ["int64 maximum", int64("9223372036854775807"), 2n ** 63n - 1n],
  ["double", 3.25],
  ["huge double", 1e300],
  ["tiny double", 5e-324],
  ["greatest double", Number.MAX_VALUE],
  ["long double", 0.1 + 0.2],
  ["integer beyond int32 is a double", 8589934592],
  ["NaN", double("NaN"), "NaN"],
  ["infinity", double("Infinity"), "Infinity"],
  ["minus infinity", double("-Infinity"), "-Infinity"],
  ["date", new Date("2021-03-04T05:06:07Z")],
  ["date with milliseconds", new Date("2021-03-04T05:06:07.120Z")],
  ["earliest date", new Date("1601-01-01T00:00:00Z")],
  ["latest date", new Date("9999-12-31T23:59:59.999Z")],
  ["guid", guid("0f8fad5b-d9cb-469f-a165-70867728950e")],
  ["guid in capitals", guid("0F8FAD5B-D9CB-469F-A165-70867728950E"), guid("0f8fad5b-d9cb-469f-a165-70867728950e")],
  ["binary", Buffer.from(Array.from({ length: 256 }, (_, i) => i))],
  ["empty binary", Buffer.alloc(0)],
];
for (const [name, written, read = written] of VALUES) {
  test(`round trip: ${name}`, async () => {
    const p = fresh();
    await table.createEntity(entity(p, "r", { Value: written }));
    assert.deepEqual((await table.getEntity(p, "r")).Value, read);
    assert.deepEqual((await query(table, odata`PartitionKey eq ${p}`))[0].Value, read);
  });
}

// JavaScript cannot tell 20 from 20.0, but a filter can: a Double literal does not find an Int32.
for (const [written, found] of [[double("20"), 1], [20, 0]]) {
  test(`20 written as ${typeof written} is ${found ? "a double" : "an int32"}`, async () => {
    const p = fresh();
    await table.createEntity(entity(p, "r", { Value: written }));
    assert.equal((await table.getEntity(p, "r")).Value, 20);
    assert.equal((await query(table, odata`PartitionKey eq ${p} and Value eq 20.0`)).length, found);
  });
}

test("a date keeps 100 ns when types are not converted", async () => {
  const p = fresh();
  const written = { type: "DateTime", value: "2021-03-04T05:06:07.1234567Z" };
  await table.createEntity(entity(p, "r", { Value: written }));
  assert.deepEqual((await table.getEntity(p, "r", { disableTypeConversion: true })).Value, written);
});

test("null and undefined are no properties", async () => {
  const p = fresh();
  await table.createEntity(entity(p, "r", { Kept: 1, Null: null, Undefined: undefined }));
  assert.deepEqual(custom(await table.getEntity(p, "r")), { Kept: 1 });
});

test("property names keep case and script", async () => {
  const p = fresh();
  const properties = { name: 1, Name: 2, _x: 3, Größe: 4, 名前: 5, ETag: 6, id: 7 };
  await table.createEntity(entity(p, "r", properties));
  assert.deepEqual(custom(await table.getEntity(p, "r")), properties);
});

test("insert existing is refused and changes nothing", async () => {
  const p = fresh();
  await table.createEntity(entity(p, "r", { A: 1 }));
  await refusal(table.createEntity(entity(p, "r", { A: 2 })), 409, "EntityAlreadyExists");
  assert.equal((await table.getEntity(p, "r")).A, 1);
});

// How each write treats the entity {A: 1, B: 1} when it sends {B: 2, C: 2, A: null}.
const WRITES = [
  ["updateEntity", "Replace", { B: 2, C: 2 }],
  ["updateEntity", "Merge", { A: 1, B: 2, C: 2 }],
  ["upsertEntity", "Replace", { B: 2, C: 2 }],
  ["upsertEntity", "Merge", { A: 1, B: 2, C: 2 }],
];
for (const [verb, mode, expected] of WRITES) {
  test(`${verb} ${mode} over an existing entity`, async () => {
    const p = fresh();
    await table.createEntity(entity(p, "r", { A: 1, B: 1 }));
    await table[verb](entity(p, "r", { B: 2, C: 2, A: null }), mode);
    assert.deepEqual(custom(await table.getEntity(p, "r")), expected);
  });
}

for (const mode of ["Replace", "Merge"]) {
  test(`upsert ${mode} creates the missing`, async () => {
    const p = fresh();
    await table.upsertEntity(entity(p, "r", { A: 1 }), mode);
    assert.deepEqual(custom(await table.getEntity(p, "r")), { A: 1 });
  });

  test(`update ${mode} of the missing is refused`, () =>
    refusal(table.updateEntity(entity(fresh(), "r", { A: 1 }), mode), 404, "ResourceNotFound"));
}

test("delete removes", async () => {
  const p = fresh();
  await table.createEntity(entity(p));
  await table.deleteEntity(p, "r");
  await refusal(table.getEntity(p, "r"), 404, "ResourceNotFound");
});

test("delete missing is refused", () => refusal(table.deleteEntity(fresh(), "r"), 404, "ResourceNotFound"));

test("the timestamp is the server's and grows", async () => {
  const p = fresh();
  await table.createEntity(entity(p, "r", { timestamp: new Date("1999-01-01") }));
  const { timestamp: first } = await table.getEntity(p, "r");
  await table.upsertEntity(entity(p));
  const { timestamp: second } = await table.getEntity(p, "r");
  assert.ok(first > "2021" && first !== second, `${first}, then ${second}`);
});

test("get with select", async () => {
  const p = fresh();
  await table.createEntity(entity(p, "r", { A: 1, B: 2 }));
  const found = await table.getEntity(p, "r", { queryOptions: { select: ["A", "rowKey"] } });
  assert.deepEqual([custom(found), found.rowKey, found.partitionKey], [{ A: 1 }, "r", undefined]);
});
