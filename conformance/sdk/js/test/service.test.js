// Stored access policies as they are kept, service properties and service statistics.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ENDPOINT, fresh, refusal, serviceClient, tableClient, withTable } from "./helper.js";

const SECONDARY = `${ENDPOINT}-secondary`;
const service = serviceClient();

// Without the `undefined` that the SDK gives for what is missing.
const plain = (value) => JSON.parse(JSON.stringify(value));

// Of an answer, what the service keeps: the SDK adds the answer's headers.
const kept = ({ clientRequestId, requestId, version, date, ...rest }) => plain(rest);

const full = { start: new Date("2030-01-02T03:04:05Z"), expiry: new Date("2031-01-02T03:04:05Z"), permission: "raud" };
const ids = (policies) => policies.map(({ id }) => id);
const POLICIES = {
  none: [],
  one: [{ id: "a", accessPolicy: full }],
  five: ["e", "d", "c", "b", "a"].map((id) => ({ id, accessPolicy: full })),
  "only an id": [{ id: "a", accessPolicy: {} }],
  permission: [{ id: "a", accessPolicy: { permission: "r" } }],
  expiry: [{ id: "a", accessPolicy: { expiry: full.expiry } }],
  "long id": [{ id: "x".repeat(64), accessPolicy: full }],
  "other letters": [{ id: "o'clock <é> & 日本 😀", accessPolicy: full }],
};
for (const [name, given] of Object.entries(POLICIES)) {
  test(`policies: ${name}`, () =>
    withTable(async (table) => {
      await table.setAccessPolicy(given);
      assert.deepEqual(plain(await table.getAccessPolicy()), plain(given));
    }));
}

test("policies are replaced", () =>
  withTable(async (table) => {
    await table.setAccessPolicy([{ id: "a" }, { id: "b" }]);
    await table.setAccessPolicy([{ id: "c" }]);
    assert.deepEqual(ids(await table.getAccessPolicy()), ["c"]);
  }));

const MALFORMED_POLICIES = {
  six: ["a", "b", "c", "d", "e", "f"].map((id) => ({ id, accessPolicy: full })),
  "long id": [{ id: "x".repeat(65), accessPolicy: full }],
  "the same id twice": [{ id: "a" }, { id: "a" }],
  "unknown permission": [{ id: "a", accessPolicy: { permission: "rx" } }],
};
for (const [name, given] of Object.entries(MALFORMED_POLICIES)) {
  test(`refused policies: ${name}`, () =>
    withTable(async (table) => {
      await table.setAccessPolicy([{ id: "kept" }]);
      await refusal(table.setAccessPolicy(given), 400, "InvalidXmlDocument");
      assert.deepEqual(ids(await table.getAccessPolicy()), ["kept"]);
    }));
}

test("policies of a missing table", async () => {
  await refusal(tableClient(fresh()).getAccessPolicy(), 404, "TableNotFound");
  await refusal(tableClient(fresh()).setAccessPolicy([]), 404, "TableNotFound");
});

// Service properties are the account's: every test puts them back.
const restoring = (act) => async () => {
  const before = kept(await service.getProperties());
  try {
    await act(before);
  } finally {
    await service.setProperties(before);
  }
};

const days = (count) => ({ enabled: true, days: count });
const logging = { version: "1.0", read: true, write: true, delete: true, retentionPolicy: days(1) };
const metrics = { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: days(365) };
const rule = {
  allowedOrigins: "http://a.example,http://b.example",
  allowedMethods: "GET,PUT,MERGE",
  allowedHeaders: "accept,x-ms-*",
  exposedHeaders: "etag,x-ms-meta-*",
  maxAgeInSeconds: 200,
};
const PROPERTIES = {
  logging: { logging },
  "no logging": { logging: { version: "1.0", read: false, write: false, delete: false, retentionPolicy: { enabled: false } } },
  "hour metrics": { hourMetrics: metrics },
  "hour metrics without APIs": { hourMetrics: { ...metrics, includeAPIs: false, retentionPolicy: { enabled: false } } },
  "no hour metrics": { hourMetrics: { version: "1.0", enabled: false, retentionPolicy: { enabled: false } } },
  "minute metrics": { minuteMetrics: { ...metrics, retentionPolicy: days(5) } },
  cors: { cors: [rule, { ...rule, allowedOrigins: "*", allowedMethods: "DELETE,HEAD,OPTIONS,POST", maxAgeInSeconds: 0 }] },
  "five rules": { cors: Array(5).fill(rule) },
  "no rules": { cors: [] },
};
for (const [name, given] of Object.entries(PROPERTIES)) {
  test(`properties: ${name}, the others kept`, restoring(async () => {
    await service.setProperties({ logging, hourMetrics: metrics, minuteMetrics: metrics, cors: [rule] });
    await service.setProperties(given);
    const expected = { logging, hourMetrics: metrics, minuteMetrics: metrics, cors: [rule], ...given };
    assert.deepEqual(kept(await service.getProperties()), expected);
  }));
}

const MALFORMED_PROPERTIES = {
  "366 days of logging": { logging: { ...logging, retentionPolicy: days(366) } },
  "366 days of metrics": { hourMetrics: { ...metrics, retentionPolicy: days(366) } },
  "no number of days": { minuteMetrics: { ...metrics, retentionPolicy: { enabled: true } } },
  version: { logging: { ...logging, version: "3.0" } },
  "metrics without APIs": { hourMetrics: { version: "1.0", enabled: true, retentionPolicy: days(1) } },
  "six rules": { cors: Array(6).fill(rule) },
  "no origins": { cors: [{ ...rule, allowedOrigins: "" }] },
  "unknown method": { cors: [{ ...rule, allowedMethods: "FETCH" }] },
};
for (const [name, given] of Object.entries(MALFORMED_PROPERTIES)) {
  test(`refused properties: ${name}`, restoring(async (before) => {
    await refusal(service.setProperties(given), 400, "InvalidXmlDocument");
    assert.deepEqual(kept(await service.getProperties()), before);
  }));
}

test("properties at the secondary", restoring(async () => {
  await service.setProperties({ cors: [rule] });
  assert.deepEqual((await serviceClient(SECONDARY).getProperties()).cors, [rule]);
  await refusal(serviceClient(SECONDARY).setProperties({ cors: [] }), 403, "InsufficientAccountPermissions");
}));

// The SDK looks for the secondary in the host's name, which it leaves alone if that is an address.
test("statistics", async () => {
  const { geoReplication } = await serviceClient(SECONDARY).getStatistics();
  assert.equal(geoReplication.status, "live");
  const late = Date.now() - geoReplication.lastSyncTime.getTime();
  assert.ok(late >= 0 && late < 600_000, String(late));
});

test("no statistics at the primary", () => refusal(service.getStatistics(), 400));
