// Stored access policies as they are kept, service properties and service statistics.

"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const azure = require("azure-storage");
const { ACCOUNT, ENDPOINT, KEY, promising, tableOfThisFile, refusal } = require("./helper.js");

const { service, table } = tableOfThisFile();

const full = { Start: new Date("2030-01-02T03:04:05Z"), Expiry: new Date("2031-01-02T03:04:05Z"), Permissions: "raud" };
const POLICIES = {
  five: { a: full, b: full, c: full, d: full, e: full },
  parts: { a: {}, b: { Permissions: "r" }, c: { Expiry: full.Expiry } },
  "other letters": { "o'clock <é> & 日本 😀": full },
  none: {},
};
for (const [name, given] of Object.entries(POLICIES)) {
  test(`policies: ${name}`, async () => {
    await service.setTableAcl(table, given);
    assert.deepEqual((await service.getTableAcl(table)).signedIdentifiers, given);
  });
}

test("six policies are refused", () => {
  const six = Object.fromEntries([..."abcdef"].map((id) => [id, full]));
  return refusal(service.setTableAcl(table, six), 400, "InvalidXmlDocument");
});

// Service properties are the account's: every test puts them back.
const restoring = (act) => async () => {
  const before = await service.getServiceProperties();
  try {
    await act();
  } finally {
    await service.setServiceProperties(before);
  }
};

const retention = { Enabled: true, Days: 7 };
const metrics = { Version: "1.0", Enabled: true, IncludeAPIs: true, RetentionPolicy: retention };
const rule = {
  AllowedMethods: ["GET", "PUT"],
  AllowedOrigins: ["http://a.example", "http://b.example"],
  AllowedHeaders: ["accept", "x-ms-*"],
  ExposedHeaders: [],
  MaxAgeInSeconds: 200,
};
const base = {
  Logging: { Version: "1.0", Delete: true, Read: true, Write: true, RetentionPolicy: retention },
  HourMetrics: metrics,
  MinuteMetrics: metrics,
  Cors: { CorsRule: [rule] },
};
const PROPERTIES = {
  logging: { Logging: { Version: "1.0", Delete: false, Read: true, Write: false, RetentionPolicy: { Enabled: false } } },
  "hour metrics": { HourMetrics: { ...metrics, IncludeAPIs: false } },
  "no minute metrics": { MinuteMetrics: { Version: "1.0", Enabled: false, RetentionPolicy: { Enabled: false } } },
  "five rules": { Cors: { CorsRule: Array(5).fill(rule) } },
  "no rules": { Cors: {} },
};
for (const [name, given] of Object.entries(PROPERTIES)) {
  test(`properties: ${name}, the others kept`, restoring(async () => {
    await service.setServiceProperties(base);
    await service.setServiceProperties(given);
    assert.deepEqual(await service.getServiceProperties(), { ...base, ...given });
  }));
}

const MALFORMED = {
  "366 days": { HourMetrics: { ...metrics, RetentionPolicy: { Enabled: true, Days: 366 } } },
  "six rules": { Cors: { CorsRule: Array(6).fill(rule) } },
  "unknown method": { Cors: { CorsRule: [{ ...rule, AllowedMethods: ["FETCH"] }] } },
};
for (const [name, given] of Object.entries(MALFORMED)) {
  test(`refused properties: ${name}`, restoring(() => refusal(service.setServiceProperties(given), 400, "InvalidXmlDocument")));
}

test("statistics", async () => {
  const hosts = { primaryHost: ENDPOINT, secondaryHost: `${ENDPOINT}-secondary` };
  const both = promising(azure.createTableService(ACCOUNT, KEY, hosts));
  const options = { locationMode: azure.StorageUtilities.LocationMode.SECONDARY_ONLY };
  const { GeoReplication } = await both.getServiceStats(options);
  assert.equal(GeoReplication.Status, "live");
  const late = Date.now() - GeoReplication.LastSyncTime.getTime();
  assert.ok(late >= 0 && late < 600_000, String(late));
});
