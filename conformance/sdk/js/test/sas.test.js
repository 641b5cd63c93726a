// Shared access signatures: the SDK's tokens do what they grant, and nothing else.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AzureNamedKeyCredential,
  AzureSASCredential,
  TableClient,
  TableServiceClient,
  generateAccountSas,
  generateTableSas,
  odata,
} from "@azure/data-tables";
import { ACCOUNT, ENDPOINT, KEY, OPTIONS, all, cases, entity, fresh, query, refusal, tableOfThisFile, withTable } from "./helper.js";

const credential = new AzureNamedKeyCredential(ACCOUNT, KEY);
const hours = (count) => new Date(Date.now() + count * 3600_000);

const TABLE_PERMISSIONS = { r: "query", a: "add", u: "update", d: "delete" };
const ACCOUNT_PERMISSIONS = { ...TABLE_PERMISSIONS, w: "write", l: "list" };
const permissionsOf = (names, letters) => Object.fromEntries([...letters].map((letter) => [names[letter], true]));

const tableToken = (table, letters = "raud", more = {}) =>
  generateTableSas(table.tableName, credential, {
    permissions: permissionsOf(TABLE_PERMISSIONS, letters),
    expiresOn: hours(1),
    ...more,
  });
const accountToken = (resourceTypes, letters, more = {}) =>
  generateAccountSas(credential, { resourceTypes, permissions: permissionsOf(ACCOUNT_PERMISSIONS, letters), ...more });

const withToken = (table, token, endpoint = ENDPOINT) =>
  new TableClient(endpoint, table.tableName, new AzureSASCredential(token), OPTIONS);
const serviceWith = (token) => new TableServiceClient(ENDPOINT, new AzureSASCredential(token), OPTIONS);
const holder = (table, letters, more) => withToken(table, tableToken(table, letters, more));
const changed = (token, change) => new URLSearchParams({ ...Object.fromEntries(new URLSearchParams(token)), ...change }).toString();

const unauthenticated = (promise) => refusal(promise, 403, "AuthenticationFailed");
const keys = (entities) => entities.map((e) => [e.partitionKey, e.rowKey]);
const without = (letters, given) => [...letters].filter((letter) => !given.includes(letter)).join("");

const withRow = (act) =>
  withTable(async (table) => {
    await table.createEntity(entity("p", "r", { A: 1 }));
    await act(table);
  });

const OPERATIONS = {
  get: ["r", (t, p, r) => t.getEntity(p, r)],
  query: ["r", (t, p) => query(t, odata`PartitionKey eq ${p}`)],
  insert: ["a", (t, p, r) => t.createEntity(entity(p, `${r}new`))],
  merge: ["u", (t, p, r) => t.updateEntity(entity(p, r), "Merge")],
  replace: ["u", (t, p, r) => t.updateEntity(entity(p, r), "Replace")],
  "insert or merge": ["au", (t, p, r) => t.upsertEntity(entity(p, r), "Merge")],
  "insert or replace": ["au", (t, p, r) => t.upsertEntity(entity(p, r), "Replace")],
  delete: ["d", (t, p, r) => t.deleteEntity(p, r)],
};
for (const [name, [needs, act]] of Object.entries(OPERATIONS)) {
  test(`${name} with ${needs}`, () => withRow((table) => act(holder(table, needs), "p", "r")));
  for (const letter of needs) {
    test(`${name} needs ${letter}`, () =>
      withRow((table) =>
        refusal(act(holder(table, without("raud", letter)), "p", "r"), 403, "AuthorizationPermissionMismatch"),
      ));
  }
}

test("permission is decided before existence", () =>
  withRow((table) => refusal(holder(table, "r").updateEntity(entity("p", "missing")), 403, "AuthorizationPermissionMismatch")));

const { rows, ranges } = cases("ranges.json");
const ranged = tableOfThisFile(async (table) => {
  for (const [p, r] of rows) await table.createEntity(entity(p, r));
});
for (const [name, { inside, ...bounds }] of Object.entries(ranges)) {
  test(`a query is cut to the range ${name}`, async () => {
    assert.deepEqual(keys(await all(holder(ranged, "r", bounds).listEntities())), inside);
  });

  test(`point reads in the range ${name}`, async () => {
    const client = holder(ranged, "r", bounds);
    for (const [p, r] of rows) {
      if (inside.some(([q, s]) => p === q && r === s)) assert.equal((await client.getEntity(p, r)).rowKey, r);
      else await refusal(client.getEntity(p, r), 404, "ResourceNotFound");
    }
  });
}

for (const [name, [needs, act]] of Object.entries(OPERATIONS)) {
  if (needs === "r") continue;
  test(`${name} in the range`, () =>
    withRow((table) => act(holder(table, "raud", { startPartitionKey: "p", endPartitionKey: "p" }), "p", "r")));
  for (const bounds of [{ startPartitionKey: "q" }, { endPartitionKey: "p", endRowKey: "q" }]) {
    test(`${name} outside the range ${JSON.stringify(bounds)}`, () =>
      withRow(async (table) => {
        await refusal(act(holder(table, "raud", bounds), "p", "r"), 403, "AuthorizationFailure");
        assert.deepEqual((await all(table.listEntities())).map((e) => e.A), [1]);
      }));
  }
}

const WHEN = [
  ["started", { startsOn: hours(-1) }, true],
  ["not yet", { startsOn: hours(0.5) }, false],
  ["expired", { expiresOn: hours(-0.01) }, false],
];
for (const [name, times, valid] of WHEN) {
  test(`time: ${name}`, () =>
    withRow(async (table) => {
      const reading = holder(table, "r", times).getEntity("p", "r");
      await (valid ? reading : unauthenticated(reading));
    }));
}

test("source address", () =>
  withRow(async (table) => {
    await holder(table, "r", { ipRange: { start: "0.0.0.0", end: "255.255.255.255" } }).getEntity("p", "r");
    const elsewhere = holder(table, "r", { ipRange: { start: "203.0.113.1" } });
    await refusal(elsewhere.getEntity("p", "r"), 403, "AuthorizationSourceIPMismatch");
  }));

test("protocol", { skip: ENDPOINT.startsWith("https:") }, () =>
  withRow(async (table) => {
    await holder(table, "r", { protocol: "https,http" }).getEntity("p", "r");
    await refusal(holder(table, "r", { protocol: "https" }).getEntity("p", "r"), 403, "AuthorizationProtocolMismatch");
  }));

const TAMPERED = {
  permission: { sp: "raud" },
  expiry: { se: "2099-01-01" },
  table: { tn: "another" },
  range: { spk: "a" },
  signature: { sig: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" },
};
for (const [name, change] of Object.entries(TAMPERED)) {
  test(`tampered ${name}`, () =>
    withRow((table) => unauthenticated(withToken(table, changed(tableToken(table, "r"), change)).getEntity("p", "r"))));
}

test("table names ignore case", () =>
  withRow(async (table) => {
    const token = tableToken({ tableName: table.tableName.toUpperCase() }, "r");
    assert.equal((await withToken(table, token).getEntity("p", "r")).A, 1);
  }));

test("a token is for its table only", () =>
  withRow(async (table) => {
    const stranger = withToken(ranged, tableToken(table));
    for (const [, act] of Object.values(OPERATIONS)) await refusal(act(stranger, "A", "4"), 403, "AuthorizationFailure");
  }));

const BEYOND_A_TABLE = {
  "list tables": (service) => all(service.listTables()),
  "create table": (service) => service.createTable(fresh()),
  "delete table": (service, table) => service.deleteTable(table.tableName),
  "get policies": (_, table) => table.getAccessPolicy(),
  "set policies": (_, table) => table.setAccessPolicy([]),
  "get properties": (service) => service.getProperties(),
  "set properties": (service) => service.setProperties({}),
};
for (const [name, act] of Object.entries(BEYOND_A_TABLE)) {
  test(`a table's token does not ${name}`, () =>
    withTable((table) => {
      const token = tableToken(table);
      return refusal(act(serviceWith(token), withToken(table, token)), 403, "AuthorizationFailure");
    }));
}

test("the secondary endpoint", () =>
  withRow(async (table) => {
    assert.equal((await withToken(table, tableToken(table), `${ENDPOINT}-secondary`).getEntity("p", "r")).A, 1);
  }));

test("a transaction", () =>
  withRow(async (table) => {
    await holder(table).submitTransaction([
      ["create", entity("p", "new")],
      ["update", entity("p", "r", { A: 2 })],
      ["upsert", entity("p", "up")],
    ]);
    assert.deepEqual((await all(table.listEntities())).map((e) => e.A), [undefined, 2, undefined]);
  }));

for (const letter of "aud") {
  test(`a transaction needs ${letter}`, () =>
    withRow(async (table) => {
      await table.createEntity(entity("p", "other", { A: 3 }));
      const writing = holder(table, without("raud", letter)).submitTransaction([
        ["create", entity("p", "new")],
        ["update", entity("p", "r", { A: 2 })],
        ["delete", entity("p", "other")],
      ]);
      await refusal(writing, 403, "AuthorizationPermissionMismatch");
      assert.deepEqual((await all(table.listEntities())).map((e) => e.A), [3, 1]);
    }));
}

test("a transaction keeps to the range", () =>
  withRow(async (table) => {
    const client = holder(table, "raud", { startPartitionKey: "p", endPartitionKey: "p", endRowKey: "r" });
    await client.submitTransaction([["create", entity("p", "a")], ["create", entity("p", "b")]]);
    const beyond = client.submitTransaction([["create", entity("p", "c")], ["create", entity("p", "s")]]);
    await refusal(beyond, 403, "AuthorizationFailure");
    assert.equal((await all(table.listEntities())).length, 3);
  }));

// Stored access policies

const reader = { id: "reader", accessPolicy: { permission: "r", expiry: hours(1) } };
const byPolicy = (table, more = {}) =>
  withToken(table, generateTableSas(table.tableName, credential, { identifier: "reader", ...more }));

test("a policy grants", () =>
  withRow(async (table) => {
    await table.setAccessPolicy([reader]);
    assert.equal((await byPolicy(table).getEntity("p", "r")).A, 1);
    await refusal(byPolicy(table).upsertEntity(entity("p")), 403, "AuthorizationPermissionMismatch");
  }));

const REVOKED = {
  cleared: [],
  renamed: [{ ...reader, id: "reader2" }],
  expired: [{ ...reader, accessPolicy: { permission: "r", expiry: hours(-1) } }],
  "not yet": [{ ...reader, accessPolicy: { ...reader.accessPolicy, start: hours(0.5) } }],
  empty: [{ id: "reader" }],
};
for (const [name, policies] of Object.entries(REVOKED)) {
  test(`a policy ${name} and revived`, () =>
    withRow(async (table) => {
      const client = byPolicy(table);
      await table.setAccessPolicy([reader]);
      await client.getEntity("p", "r");
      await table.setAccessPolicy(policies);
      await unauthenticated(client.getEntity("p", "r"));
      await table.setAccessPolicy([reader]);
      await client.getEntity("p", "r");
    }));
}

test("policy and token complete each other", () =>
  withRow(async (table) => {
    await table.setAccessPolicy([{ id: "reader", accessPolicy: { permission: "r" } }]);
    assert.equal((await byPolicy(table, { expiresOn: hours(1) }).getEntity("p", "r")).A, 1);
  }));

for (const field of [{ permissions: { query: true } }, { expiresOn: hours(1) }]) {
  test(`policy and token do not both give ${Object.keys(field)}`, () =>
    withRow(async (table) => {
      await table.setAccessPolicy([reader]);
      await unauthenticated(byPolicy(table, field).getEntity("p", "r"));
    }));
}

// Account tokens: the resource types that will do, and the permission. The SDK has none to create, only to write.

const ON_ACCOUNT = {
  "list tables": ["c", "l", (service) => all(service.listTables())],
  "create table": [
    "c",
    "w",
    async (service) => {
      const name = fresh();
      await service.createTable(name);
      await serviceWith(accountToken("c", "d")).deleteTable(name);
    },
  ],
  "delete table": ["c", "d", (service, table) => service.deleteTable(table.tableName)],
  "get properties": ["s", "r", (service) => service.getProperties()],
  "set properties": ["s", "w", (service) => service.setProperties({})],
  ...Object.fromEntries(
    Object.entries(OPERATIONS).map(([name, [needs, act]]) => [name, ["o", needs, (_, table) => act(table, "p", "r")]]),
  ),
  transaction: ["o", "a", (_, table) => table.submitTransaction([["create", entity("p", "new")]])],
};
for (const [name, [types, needs, act]] of Object.entries(ON_ACCOUNT)) {
  const withAccountToken = (type, letters) => (table) => {
    const token = accountToken(type, letters);
    return act(serviceWith(token), withToken(table, token));
  };
  for (const type of types) {
    test(`${name} with an account token for ${type} and ${needs}`, () => withRow(withAccountToken(type, needs)));
  }
  test(`${name} needs a resource type of ${types}`, () =>
    withRow((table) =>
      refusal(withAccountToken(without("sco", types), "rwdlau")(table), 403, "AuthorizationResourceTypeMismatch"),
    ));
  for (const letter of needs) {
    test(`${name} needs ${letter} of an account token`, () =>
      withRow((table) =>
        refusal(withAccountToken("sco", without("rwdlau", letter))(table), 403, "AuthorizationPermissionMismatch"),
      ));
  }
}

test("an account token is not for policies", () =>
  withTable(async (table) => {
    const client = withToken(table, accountToken("sco", "rwdlau"));
    await refusal(client.getAccessPolicy(), 403, "AuthorizationFailure");
    await refusal(client.setAccessPolicy([]), 403, "AuthorizationFailure");
  }));

test("an account token for other services", () =>
  refusal(
    all(serviceWith(accountToken("sco", "rl", { services: { blob: true, queue: true, file: true } })).listTables()),
    403,
    "AuthorizationServiceMismatch",
  ));

test("an account token for every service", () =>
  all(serviceWith(accountToken("sco", "rl", { services: { blob: true, table: true, queue: true, file: true } })).listTables()));

test("a tampered account token", () =>
  unauthenticated(all(serviceWith(changed(accountToken("c", "l"), { sp: "lc" })).listTables())));

test("account token times", async () => {
  await all(serviceWith(accountToken("c", "l", { startsOn: hours(-1) })).listTables());
  await unauthenticated(all(serviceWith(accountToken("c", "l", { startsOn: hours(0.5) })).listTables()));
  await unauthenticated(all(serviceWith(accountToken("c", "l", { expiresOn: hours(-0.01) })).listTables()));
});
