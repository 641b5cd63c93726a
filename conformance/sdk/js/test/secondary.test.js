// The secondary endpoint: the same data, for reading only.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ENDPOINT, all, entity, fresh, query, refusal, serviceClient, tableClient, withTable } from "./helper.js";

const SECONDARY = `${ENDPOINT}-secondary`;

const withSecondary = (act) =>
  withTable(async (primary) => {
    await primary.createEntity(entity("p", "r", { A: 1 }));
    await act(tableClient(primary.tableName, SECONDARY), primary);
  });

test("entities can be read", () =>
  withSecondary(async (secondary) => {
    assert.equal((await secondary.getEntity("p", "r")).A, 1);
    assert.equal((await query(secondary, "A eq 1")).length, 1);
  }));

test("tables can be listed", () =>
  withSecondary(async (secondary) => {
    const tables = await all(serviceClient(SECONDARY).listTables());
    assert.ok(tables.some((t) => t.name === secondary.tableName));
  }));

const WRITES = {
  insert: (t) => t.createEntity(entity("p", "new")),
  upsert: (t) => t.upsertEntity(entity("p", "new")),
  update: (t) => t.updateEntity(entity("p", "r", { A: 2 })),
  delete: (t) => t.deleteEntity("p", "r"),
  transaction: (t) => t.submitTransaction([["upsert", entity("p", "new")]]),
  "create table": () => serviceClient(SECONDARY).createTable(fresh()),
  "delete table": (t) => t.deleteTable(),
};
for (const [name, write] of Object.entries(WRITES)) {
  test(`${name} is refused`, () =>
    withSecondary(async (secondary, primary) => {
      await refusal(write(secondary), 403, "InsufficientAccountPermissions");
      assert.deepEqual((await all(primary.listEntities())).map((e) => e.A), [1]);
    }));
}
