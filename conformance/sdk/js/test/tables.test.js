// Tables: create, list, delete, and which names are names.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { odata } from "@azure/data-tables";
import { all, entity, fresh, refusal, serviceClient, tableClient, withTable } from "./helper.js";

const service = serviceClient();
const prefix = fresh();
const three = ["a", "b", "c"].map((suffix) => prefix + suffix);
const byPrefix = { queryOptions: { filter: odata`TableName ge ${prefix} and TableName lt ${prefix + "z"}` } };
const names = (tables) => tables.map((t) => t.name);

before(() => Promise.all(three.map((name) => service.createTable(name))));
after(() => Promise.all(three.map((name) => service.deleteTable(name))));

// `createTable` is create-if-not-exists here: the SDK forgives a 409 TableAlreadyExists and nothing else.
test("create existing is 409, which the SDK forgives, and keeps what is there", () =>
  withTable(async (table) => {
    await table.createEntity(entity("p"));
    let status;
    await table.createTable({ onResponse: (response) => (status = response.status) });
    assert.equal(status, 409);
    assert.equal((await all(table.listEntities())).length, 1);
  }));

test("list holds every table in name order", async () => {
  const listed = names(await all(service.listTables()));
  assert.deepEqual(listed.filter((name) => three.includes(name)), three);
  const lower = listed.map((name) => name.toLowerCase());
  assert.deepEqual(lower, lower.toSorted());
});

test("list by name", async () => {
  const found = await all(service.listTables({ queryOptions: { filter: odata`TableName eq ${three[1]}` } }));
  assert.deepEqual(names(found), [three[1]]);
});

test("list by prefix", async () => {
  assert.deepEqual(names(await all(service.listTables(byPrefix))), three);
});

test("list pages of two resume in another client", async () => {
  const { value: first } = await service.listTables(byPrefix).byPage({ maxPageSize: 2 }).next();
  assert.deepEqual(names(first), three.slice(0, 2));
  const settings = { maxPageSize: 2, continuationToken: first.continuationToken };
  const rest = await all(serviceClient().listTables(byPrefix).byPage(settings));
  assert.deepEqual(names(rest.flat()), three.slice(2));
});

test("delete removes the table and its entities", async () => {
  const table = tableClient(fresh());
  await table.createTable();
  await table.createEntity(entity("p"));
  await table.deleteTable();
  const filter = odata`TableName eq ${table.tableName}`;
  assert.deepEqual(await all(service.listTables({ queryOptions: { filter } })), []);

  await table.createTable();
  assert.deepEqual(await all(table.listEntities()), []);
  await table.deleteTable();
});

test("delete missing is 404, which the SDK forgives", async () => {
  let status;
  await service.deleteTable(fresh(), { onResponse: (response) => (status = response.status) });
  assert.equal(status, 404);
});

test("names ignore case and keep the case of creation", async () => {
  const name = fresh("Js");
  await service.createTable(name);
  await tableClient(name.toUpperCase()).createEntity(entity("p"));
  assert.equal((await all(tableClient(name).listEntities())).length, 1);
  assert.ok(names(await all(service.listTables())).includes(name));

  await service.deleteTable(name.toLowerCase());
  assert.ok(!names(await all(service.listTables())).includes(name));
});

const MALFORMED = [
  ["ab", "OutOfRangeInput"],
  ["a".repeat(64), "OutOfRangeInput"],
  ["1abc", "InvalidResourceName"],
  ["a-b", "InvalidResourceName"],
  ["a_b", "InvalidResourceName"],
  ["tablé", "InvalidResourceName"],
  ["tables", "InvalidInput"],
];
for (const [name, code] of MALFORMED) {
  test(`name ${name} is refused`, () => refusal(service.createTable(name), 400, code));
}
