// Stored data is shown and never run.

import assert from "node:assert/strict";
import { go, signedIn, until, violations } from "../lab.js";
import { blobs, CONSOLE, createTable, dropTable, freshContainer, getBlob, insert, putBlob, putMessage, queues } from "../service.js";

const table = "HostileRows";
const ATTACKS = [
  "<script>window.pwned=1</script>",
  "<img src=x onerror=window.pwned=1>",
  "\"><svg onload=window.pwned=1>",
  "javascript:window.pwned=1",
  "{{constructor.constructor('window.pwned=1')()}}",
  "</textarea><script>window.pwned=1</script>",
  "' onmouseover='window.pwned=1",
  "\u202e\u0000<script>window.pwned=1</script>".replace("\u0000", ""),
  "__proto__",
];

export default async function (check, browser) {
  await dropTable(table);
  await createTable(table);
  for (const [index, attack] of ATTACKS.entries()) {
    const key = attack.replace(/[/\\#?]/g, "_");
    await insert(table, { PartitionKey: `a${index} ${key}`, RowKey: key, Text: attack, constructor: attack, toString: attack, __html: attack, "Bytes@odata.type": "Edm.Binary", Bytes: Buffer.from(attack).toString("base64") });
  }
  await queues("PUT", "/hostile");
  await queues("DELETE", "/hostile/messages");
  for (const attack of ATTACKS) await putMessage("hostile", JSON.stringify({ attack }));
  for (const attack of ATTACKS.slice(0, 3)) await putMessage("hostile", Buffer.from(attack).toString("base64"));

  await check("hostile: entities full of HTML and script run nothing, on any page", async () => {
    const page = await signedIn(browser);
    page.on("dialog", (dialog) => dialog.dismiss());
    await go(page, `#/tables/${table}`);
    await page.getByText("<script>window.pwned=1</script>").first().waitFor();
    for (let row = 0; row < ATTACKS.length; row += 1) {
      await page.locator(`[data-row='${row}'] [data-column='0']`).dblclick();
      await page.getByRole("dialog").waitFor();
      for (const tab of ["JSON", "Code", "Form"]) await page.getByRole("tab", { name: tab }).click();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    await page.getByRole("combobox", { name: "Filter" }).fill("Text eq '<script>window.pwned=1</script>'");
    await page.keyboard.press("Enter");
    await page.getByText("1 entity", { exact: true }).waitFor();
    await go(page, "#/queues/hostile");
    await page.getByText("onerror").first().waitFor();
    await go(page, `#/tables/${encodeURIComponent("<img src=x onerror=window.pwned=1>")}?filter=${encodeURIComponent("<script>window.pwned=1</script>")}`);
    await page.getByRole("combobox", { name: "Filter" }).waitFor();
    await go(page, "#/live");
    await page.waitForTimeout(2500);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.deepEqual(await violations(page), []);
    assert.equal(await page.locator("img, main script, iframe, object").count(), 0);
  });

  await freshContainer("hostile");
  const NAMES = [
    ...ATTACKS,
    "..",
    ".",
    "../../etc/passwd",
    "a/../b",
    "dots...",
    "/",
    "//x",
    "folder/",
    "%",
    "%2e%2e/%00",
    "%252F",
    `quotes "'\``,
    "\u202etxt.exe",
    "\u0001\u0007\uffff",
    "spaces  and\ttabs \n",
    "?#&=+;,@:!*()[]{}|^~$",
    "\u05d0\u05d1 \u0627\u0644 123",
    "é".repeat(1024),
    "x".repeat(1020) + ".txt",
  ];
  for (const name of NAMES) await putBlob("hostile", name, `<script>window.pwned=1</script>${name}`, { "x-ms-blob-content-type": "text/html", "x-ms-meta-a": "<img src=x onerror=window.pwned=1>" });

  await check("hostile: blobs with every kind of name are listed, opened and deleted, and run nothing", async () => {
    const page = await signedIn(browser);
    page.on("dialog", (dialog) => dialog.dismiss());
    // Every folder that there is, one after the other.
    const [folders, found] = [[""], new Set()];
    for (let prefix = folders.shift(); prefix !== undefined; prefix = folders.shift()) {
      await go(page, "#/none");
      await go(page, `#/blobs/hostile?prefix=${encodeURIComponent(prefix)}`);
      await page.locator("table.blobs .entry").first().waitFor();
      for (const link of await page.locator("table.blobs a.entry").all()) {
        const target = new URL(await link.getAttribute("href"), "http://x");
        const query = new URLSearchParams(target.hash.split("?")[1]);
        if (query.get("blob") !== null) found.add(query.get("blob"));
        else folders.push(query.get("prefix"));
      }
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, "no name is wider than the page");
    }
    assert.deepEqual([...found].sort(), [...NAMES].sort());
    for (const name of NAMES) {
      await go(page, "#/none");
      await go(page, `#/blobs/hostile?${new URLSearchParams({ blob: name })}`);
      await until(async () => await page.getByLabel("The content as text").textContent(), `<script>window.pwned=1</script>${name}`);
      for (const tab of ["Properties", "Code", "Snapshots"]) await page.getByRole("tab", { name: tab }).click();
    }
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.deepEqual(await violations(page), []);
    assert.equal(await page.locator("img, main script, iframe, object").count(), 0);
    for (const name of ["..", "a/../b", "%2e%2e/%00", "/"]) {
      await go(page, `#/blobs/hostile?${new URLSearchParams({ blob: name })}`);
      await page.getByRole("button", { name: "Delete this blob" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
      // The words may be those of the blob before. The page of this one is left when it is gone.
      await page.waitForURL((url) => !url.hash.includes("blob="));
      await page.getByText("The blob was deleted.").first().waitFor();
      assert.equal((await getBlob("hostile", name)).status, 404);
    }
    const left = await blobs("GET", { container: "hostile", query: "restype=container&comp=list" });
    assert.equal(left.text.match(/<Blob>/g).length, NAMES.length - 4, "no other one is gone");
  });

  await check("hostile: a name that turns its letters around is shown as what it is", async () => {
    const page = await signedIn(browser, "#/blobs/hostile");
    await page.getByRole("link", { name: "U+202Etxt.exe", exact: true }).click();
    await page.getByRole("heading", { name: "U+202Etxt.exe" }).waitFor();
  });

  await check("hostile: a stored page, script or picture can't run at the console's address", async () => {
    const run = "window.pwned = 1; document.documentElement.dataset.pwned = 1;";
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" onload="${run}"><script>${run}</script></svg>`;
    const stored = [
      ["page.html", `<!doctype html><script>${run}</script>`, "text/html"],
      ["page.svg", svg, "image/svg+xml"],
      ["page.xhtml", `<html xmlns="http://www.w3.org/1999/xhtml"><script>${run}</script></html>`, "application/xhtml+xml"],
      ["code.js", run, "text/javascript"],
      ["style.css", "body { display: none }", "text/css"],
    ];
    for (const [name, content, type] of stored) await putBlob("hostile", name, content, { "x-ms-blob-content-type": type, "x-ms-blob-content-disposition": "inline" });
    const page = await signedIn(browser, "#/blobs/hostile?blob=page.svg");
    await until(async () => await page.getByLabel("The content as text").textContent(), svg);
    assert.equal(await page.locator("main img").count(), 0, "SVG is shown as text only");
    const at = (name) => `${CONSOLE}/api/forward/blob/hostile/${name}`;
    // Opened as a page: it is saved, not shown.
    for (const [name] of stored) {
      const other = await browser.newPage();
      const [download] = await Promise.all([other.waitForEvent("download"), other.goto(at(name)).catch(() => undefined)]);
      assert.equal(other.url(), "about:blank");
      await download.cancel();
      await other.close();
    }
    // As a part of the console, whose policy lets its own address in. Not watched: the refusals are what is wanted.
    const inside = await browser.newPage();
    await inside.goto(`${CONSOLE}/console/`);
    await inside.getByRole("navigation", { name: "Pages" }).waitFor();
    const outcome = await inside.evaluate(async ([code, css]) => {
      const imported = await import(code).then(() => "ran", () => "refused");
      const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: css });
      const styled = await new Promise((resolve) => {
        link.onload = () => resolve("applied");
        link.onerror = () => resolve("refused");
        document.head.append(link);
      });
      const worker = await navigator.serviceWorker.register(code).then(() => "registered", () => "refused");
      return { imported, styled: styled === "applied" && getComputedStyle(document.body).display === "none" ? "applied" : "refused", worker, pwned: window.pwned };
    }, [at("code.js"), at("style.css")]);
    assert.deepEqual(outcome, { imported: "refused", styled: "refused", worker: "refused", pwned: undefined });
    await inside.close();
  });

  await check("hostile: the policy is as strict as promised", async () => {
    const page = await browser.newPage(); // not watched: the block is what is wanted
    await page.goto(`${CONSOLE}/console/`);
    const answer = await page.request.get(`${CONSOLE}/console/`);
    const policy = answer.headers()["content-security-policy"];
    for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"]) assert.ok(policy.includes(part), policy);
    assert.equal(answer.headers()["x-content-type-options"], "nosniff");
    const blocked = await page.evaluate(() => {
      try {
        document.body.innerHTML = "<b>x</b>";
        return "written";
      } catch (error) {
        return error.name;
      }
    });
    assert.equal(blocked, "TypeError");
  });
}
