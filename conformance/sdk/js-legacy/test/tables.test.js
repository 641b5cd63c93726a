// Tables: create, exists, list by prefix and by page, delete.

"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { client, fresh, entity, refusal } = require("./helper.js");

const service = client();

test("create, exists, delete", async () => {
  const name = fresh();
  assert.equal((await service.doesTableExist(name)).exists, false);
  assert.equal((await service.createTable(name)).TableName, name);
  assert.equal((await service.doesTableExist(name)).exists, true);
  await refusal(service.createTable(name), 409, "TableAlreadyExists");
  assert.equal((await service.createTableIfNotExists(name)).created, false);

  await service.deleteTable(name);
  await refusal(service.deleteTable(name), 404, "ResourceNotFound");
  assert.equal((await service.doesTableExist(name)).exists, false);
  await refusal(service.insertEntity(name, entity("p")), 404, "TableNotFound");
});

test("list by prefix and by page", async () => {
  const prefix = fresh();
  const names = ["a", "b", "c"].map((suffix) => prefix + suffix);
  for (const name of names) await service.createTable(name);
  const options = { maxResults: 2 };
  const first = await service.listTablesSegmentedWithPrefix(prefix, null, options);
  const rest = await client().listTablesSegmentedWithPrefix(prefix, first.continuationToken, options);
  for (const name of names) await service.deleteTable(name);
  assert.deepEqual([...first.entries, ...rest.entries], names);
  assert.equal(first.entries.length, 2);
  assert.ok(!rest.continuationToken);
});

test("wrong key", () =>
  refusal(client(Buffer.from("not the key").toString("base64")).createTable(fresh()), 403, "AuthenticationFailed"));
