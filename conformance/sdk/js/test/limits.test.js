// Limits of one entity: the last size that fits and the first that does not.

import assert from "node:assert/strict";
import { test } from "node:test";
import { custom, entity, fresh, refusal, tableOfThisFile } from "./helper.js";

const table = tableOfThisFile();
const properties = (count, value) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`P${i}`, value]));
const KIB_64 = "x".repeat(32768);

const FITS = [
  ["text of 64 KiB", { Text: KIB_64 }],
  ["text of 64 KiB in surrogate pairs", { Text: "😀".repeat(16384) }],
  ["binary of 64 KiB", { Blob: Buffer.alloc(65536) }],
  ["252 properties", properties(252, 1)],
  ["a name of 255 characters", { ["N".repeat(255)]: 1 }],
  ["just under 1 MiB", { ...properties(15, KIB_64), Last: "x".repeat(32000) }],
];
for (const [name, value] of FITS) {
  test(`fits: ${name}`, async () => {
    const p = fresh();
    await table.createEntity(entity(p, "r", value));
    assert.deepEqual(custom(await table.getEntity(p, "r")), value);
  });
}

const REFUSED = [
  ["text above 64 KiB", { Text: `${KIB_64}x` }, "PropertyValueTooLarge"],
  ["binary above 64 KiB", { Blob: Buffer.alloc(65537) }, "PropertyValueTooLarge"],
  ["253 properties", properties(253, 1), "TooManyProperties"],
  ["a name of 256 characters", { ["N".repeat(256)]: 1 }, "PropertyNameTooLong"],
  ["above 1 MiB", properties(16, KIB_64), "EntityTooLarge"],
  ["a date before 1601", { When: new Date("1600-12-31T23:59:59Z") }, "OutOfRangeInput"],
];
for (const [name, value, code] of REFUSED) {
  for (const write of ["createEntity", "upsertEntity"]) {
    test(`${write} refuses ${name}`, () => refusal(table[write](entity(fresh(), "r", value)), 400, code));
  }
}

test("a merge may not grow an entity past its limits", async () => {
  const p = fresh();
  await table.createEntity(entity(p, "r", properties(252, 1)));
  await refusal(table.upsertEntity(entity(p, "r", { OneMore: 1 })), 400, "TooManyProperties");
});
