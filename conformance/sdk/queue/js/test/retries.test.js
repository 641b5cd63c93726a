// A busy server: the SDK's own retries get the work done, and without them its error says so.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { QueueClient } from "@azure/storage-queue";
import { count, credential, fresh, queueClient, refusal } from "./helper.js";

const BINARY = process.env.PARTITA_BINARY;
const skip = BINARY ? false : "PARTITA_BINARY names no server to start";

let server, endpoint;

// It grants a queue two messages a second, so that the slowest machine asks for more.
before(async () => {
  if (skip) return;
  const flags = ["--listen", "127.0.0.1:0", "--in-memory", "--log-level", "error", "--throttle", "100000/2"];
  server = spawn(BINARY, ["serve", ...flags], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: server.stdout })) {
    endpoint = /QueueEndpoint=([^;]+)/.exec(line)?.[1];
    if (endpoint) return;
  }
  assert.fail("the server did not start");
});
after(() => server?.kill());

async function fill(queue) {
  for (let number = 0; number < 12; number++) await queue.sendMessage(String(number));
}

test("retries get everything put", { skip }, async () => {
  const queue = new QueueClient(`${endpoint}/${fresh()}`, credential, { retryOptions: { maxTries: 5, retryDelayInMs: 500 } });
  await queue.create();
  await fill(queue);
  assert.equal(await count(queue), 12);
});

test("without retries it is the SDK's error", { skip }, async () => {
  const queue = queueClient(fresh(), endpoint);
  await queue.create();
  await refusal(fill(queue), 503, "ServerBusy");
});
