// The service as a whole: properties, soft delete, account information, connection strings, keys.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import {
  ACCOUNT, ENDPOINT, KEY, OPTIONS, all, content, noBinary, nobody, put, refusal, serviceClient, withBlob, withContainer, withServer,
} from "./helper.js";

test("properties come back", { skip: noBinary }, () =>
  withServer([], async (endpoint) => {
    const service = serviceClient(endpoint);
    const retentionPolicy = { enabled: true, days: 7 };
    const properties = {
      blobAnalyticsLogging: { version: "1.0", deleteProperty: true, read: true, write: true, retentionPolicy },
      hourMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy },
      minuteMetrics: { version: "1.0", enabled: false, retentionPolicy: { enabled: false } },
      cors: [{ allowedOrigins: "example.com", allowedMethods: "GET,PUT", allowedHeaders: "*", exposedHeaders: "", maxAgeInSeconds: 8888 }],
      deleteRetentionPolicy: retentionPolicy,
      staticWebsite: { enabled: true, indexDocument: "index.html", errorDocument404Path: "404.html" },
    };
    await service.setProperties(properties);
    const found = await service.getProperties();
    for (const [name, value] of Object.entries(properties)) {
      const one = JSON.parse(JSON.stringify(found[name]));
      delete one.AllowPermanentDelete; // which this SDK does not know
      assert.deepEqual(one, value, name);
    }
  }));

test("soft delete", { skip: noBinary }, () =>
  withServer([], async (endpoint) => {
    const service = serviceClient(endpoint);
    await service.setProperties({ deleteRetentionPolicy: { enabled: true, days: 7 } });
    await withBlob(async (blob, container) => {
      const { snapshot } = await blob.createSnapshot();
      await blob.delete({ deleteSnapshots: "include" });
      assert.equal(await blob.exists(), false);
      const listed = await all(container.listBlobsFlat({ includeDeleted: true, includeSnapshots: true }));
      assert.deepEqual(listed.map((one) => [Boolean(one.snapshot), one.deleted]), [[true, true], [false, true]]);
      assert.equal(typeof listed[1].properties.remainingRetentionDays, "number");
      await blob.undelete();
      assert.deepEqual([await content(blob), await content(blob.withSnapshot(snapshot))], ["0123456789", "0123456789"]);
      await refusal(container.getBlobClient("never there").undelete(), 404, "BlobNotFound");
    }, service);
  }));

test("account information", () =>
  withBlob(async (blob, container) => {
    for (const client of [serviceClient(), container, blob]) {
      const found = await client.getAccountInfo();
      assert.deepEqual([found.accountKind, found.isHierarchicalNamespaceEnabled], ["StorageV2", false]);
    }
  }));

test("statistics are on the secondary, which reads", () =>
  withBlob(async (blob, container) => {
    const secondary = serviceClient(ENDPOINT + "-secondary");
    await secondary.getStatistics();
    await refusal(serviceClient().getStatistics(), 400, "InvalidQueryParameterValue");
    assert.equal(await content(secondary.getContainerClient(container.containerName).getBlobClient("blob")), "0123456789");
  }));

test("a connection string", () =>
  withContainer(
    (container) => put(container, "a"),
    BlobServiceClient.fromConnectionString(`DefaultEndpointsProtocol=http;AccountName=${ACCOUNT};AccountKey=${KEY};BlobEndpoint=${ENDPOINT};`, OPTIONS),
  ));

test("a wrong key, and nobody", () =>
  withBlob(async (_, container) => {
    const at = (who) => serviceClient(ENDPOINT, who).getContainerClient(container.containerName).getBlobClient("blob");
    await refusal(at(new StorageSharedKeyCredential(ACCOUNT, "d3Jvbmc=")).download(), 403, "AuthenticationFailed");
    await refusal(at(nobody).download(), 401, "NoAuthenticationInformation");
  }));
