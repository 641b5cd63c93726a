// ETags: what a write returns, what a read shows, and what a stale one is refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { odata } from "@azure/data-tables";
import { entity, fresh, query, refusal, tableOfThisFile } from "./helper.js";

const table = tableOfThisFile();

// An entity with value 2, its present etag and the one before it.
async function twiceWritten() {
  const p = fresh();
  const { etag: stale } = await table.createEntity(entity(p, "r", { A: 1 }));
  const { etag: current } = await table.upsertEntity(entity(p, "r", { A: 2 }));
  return { p, stale, current };
}

test("an etag is the same wherever it is seen", async () => {
  const { p, stale, current } = await twiceWritten();
  assert.notEqual(current, stale);
  assert.equal((await table.getEntity(p, "r")).etag, current);
  assert.equal((await query(table, odata`PartitionKey eq ${p}`))[0].etag, current);
});

test("an etag is made of the timestamp", async () => {
  const { p, current } = await twiceWritten();
  const { timestamp } = await table.getEntity(p, "r");
  assert.equal(current, `W/"datetime'${timestamp.replaceAll(":", "%3A")}'"`);
});

for (const mode of ["Replace", "Merge"]) {
  test(`update ${mode} with the current etag`, async () => {
    const { p, current } = await twiceWritten();
    await table.updateEntity(entity(p, "r", { A: 3 }), mode, { etag: current });
    assert.equal((await table.getEntity(p, "r")).A, 3);
  });

  test(`update ${mode} with a stale etag is refused`, async () => {
    const { p, stale } = await twiceWritten();
    const update = table.updateEntity(entity(p, "r", { A: 3 }), mode, { etag: stale });
    await refusal(update, 412, "UpdateConditionNotSatisfied");
    assert.equal((await table.getEntity(p, "r")).A, 2);
  });

  test(`update ${mode} of a missing entity is 404 with any etag`, async () => {
    const { p, current } = await twiceWritten();
    for (const etag of ["*", current]) {
      await refusal(table.updateEntity(entity(p, "missing"), mode, { etag }), 404, "ResourceNotFound");
    }
  });
}

test("delete with a stale etag is refused", async () => {
  const { p, stale, current } = await twiceWritten();
  await refusal(table.deleteEntity(p, "r", { etag: stale }), 412, "UpdateConditionNotSatisfied");
  assert.equal((await table.getEntity(p, "r")).etag, current);
});

test("delete with the current etag", async () => {
  const { p, current } = await twiceWritten();
  await table.deleteEntity(p, "r", { etag: current });
  await refusal(table.getEntity(p, "r"), 404, "ResourceNotFound");
});

test("an etag in another form never matches", async () => {
  const { p } = await twiceWritten();
  await refusal(table.deleteEntity(p, "r", { etag: 'W/"foo"' }), 412, "UpdateConditionNotSatisfied");
});

test("of two writers with one etag, one wins", async () => {
  const { p, current } = await twiceWritten();
  const writes = [1, 2, 3, 4].map((A) => table.updateEntity(entity(p, "r", { A }), "Merge", { etag: current }));
  const outcomes = (await Promise.allSettled(writes)).map((o) => o.reason?.statusCode ?? 204).sort();
  assert.deepEqual(outcomes, [204, 412, 412, 412]);
});
