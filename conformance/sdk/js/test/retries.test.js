// A busy server: the SDK's own retries get the work done, and without them its error says so.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { AzureNamedKeyCredential, TableClient } from "@azure/data-tables";
import { ACCOUNT, KEY, all, entity, fresh, refusal, rowKeys, tableClient } from "./helper.js";

const BINARY = process.env.PARTITA_BINARY;
const skip = BINARY ? false : "PARTITA_BINARY names no server to start";
const NAMES = Array.from({ length: 12 }, (_, number) => String(number).padStart(3, "0"));

let server, endpoint;

// It grants a partition two entities a second, so that the slowest machine asks for more.
before(async () => {
  if (skip) return;
  const flags = ["--listen", "127.0.0.1:0", "--in-memory", "--log-level", "error", "--throttle", "100000/2"];
  server = spawn(BINARY, ["serve", ...flags], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: server.stdout })) {
    endpoint = /TableEndpoint=([^;]+)/.exec(line)?.[1];
    if (endpoint) return;
  }
  assert.fail("the server did not start");
});
after(() => server?.kill());

async function fill(table) {
  for (const name of NAMES) await table.createEntity(entity("p", name));
}

test("retries get everything written", { skip }, async () => {
  const statuses = [];
  const watch = {
    name: "watch",
    async sendRequest(request, next) {
      const answer = await next(request);
      statuses.push(answer.status);
      return answer;
    },
  };
  const table = new TableClient(endpoint, fresh(), new AzureNamedKeyCredential(ACCOUNT, KEY), {
    allowInsecureConnection: true,
    additionalPolicies: [{ policy: watch, position: "perRetry" }],
  });
  await table.createTable();
  await fill(table);
  assert.deepEqual(rowKeys(await all(table.listEntities())), NAMES);
  assert.ok(statuses.includes(503), String(statuses));
});

test("without retries it is the SDK's error", { skip }, async () => {
  const table = tableClient(fresh(), endpoint);
  await table.createTable();
  await refusal(fill(table), 503, "ServerBusy");
});
