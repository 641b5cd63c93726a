// Opens a page of another origin in Chromium and checks what its scripts may do with a table and a token.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { ENDPOINT, properties, send, setProperties, setRules, token } from "./service.js";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const EXECUTABLE = process.env.PARTITA_CHROMIUM ?? "/usr/bin/chromium";

const table = "browser" + randomBytes(8).toString("hex");
const entityAt = (row) => `/${table}(PartitionKey='p',RowKey='${row}')?${token(table)}`;
const entities = (query) => `/${table}?${query}&${token(table)}`;
const CONTINUATION = ["x-ms-continuation-nextpartitionkey", "x-ms-continuation-nextrowkey"];

// What a page's script sees of one request: the answer, or the name of the error that is all it gets.
function fromPage(page, method, path, { headers = {}, body } = {}) {
  const request = {
    method,
    headers: { Accept: "application/json;odata=nometadata", ...(body && { "Content-Type": "application/json" }), ...headers },
    body: body && JSON.stringify(body),
    cache: "no-store",
  };
  return page.evaluate(
    async ([url, request]) => {
      try {
        const answer = await fetch(url, request);
        const text = await answer.text();
        return { status: answer.status, headers: Object.fromEntries(answer.headers), body: text && JSON.parse(text) };
      } catch (error) {
        return { error: error.name };
      }
    },
    [ENDPOINT + path, request],
  );
}

const BLOCKED = { error: "TypeError" };

async function checks(page, origin) {
  const here = { origins: origin, methods: "GET,PUT,POST,DELETE,MERGE", headers: "*" };
  const exposing = { ...here, exposed: "x-ms-continuation-*,etag" };
  const put = (row, more = {}) => fromPage(page, "PUT", entityAt(row), { body: { A: 1 }, ...more });
  const get = (row, more) => fromPage(page, "GET", entityAt(row), more);
  const stored = async () => JSON.parse(await send("GET", `/${table}()`)).value.map((e) => e.RowKey);

  await check("without rules nothing is read", async () => {
    await setRules();
    assert.deepEqual(await get("1"), BLOCKED);
  });

  await check("without rules nothing is written", async () => {
    await setRules();
    assert.deepEqual(await put("1"), BLOCKED);
    assert.deepEqual(await stored(), []);
  });

  await check("a rule lets a page write and read", async () => {
    await setRules(exposing);
    assert.equal((await put("1")).status, 204);
    const read = await get("1");
    assert.deepEqual([read.status, read.body.A], [200, 1]);
    assert.match(read.headers.etag, /^W\/"datetime/);
  });

  await check("a POST with X-HTTP-Method merges", async () => {
    const merged = await fromPage(page, "POST", entityAt("1"), {
      headers: { "X-HTTP-Method": "MERGE", "If-Match": "*" },
      body: { B: 2 },
    });
    assert.equal(merged.status, 204);
    const { A, B } = (await get("1")).body;
    assert.deepEqual({ A, B }, { A: 1, B: 2 });
  });

  await check("MERGE as a method of its own", async () => {
    const merged = await fromPage(page, "MERGE", entityAt("1"), { headers: { "If-Match": "*" }, body: { C: 3 } });
    assert.equal(merged.status, 204);
    assert.equal((await get("1")).body.C, 3);
  });

  await check("a page deletes", async () => {
    assert.equal((await fromPage(page, "DELETE", entityAt("1"), { headers: { "If-Match": "*" } })).status, 204);
    assert.deepEqual(await stored(), []);
  });

  await check("a page reads the service's refusals", async () => {
    const missing = await get("1");
    assert.deepEqual([missing.status, missing.body["odata.error"].code], [404, "ResourceNotFound"]);
    const forged = await fromPage(page, "GET", entityAt("1").replace(/sig=[^&]+/, "sig=AAAA"));
    assert.equal(forged.status, 403);
  });

  await check("exposed continuations lead through every page", async () => {
    for (const row of ["1", "2", "3"]) assert.equal((await put(row)).status, 204);
    const rows = [];
    let next = "";
    do {
      const answer = await fromPage(page, "GET", entities(`$top=1${next}`));
      assert.equal(answer.status, 200);
      rows.push(...answer.body.value.map((e) => e.RowKey));
      const [partition, row] = CONTINUATION.map((name) => answer.headers[name]);
      next = partition && `&NextPartitionKey=${encodeURIComponent(partition)}&NextRowKey=${encodeURIComponent(row)}`;
    } while (next && rows.length < 10);
    assert.deepEqual(rows, ["1", "2", "3"]);
  });

  await check("continuations are hidden unless exposed", async () => {
    await setRules(here);
    const answer = await fromPage(page, "GET", entities("$top=1"));
    assert.equal(answer.body.value.length, 1);
    assert.deepEqual(CONTINUATION.filter((name) => name in answer.headers), []);
    assert.equal(answer.headers.etag, undefined);
  });

  await check("a method that no rule names is blocked", async () => {
    await setRules({ ...here, methods: "GET" });
    assert.equal((await get("1")).status, 200);
    assert.deepEqual(await put("4"), BLOCKED);
    assert.deepEqual(await fromPage(page, "DELETE", entityAt("1"), { headers: { "If-Match": "*" } }), BLOCKED);
    assert.deepEqual(await stored(), ["1", "2", "3"]);
  });

  await check("an origin that no rule names is blocked", async () => {
    await setRules({ ...here, origins: "http://elsewhere.example" });
    assert.deepEqual(await get("1"), BLOCKED);
    assert.deepEqual(await put("4"), BLOCKED);
    assert.deepEqual(await stored(), ["1", "2", "3"]);
  });

  await check("a rule for every origin lets the page in", async () => {
    await setRules({ ...here, origins: "*" });
    assert.equal((await get("1")).status, 200);
    assert.equal((await put("1")).status, 204);
  });

  await check("a header that the rule does not allow is blocked", async () => {
    await setRules({ ...here, headers: "accept,content-type,x-ms-*" });
    const mine = (name) => ({ headers: { [name]: "1" } });
    assert.equal((await get("1", mine("x-ms-client-request-id"))).status, 200);
    assert.deepEqual(await get("1", mine("x-other")), BLOCKED);
    assert.deepEqual(await put("4", mine("x-other")), BLOCKED);
    assert.deepEqual(await stored(), ["1", "2", "3"]);
  });
}

let passed = 0;
let failed = 0;
async function check(name, act) {
  try {
    await act();
    passed += 1;
  } catch (error) {
    failed += 1;
    console.log(`not ok: ${name}\n${error.message}`);
  }
}

const site = createServer((_, answer) => answer.setHeader("Content-Type", "text/html").end("<!doctype html><title>page</title>"));
site.listen(0, "127.0.0.1");
await once(site, "listening");
const origin = `http://127.0.0.1:${site.address().port}`;
const profile = mkdtempSync(join(tmpdir(), "partita-browser-"));
const before = await properties();
await send("POST", "/Tables", JSON.stringify({ TableName: table }));
let browser;
try {
  browser = await chromium.launchPersistentContext(profile, { executablePath: EXECUTABLE, args: FLAGS });
  const page = await browser.newPage();
  await page.goto(origin);
  await checks(page, origin);
} catch (error) {
  failed += 1;
  console.log(String(error));
} finally {
  await browser?.close();
  site.close();
  await setProperties(before);
  await send("DELETE", `/Tables('${table}')`);
  rmSync(profile, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
