// Keys: any text but a few characters, in the body, in the URL and in a filter.

import assert from "node:assert/strict";
import { test } from "node:test";
import { odata } from "@azure/data-tables";
import { cases, entity, fresh, query, refusal, rowKeys, tableOfThisFile } from "./helper.js";

const table = tableOfThisFile();
const { legal, forbidden } = cases("keys.json");
const keysAndTurn = ({ partitionKey, rowKey, Turn }) => [partitionKey, rowKey, Turn];

for (const key of legal) {
  test(`key ${JSON.stringify(key)}`, async () => {
    await table.createEntity(entity(key, key, { Turn: "insert" }));
    assert.deepEqual(keysAndTurn(await table.getEntity(key, key)), [key, key, "insert"]);

    await table.upsertEntity(entity(key, key, { Turn: "upsert" }));
    const found = await query(table, odata`PartitionKey eq ${key} and RowKey eq ${key}`);
    assert.deepEqual(found.map(keysAndTurn), [[key, key, "upsert"]]);

    await table.submitTransaction([["update", entity(key, key, { Turn: "transaction" })]]);
    assert.equal((await table.getEntity(key, key)).Turn, "transaction");

    await table.deleteEntity(key, key);
    await refusal(table.getEntity(key, key), 404, "ResourceNotFound");
  });
}

for (const key of forbidden) {
  test(`key ${JSON.stringify(key)} is refused`, async () => {
    for (const refused of [entity(key), entity("p", key)]) {
      await refusal(table.createEntity(refused), 400, "OutOfRangeInput");
      await refusal(table.upsertEntity(refused), 400);
    }
  });
}

test("insert needs both keys", async () => {
  await refusal(table.createEntity({ partitionKey: "p" }), 400, "PropertiesNeedValue");
  await refusal(table.createEntity({ rowKey: "r" }), 400, "PropertiesNeedValue");
});

test("keys sort by UTF-16 code unit", async () => {
  const p = fresh();
  const keys = ["", " ", "'", "A", "Z", "a", "aa", "b", "é", "日", "😀", "ﬁ"]; // U+1F600 is D83D DE00, below U+FB01
  for (const key of keys.toReversed()) await table.createEntity(entity(p, key));
  assert.deepEqual(rowKeys(await query(table, odata`PartitionKey eq ${p}`)), keys);
});
