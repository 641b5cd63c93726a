// Shared access signatures: the SDK's tokens, of version 2018-03-28, do what they grant, and nothing else.

"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const azure = require("azure-storage");
const { ACCOUNT, ENDPOINT, KEY, client, promising, fresh, entity, refusal } = require("./helper.js");
const { rows, ranges } = require("../../cases/ranges.json");

const { TableBatch, TableQuery, generateAccountSharedAccessSignature } = azure;
const service = client();
const signer = azure.createTableService(ACCOUNT, KEY, ENDPOINT);
const hours = (count) => new Date(Date.now() + count * 3600_000);

const tableToken = (table, Permissions = "raud", more = {}) =>
  signer.generateSharedAccessSignature(table, { AccessPolicy: { Permissions, Expiry: hours(1), ...more } });
const accountToken = (ResourceTypes, Permissions, Services = "t") =>
  generateAccountSharedAccessSignature(ACCOUNT, KEY, { AccessPolicy: { ResourceTypes, Permissions, Services, Expiry: hours(1) } });
const withToken = (token) => promising(azure.createTableServiceWithSas(ENDPOINT, token));
const holder = (table, permissions, more) => withToken(tableToken(table, permissions, more));
const unauthenticated = (promise) => refusal(promise, 403, "AuthenticationFailed");
const without = (letters, given) => [...letters].filter((letter) => !given.includes(letter)).join("");

async function withRow(act) {
  const table = fresh();
  await service.createTable(table);
  try {
    await service.insertEntity(table, entity("p", "r"));
    await act(table);
  } finally {
    await service.deleteTable(table);
  }
}

async function keys(holder, table) {
  const { entries } = await holder.queryEntities(table, new TableQuery(), null);
  return entries.map((e) => [e.PartitionKey._, e.RowKey._]);
}

const OPERATIONS = {
  retrieve: ["r", (s, t) => s.retrieveEntity(t, "p", "r")],
  query: ["r", (s, t) => s.queryEntities(t, new TableQuery(), null)],
  insert: ["a", (s, t) => s.insertEntity(t, entity("p", "new"))],
  replace: ["u", (s, t) => s.replaceEntity(t, entity("p", "r"))],
  merge: ["u", (s, t) => s.mergeEntity(t, entity("p", "r"))],
  "insert or replace": ["au", (s, t) => s.insertOrReplaceEntity(t, entity("p", "r"))],
  "insert or merge": ["au", (s, t) => s.insertOrMergeEntity(t, entity("p", "r"))],
  delete: ["d", (s, t) => s.deleteEntity(t, entity("p", "r"))],
};
for (const [name, [needs, act]] of Object.entries(OPERATIONS)) {
  test(`${name} with ${needs}`, () => withRow((table) => act(holder(table, needs), table)));
  for (const letter of needs) {
    test(`${name} needs ${letter}`, () =>
      withRow((table) =>
        refusal(act(holder(table, without("raud", letter)), table), 403, "AuthorizationPermissionMismatch"),
      ));
  }
  if (needs === "r") continue;
  test(`${name} in the range`, () => withRow((table) => act(holder(table, "raud", { StartPk: "p", EndPk: "p" }), table)));
  test(`${name} outside the range`, () =>
    withRow((table) => refusal(act(holder(table, "raud", { StartPk: "q" }), table), 403, "AuthorizationFailure")));
}

test("ranges", async () => {
  const table = fresh();
  await service.createTable(table);
  for (const [p, r] of rows) await service.insertEntity(table, entity(p, r));
  for (const [name, range] of Object.entries(ranges)) {
    const { startPartitionKey: StartPk, startRowKey: StartRk, endPartitionKey: EndPk, endRowKey: EndRk, inside } = range;
    const client = holder(table, "r", { StartPk, StartRk, EndPk, EndRk });
    assert.deepEqual(await keys(client, table), inside, name);
    for (const [p, r] of rows) {
      const reading = client.retrieveEntity(table, p, r);
      await (inside.some(([q, s]) => p === q && r === s) ? reading : refusal(reading, 404, "ResourceNotFound"));
    }
  }
  await service.deleteTable(table);
});

const INVALID = { "not yet": { Start: hours(0.5) }, expired: { Expiry: hours(-0.01) } };
for (const [name, times] of Object.entries(INVALID)) {
  test(`a token ${name}`, () => withRow((table) => unauthenticated(keys(holder(table, "r", times), table))));
}

test("a token started", () => withRow((table) => keys(holder(table, "r", { Start: hours(-1) }), table)));

test("a tampered token", () =>
  withRow(async (table) => {
    const token = tableToken(table, "r");
    await unauthenticated(keys(withToken(token.replace("sp=r", "sp=raud")), table));
    await unauthenticated(keys(withToken(token.replace(/sig=[^&]*/, `sig=${"A".repeat(43)}%3D`)), table));
  }));

test("a token is for the entities of its table", () =>
  withRow(async (table) => {
    const client = holder(table);
    await refusal(client.listTablesSegmented(null), 403, "AuthorizationFailure");
    await refusal(client.createTable(fresh()), 403, "AuthorizationFailure");
    await refusal(client.getTableAcl(table), 403, "AuthorizationFailure");
    await withRow((other) => refusal(keys(client, other), 403, "AuthorizationFailure"));
  }));

test("a batch", () =>
  withRow(async (table) => {
    const batch = new TableBatch();
    batch.insertEntity(entity("p", "new"), { echoContent: false });
    batch.mergeEntity(entity("p", "r"));
    await refusal(holder(table, "ru").executeBatch(table, batch), 403, "AuthorizationPermissionMismatch");
    assert.deepEqual(await keys(service, table), [["p", "r"]]);
    await holder(table, "au").executeBatch(table, batch);
    assert.deepEqual(await keys(service, table), [["p", "new"], ["p", "r"]]);
  }));

test("a stored policy, revoked and revived", () =>
  withRow(async (table) => {
    const client = withToken(signer.generateSharedAccessSignature(table, { Id: "reader" }));
    const policy = { Permissions: "r", Expiry: hours(1) };
    await service.setTableAcl(table, { reader: policy });
    await keys(client, table);
    await refusal(client.insertEntity(table, entity("p", "new")), 403, "AuthorizationPermissionMismatch");
    for (const revoked of [{}, { reader2: policy }, { reader: { ...policy, Expiry: hours(-1) } }]) {
      await service.setTableAcl(table, revoked);
      await unauthenticated(keys(client, table));
      await service.setTableAcl(table, { reader: policy });
      await keys(client, table);
    }
  }));

test("an account token lists, creates and deletes tables", async () => {
  const table = fresh();
  await refusal(withToken(accountToken("so", "rwdlacu")).createTable(table), 403, "AuthorizationResourceTypeMismatch");
  await refusal(withToken(accountToken("sco", "rdlau")).createTable(table), 403, "AuthorizationPermissionMismatch");
  await withToken(accountToken("c", "c")).createTable(table);
  const { entries } = await withToken(accountToken("c", "l")).listTablesSegmentedWithPrefix(table, null);
  assert.deepEqual(entries, [table]);
  await refusal(withToken(accountToken("sco", "rwlacu")).deleteTable(table), 403, "AuthorizationPermissionMismatch");
  await withToken(accountToken("c", "d")).deleteTable(table);
});

test("an account token and entities", () =>
  withRow(async (table) => {
    await refusal(keys(withToken(accountToken("sc", "rwdlacu")), table), 403, "AuthorizationResourceTypeMismatch");
    await refusal(keys(withToken(accountToken("o", "wdlacu")), table), 403, "AuthorizationPermissionMismatch");
    await refusal(keys(withToken(accountToken("sco", "rwdlacu", "bqf")), table), 403, "AuthorizationServiceMismatch");
    assert.deepEqual(await keys(withToken(accountToken("o", "r", "bqtf")), table), [["p", "r"]]);
  }));
