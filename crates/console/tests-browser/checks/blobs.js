// One blob: what it is, what is in it, what changes it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { go, signedIn, until, violations } from "../lab.js";
import { png } from "../picture.js";
import { blobs, freshContainer, getBlob, headBlob, putBlob } from "../service.js";

const container = "one-blob";
const path = (name, more = "") => `#/blobs/${container}?blob=${encodeURIComponent(name)}${more}`;

export default async function (check, browser) {
  await freshContainer(container);
  const folder = mkdtempSync(join(tmpdir(), "partita-blobs-"));

  await check("blob: a text is shown, and of a long one the first 64 KiB", async () => {
    const line = (index) => `${String(index).padStart(6, "0")} <b>Zürich</b> & 🎵\n`;
    const text = Array.from({ length: 4000 }, (_, index) => line(index)).join("");
    await putBlob(container, "long.txt", text, { "x-ms-blob-content-type": "text/plain" });
    const page = await signedIn(browser, path("long.txt"));
    const asked = [];
    page.on("request", (request) => request.url().includes("/api/forward/blob/") && request.method() === "GET" && asked.push(request.headers()["x-ms-range"]));
    await page.getByText("The first 64 KiB of").waitFor();
    const shown = await page.getByLabel("The content as text").textContent();
    assert.equal(shown, Buffer.from(text).subarray(0, 64 * 1024).toString().replace(/\ufffd$/, ""));
    await page.getByRole("button", { name: "Read again" }).click();
    await putBlob(container, "long.txt", "now short");
    await page.getByRole("button", { name: "Read again" }).click();
    await page.getByText("now short").waitFor();
    assert.ok(asked.every((range) => range === undefined || /^bytes=0-\d{1,5}$/.test(range)), String(asked));
  });

  await check("blob: a picture is shown, from an address that can't run anything", async () => {
    await putBlob(container, "pic.bin", png(320, 200), { "x-ms-blob-content-type": "text/html" });
    const page = await signedIn(browser, path("pic.bin"));
    const image = page.getByRole("img", { name: "Picture of 320 by 200 pixels" });
    await until(() => image.evaluate((one) => one.naturalWidth), 320);
    const source = await image.getAttribute("src");
    assert.match(source, /^blob:/);
    // What somebody would see who opens it on its own.
    const [alone] = await Promise.all([browser.waitForEvent("page"), page.evaluate((url) => void window.open(url), source)]);
    await alone.waitForLoadState();
    assert.equal(await alone.evaluate(() => document.contentType), "image/png");
    await alone.close();
    await page.getByText("PNG, 320 × 200 pixels").waitFor();
    assert.deepEqual(await violations(page), []);
  });

  await check("blob: what is neither text nor picture is shown as bytes", async () => {
    await putBlob(container, "bytes", Buffer.from([0, 1, 2, 255, 65, 66]));
    const huge = png(1, 1);
    huge.writeUInt32BE(60_000, 16);
    huge.writeUInt32BE(60_000, 20);
    await putBlob(container, "bomb.png", huge, { "x-ms-blob-content-type": "image/png" });
    const page = await signedIn(browser, path("bytes"));
    await until(async () => await page.getByLabel("The first bytes").textContent(), "00000000  00 01 02 ff 41 42                                ····AB");
    await go(page, path("bomb.png"));
    await page.getByText("A picture of 60,000 × 60,000 pixels").waitFor();
    assert.equal(await page.locator("img").count(), 0);
  });

  await check("blob: a download is saved as it is stored, and is not held in the page", async () => {
    const content = Buffer.alloc(24 * 1024 * 1024, "0123456789abcdef");
    await putBlob(container, "a b/löng.bin", content, { "x-ms-blob-content-type": "text/html", "x-ms-blob-content-encoding": "gzip" });
    const page = await signedIn(browser, path("a b/löng.bin"));
    await page.getByText("0123456789abcdef").first().waitFor();
    const asked = [];
    page.on("request", (request) => request.resourceType() === "fetch" && asked.push(request.url()));
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download" }).click()]);
    assert.equal(download.suggestedFilename(), "löng.bin");
    await download.saveAs(join(folder, "saved"));
    assert.ok(readFileSync(join(folder, "saved")).equals(content));
    assert.deepEqual(asked, [], "the browser saves it, and no script reads it");
  });

  await check("blob: metadata keeps its case, tags and headers are saved, others stay", async () => {
    await putBlob(container, "edited", "x", { "x-ms-meta-madeBy": "Ann", "x-ms-tags": "project=blue", "x-ms-blob-content-type": "text/plain", "x-ms-blob-cache-control": "no-cache" });
    const before = await headBlob(container, "edited");
    const page = await signedIn(browser, path("edited", "&tab=properties"));
    await until(() => page.getByLabel("The name of metadata 1").inputValue(), "madeBy");
    await page.getByRole("button", { name: "Add metadata" }).click();
    await page.getByLabel("The name of metadata 2").fill("1st");
    await page.getByText("begins with no digit").waitFor();
    await page.getByLabel("The name of metadata 2").fill("Copies");
    await page.getByLabel("The value of metadata 2").fill("3");
    await page.getByRole("button", { name: "Save the metadata" }).click();
    await page.getByText("The metadata was saved.").waitFor();
    const listed = async () => (await blobs("GET", { container, query: "restype=container&comp=list&include=metadata,tags&prefix=edited" })).text;
    assert.match(await listed(), /<Metadata><madeBy>Ann<\/madeBy><Copies>3<\/Copies><\/Metadata>/);
    await until(() => page.getByLabel("The key of tags 1").inputValue(), "project");
    await page.getByLabel("The value of tags 1").fill("red & green");
    await page.getByText("Letters, digits, spaces and").waitFor();
    await page.getByLabel("The value of tags 1").fill("red");
    await page.getByRole("button", { name: "Save the tags" }).click();
    await page.getByText("The tags were saved.").waitFor();
    assert.match(await listed(), /<Key>project<\/Key><Value>red<\/Value>/);
    await page.getByLabel("Content-Type", { exact: true }).fill("text/markdown");
    await page.getByRole("button", { name: "Save the headers" }).click();
    await page.getByText("The headers were saved.").waitFor();
    const after = await headBlob(container, "edited");
    for (const [name, expected] of [["content-type", "text/markdown"], ["cache-control", "no-cache"], ["content-md5", before.headers.get("content-md5")]]) assert.equal(after.headers.get(name), expected, name);
    await page.getByText("text/markdown, modified").waitFor();
  });

  await check("blob: what somebody else has changed meanwhile is not overwritten", async () => {
    await putBlob(container, "stale", "x", { "x-ms-meta-a": "1" });
    const page = await signedIn(browser, path("stale", "&tab=properties"));
    await page.getByLabel("The value of metadata 1").fill("mine");
    await blobs("PUT", { container, name: "stale", query: "comp=metadata" }, undefined, { "x-ms-meta-a": "theirs" });
    await page.getByRole("button", { name: "Save the metadata" }).click();
    await page.getByRole("alert").getByText("ConditionNotMet").waitFor();
    assert.equal((await headBlob(container, "stale")).headers.get("x-ms-meta-a"), "theirs");
  });

  await check("blob: a lease is acquired, holds others off, and is released and broken", async () => {
    await putBlob(container, "held", "x");
    const page = await signedIn(browser, path("held", "&tab=lease"));
    const state = async () => (await headBlob(container, "held")).headers.get("x-ms-lease-state");
    await page.getByLabel("Hold it").selectOption("for ever");
    await page.getByRole("button", { name: "Acquire" }).click();
    await page.getByText("leased for ever").waitFor();
    assert.equal(await state(), "leased");
    await assert.rejects(putBlob(container, "held", "y"), /412/);
    // The page itself holds it.
    await page.getByRole("tab", { name: "Properties" }).click();
    await page.getByRole("button", { name: "Add metadata" }).click();
    await page.getByLabel("The name of metadata 1").fill("mine");
    await page.getByRole("button", { name: "Save the metadata" }).click();
    await page.getByText("The metadata was saved.").waitFor();
    await page.getByRole("tab", { name: "Lease" }).click();
    await page.getByRole("button", { name: "Renew" }).click();
    await page.getByText("The lease was renewed.").waitFor();
    await page.getByRole("button", { name: "Release" }).click();
    await until(state, "available");
    await page.getByRole("button", { name: "Acquire" }).click();
    await until(state, "leased");
    await page.getByRole("button", { name: "Break" }).click();
    await until(state, "broken");
    await page.locator("[data-lease=broken]").waitFor();
  });

  await check("blob: snapshots are taken, opened and deleted", async () => {
    await putBlob(container, "kept", "first");
    await putBlob(container, "kept-too", "another");
    const page = await signedIn(browser, path("kept"));
    await page.getByRole("button", { name: "Take a snapshot" }).click();
    await page.getByText(/The snapshot of .* was taken/).waitFor();
    const rows = page.getByRole("tabpanel").locator("tbody tr");
    await until(() => rows.count(), 1);
    await putBlob(container, "kept", "second");
    await rows.getByRole("link").click();
    await page.getByText(/^snapshot of/).waitFor();
    await page.getByLabel("The content as text").getByText("first").waitFor();
    await page.getByRole("link", { name: "see the blob" }).click();
    await page.getByLabel("The content as text").getByText("second").waitFor();
    await page.getByRole("tab", { name: "Snapshots" }).click();
    await rows.getByRole("button").click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("No snapshots").waitFor();
    assert.equal((await getBlob(container, "kept")).text, "second");
  });

  await check("blob: the tier is set", async () => {
    await putBlob(container, "cool", "x");
    const page = await signedIn(browser, path("cool", "&tab=properties"));
    await page.getByText("Hot, by default").waitFor();
    await page.getByLabel("Tier", { exact: true }).selectOption("Archive");
    await page.getByText("can't be read until").waitFor();
    await page.getByRole("button", { name: "Set the tier" }).click();
    await page.getByText("The tier is Archive.").waitFor();
    assert.equal((await headBlob(container, "cool")).headers.get("x-ms-access-tier"), "Archive");
    await page.getByRole("tab", { name: "Preview" }).click();
    await page.getByRole("alert").getByText("BlobArchived").waitFor();
  });

  await check("blob: a token made on its page works for it alone, and the curl that is copied downloads it", async () => {
    const name = `it's "100%" $HOME \`x\`/../ä\u202e+&?#[1-3]{a,b}.txt`;
    await putBlob(container, name, "the content");
    await putBlob(container, "other", "secret");
    const page = await signedIn(browser, path(name, "&tab=sas"));
    await page.getByRole("button", { name: "Make the token" }).click();
    const url = (await page.getByLabel("URL", { exact: true }).innerText()).trim();
    assert.match(await page.locator(".explanation").innerText(), /accepted now/);
    assert.equal(await (await fetch(url)).text(), "the content");
    const token = url.slice(url.indexOf("?") + 1);
    const { origin } = new URL(url);
    assert.equal((await fetch(`${origin}/devstoreaccount1/${container}/other?${token}`)).status, 403);
    await page.getByRole("tab", { name: "Code" }).click();
    const curl = await page.getByLabel("The download as curl").innerText();
    execFileSync("bash", ["-c", curl], { cwd: folder, env: { ...process.env, SAS: token } });
    assert.equal(readFileSync(join(folder, "ä______1-3__a_b_.txt"), "utf8"), "the content");
    for (const [language, part] of [["Python", "BlobClient.from_connection_string"], ["C#", "new BlobClient("], ["JavaScript", "getBlobClient("], ["Rust", "partita_client::BlobService"]]) {
      await page.getByRole("button", { name: language, exact: true }).click();
      const code = await page.getByLabel(`The download as ${language}`).innerText();
      assert.ok(code.includes(part), code);
      assert.ok(!code.includes("\u202e"), "what is not seen is escaped");
    }
    await page.getByRole("button", { name: "Copy", exact: true }).click();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /BlobService/);
  });

  await check("blob: one that is not there says so", async () => {
    const page = await signedIn(browser, path("nowhere"));
    await page.getByText("There is no such blob").waitFor();
    await go(page, "#/blobs/no-such-container");
    await page.getByText("There is no container no-such-container").waitFor();
  });
}
