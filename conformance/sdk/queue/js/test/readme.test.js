// The worker in README.md, as it is written there.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { TableClient } from "@azure/data-tables";
import { ACCOUNT, ENDPOINT, KEY, count, queueClient } from "./helper.js";

const TABLES = (process.env.PARTITA_ENDPOINT ?? "http://127.0.0.1:10002/devstoreaccount1").replace(/\/$/, "");
const USUAL = ENDPOINT.startsWith("http://127.0.0.1:10001/") && TABLES.startsWith("http://127.0.0.1:10002/");
const CONNECTION = `DefaultEndpointsProtocol=http;AccountName=${ACCOUNT};AccountKey=${KEY};QueueEndpoint=${ENDPOINT};TableEndpoint=${TABLES};`;

test("the worker in JavaScript", async () => {
  const readme = readFileSync(new URL("../../../../../README.md", import.meta.url), "utf8");
  const examples = [...readme.matchAll(/```js\n(.*?)```/gs)].map(([, text]) => text);
  const [example] = examples.filter((text) => text.includes("@azure/storage-queue"));
  // Where the usual ports are taken, the server is elsewhere.
  const program = USUAL ? example : example.replaceAll("UseDevelopmentStorage=true", CONNECTION);
  const parcels = TableClient.fromConnectionString(CONNECTION, "Parcels", { allowInsecureConnection: true });
  const steps = queueClient("parcels");
  await parcels.deleteTable();
  await steps.deleteIfExists();
  // CommonJS, as the example is; it finds the SDKs of this folder.
  const cwd = fileURLToPath(new URL("..", import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=commonjs", "-e", program], { cwd, encoding: "utf8" });
  assert.equal(status, 0, stderr);
  assert.equal((await parcels.getEntity("ann", "1")).state, "ship");
  assert.equal(await count(steps), 0);
  await parcels.deleteTable();
  await steps.delete();
});
