// Paging: 2,500 entities, whole pages, small pages, and tokens that outlive their client.

import assert from "node:assert/strict";
import { test } from "node:test";
import { all, entity, tableClient, tableOfThisFile, withTable } from "./helper.js";

const PARTITIONS = Array.from({ length: 25 }, (_, i) => `p${String(i).padStart(2, "0")}`);
const ROWS = Array.from({ length: 100 }, (_, i) => `r${String(i).padStart(2, "0")}`);
const ALL = PARTITIONS.flatMap((p) => ROWS.map((r) => `${p}/${r}`));

const table = tableOfThisFile(async (table) => {
  for (const p of PARTITIONS) await table.submitTransaction(ROWS.map((r) => ["create", entity(p, r)]));
});
const keys = (page) => page.map((e) => `${e.partitionKey}/${e.rowKey}`);
const pagesOf = async (iterator, settings) => (await all(iterator.byPage(settings))).map(keys);

test("a full page is a thousand", async () => {
  const pages = await pagesOf(table.listEntities());
  assert.deepEqual(pages.map((page) => page.length), [1000, 1000, 500]);
  assert.deepEqual(pages.flat(), ALL);
});

test("iterating without pages gives everything", async () => {
  assert.deepEqual(keys(await all(table.listEntities())), ALL);
});

test("pages of seven lose and repeat nothing", async () => {
  const pages = await pagesOf(table.listEntities(), { maxPageSize: 7 });
  assert.equal(Math.max(...pages.map((page) => page.length)), 7);
  assert.deepEqual(pages.flat(), ALL);
});

test("no page follows an exact end", async () => {
  const pages = await pagesOf(table.listEntities(), { maxPageSize: 500 });
  assert.deepEqual(pages.map((page) => page.length), [500, 500, 500, 500, 500]);
});

test("a token resumes in another client", async () => {
  const { value: first } = await table.listEntities().byPage({ maxPageSize: 150 }).next();
  assert.equal(first.length, 150); // page size is $top
  const settings = { maxPageSize: 150, continuationToken: first.continuationToken };
  const rest = await pagesOf(tableClient(table.tableName).listEntities(), settings);
  assert.deepEqual([...keys(first), ...rest.flat()], ALL);
});

test("a token keeps to its filter", async () => {
  const filter = "PartitionKey ge 'p03' and PartitionKey lt 'p06' and RowKey ge 'r90'";
  const pages = await pagesOf(table.listEntities({ queryOptions: { filter } }), { maxPageSize: 7 });
  const expected = ALL.filter((key) => key >= "p03" && key < "p06" && key.slice(4) >= "r90");
  assert.deepEqual(pages.flat(), expected);
});

for (const key of ["", "o'clock", "a+b&c", "日本語", "😀", "100%"]) {
  test(`a token carries the key ${JSON.stringify(key)}`, () =>
    withTable(async (small) => {
      const rows = [entity(key, "1"), entity(key, "2"), entity(`${key}x`, key)];
      for (const row of rows) await small.createEntity(row);
      assert.deepEqual((await pagesOf(small.listEntities(), { maxPageSize: 1 })).flat(), keys(rows));
    }));
}
