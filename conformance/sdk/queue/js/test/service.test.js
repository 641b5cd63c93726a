// The service as a whole: properties, statistics, the secondary endpoint, connection strings, keys.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AnonymousCredential, QueueServiceClient, StorageSharedKeyCredential } from "@azure/storage-queue";
import { ACCOUNT, ENDPOINT, KEY, OPTIONS, fresh, peek, queueClient, refusal, serviceClient, texts, withQueue } from "./helper.js";

const service = serviceClient();

test("properties come back", async () => {
  const retentionPolicy = { enabled: true, days: 7 };
  const properties = {
    queueAnalyticsLogging: { version: "1.0", deleteProperty: true, read: true, write: true, retentionPolicy },
    hourMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy },
    minuteMetrics: { version: "1.0", enabled: false, retentionPolicy: { enabled: false } },
    cors: [{ allowedOrigins: "example.com", allowedMethods: "GET,PUT", allowedHeaders: "*", exposedHeaders: "", maxAgeInSeconds: 8888 }],
  };
  await service.setProperties(properties);
  const { queueAnalyticsLogging, hourMetrics, minuteMetrics, cors } = await service.getProperties();
  assert.deepEqual(JSON.parse(JSON.stringify({ queueAnalyticsLogging, hourMetrics, minuteMetrics, cors })), properties);
  await service.setProperties({ cors: [] });
  const after = await service.getProperties();
  assert.deepEqual([after.cors ?? [], after.hourMetrics.retentionPolicy.days], [[], 7]);
  const off = { version: "1.0", enabled: false, retentionPolicy: { enabled: false } };
  const quiet = { version: "1.0", deleteProperty: false, read: false, write: false, retentionPolicy: { enabled: false } };
  await service.setProperties({ queueAnalyticsLogging: quiet, hourMetrics: off });
});

test("statistics are on the secondary", async () => {
  // This version of the SDK looks for a root element <QueueServiceStats>, which the service does not send, so it finds no state.
  assert.equal((await serviceClient(ENDPOINT + "-secondary").getStatistics()).contentType, "application/xml");
  await refusal(service.getStatistics(), 400, "InvalidQueryParameterValue");
});

test("the secondary reads", () =>
  withQueue(async (queue) => {
    await queue.sendMessage("a");
    assert.deepEqual(texts(await peek(queueClient(queue.name, ENDPOINT + "-secondary"))), ["a"]);
  }));

test("a connection string", () =>
  withQueue(async (queue) => {
    const string = `DefaultEndpointsProtocol=http;AccountName=${ACCOUNT};AccountKey=${KEY};QueueEndpoint=${ENDPOINT};`;
    const client = QueueServiceClient.fromConnectionString(string, OPTIONS).getQueueClient(queue.name);
    assert.equal(await client.exists(), true);
  }));

test("a wrong key", () => {
  const wrong = new StorageSharedKeyCredential(ACCOUNT, Buffer.alloc(64).toString("base64"));
  return refusal(queueClient(fresh(), ENDPOINT, wrong).create(), 403, "AuthenticationFailed");
});

test("no key", async () => {
  const error = await queueClient(fresh(), ENDPOINT, new AnonymousCredential()).create().catch((error) => error);
  assert.deepEqual([error.statusCode, error.code], [401, "NoAuthenticationInformation"]);
});

test("the answer names the request", () =>
  withQueue(async (queue) => {
    const found = await queue.getProperties();
    assert.ok(found.requestId && found.version && found.clientRequestId && found.date instanceof Date);
  }));
