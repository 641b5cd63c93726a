// Filters: the shared table of cases, and the SDK's own formatting of values.

import assert from "node:assert/strict";
import { test } from "node:test";
import { odata } from "@azure/data-tables";
import { all, cases, custom, entity, query, refusal, rowKeys, tableOfThisFile } from "./helper.js";

const filters = cases("filters.json");
const keys = (digits) => [...digits].map((digit) => `r${digit}`);

// Row i of the table described in filters.json.
const row = (i) =>
  entity(i < 5 ? "p0" : "p1", `r${i}`, {
    Name: `s${i}`,
    Small: i,
    Big: BigInt(i) * 10_000_000_000n,
    Ratio: i + 0.5,
    Even: i % 2 === 0,
    When: new Date(Date.UTC(2021, 0, i + 1)),
    Uid: { type: "Guid", value: `00000000-0000-0000-0000-00000000000${i}` },
    Blob: Buffer.from([i]),
    ...(i % 2 && { Odd: "yes" }),
  });

const table = tableOfThisFile(async (table) => {
  // Backwards, so that an answer in key order is not an answer in order of arrival.
  for (let i = 9; i >= 0; i--) await table.createEntity(row(i));
});

for (const { filter, rows } of filters.cases) {
  test(filter, async () => assert.deepEqual(rowKeys(await query(table, filter)), keys(rows)));
}

for (const { filter, status } of filters.refused) {
  test(`refused: ${filter}`, () => refusal(query(table, filter), status));
}

const FORMATTED = [
  ["a string", odata`Name eq ${"s4"}`, "4"],
  ["a quote", odata`Name eq ${"it's"}`, ""],
  ["a number", odata`Small eq ${4}`, "4"],
  ["a fraction", odata`Ratio eq ${4.5}`, "4"],
  ["a boolean", odata`Even eq ${true}`, "02468"],
  ["a date", odata`When eq ${new Date("2021-01-05T00:00:00Z")}`, "4"],
  ["several values", odata`PartitionKey eq ${"p0"} and (Small lt ${2} or Name eq ${"s4"})`, "014"],
];
for (const [name, filter, rows] of FORMATTED) {
  test(`odata formats ${name}`, async () => assert.deepEqual(rowKeys(await query(table, filter)), keys(rows)));
}

test("a listing is in key order", async () => {
  assert.deepEqual(rowKeys(await all(table.listEntities())), keys("0123456789"));
});

test("select gives only what is named", async () => {
  const [found] = await query(table, "RowKey eq 'r3'", { select: ["Name", "Small"] });
  assert.deepEqual([custom(found), found.rowKey], [{ Name: "s3", Small: 3 }, undefined]);
});

test("select of a missing property is null", async () => {
  const found = await query(table, "RowKey le 'r1'", { select: ["Odd"] });
  assert.deepEqual(found.map(custom), [{ Odd: null }, { Odd: "yes" }]);
});
