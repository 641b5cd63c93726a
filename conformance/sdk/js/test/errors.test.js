// Errors: status and code of each refusal, as the SDK shows them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { TableServiceClient } from "@azure/data-tables";
import { ACCOUNT, ENDPOINT, KEY, OPTIONS, all, entity, fresh, refusal, serviceClient, tableClient, withTable } from "./helper.js";

const stale = { etag: "W/\"datetime'2001-01-01T00%3A00%3A00Z'\"" };
const REFUSALS = [
  ["get missing", (t) => t.getEntity("p", "missing"), 404, "ResourceNotFound"],
  ["update missing", (t) => t.updateEntity(entity("p", "missing")), 404, "ResourceNotFound"],
  ["delete missing", (t) => t.deleteEntity("p", "missing"), 404, "ResourceNotFound"],
  ["insert existing", (t) => t.createEntity(entity("p")), 409, "EntityAlreadyExists"],
  ["stale update", (t) => t.updateEntity(entity("p"), "Merge", stale), 412, "UpdateConditionNotSatisfied"],
  ["stale delete", (t) => t.deleteEntity("p", "r", stale), 412, "UpdateConditionNotSatisfied"],
];
for (const [name, act, status, code] of REFUSALS) {
  test(name, () =>
    withTable(async (table) => {
      await table.createEntity(entity("p"));
      await refusal(act(table), status, code);
    }));
}

const ON_A_TABLE = {
  get: (t) => t.getEntity("p", "r"),
  query: (t) => all(t.listEntities()),
  insert: (t) => t.createEntity(entity("p")),
  update: (t) => t.updateEntity(entity("p")),
  upsert: (t) => t.upsertEntity(entity("p")),
  delete: (t) => t.deleteEntity("p", "r"),
};
const wrongKey = Buffer.from("not the key".repeat(5)).toString("base64");
for (const [name, act] of Object.entries(ON_A_TABLE)) {
  test(`${name} on a missing table`, () => refusal(act(tableClient(fresh())), 404, "TableNotFound"));
  test(`${name} with the wrong key`, () =>
    refusal(act(tableClient(fresh(), ENDPOINT, wrongKey)), 403, "AuthenticationFailed"));
}

test("tables with the wrong key", async () => {
  const service = serviceClient(ENDPOINT, wrongKey);
  await refusal(all(service.listTables()), 403, "AuthenticationFailed");
  await refusal(service.createTable(fresh()), 403, "AuthenticationFailed");
});

test("the message names the request", () =>
  withTable(async (table) => {
    const error = await refusal(table.getEntity("p", "r"), 404, "ResourceNotFound");
    const requestId = error.response.headers.get("x-ms-request-id");
    assert.ok(error.message.includes(`RequestId:${requestId}`), error.message);
  }));

test("a connection string", () =>
  withTable(async (table) => {
    const text = `DefaultEndpointsProtocol=http;AccountName=${ACCOUNT};AccountKey=${KEY};TableEndpoint=${ENDPOINT};`;
    const tables = await all(TableServiceClient.fromConnectionString(text, OPTIONS).listTables());
    assert.ok(tables.some((t) => t.name === table.tableName));
  }));
