// Uploads: chosen and dropped, in blocks, with progress, stopped, never over what is there.

import assert from "node:assert/strict";
import { mkdtempSync, openSync, closeSync, ftruncateSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { signedIn, until } from "../lab.js";
import { blobs, freshContainer, getBlob, headBlob, putBlob } from "../service.js";

const container = "uploaded";
const MIB = 1024 * 1024;

/** Notes the size of every body that the page sends, and how many are under way at a time. */
const noteBodies = (page) =>
  page.evaluate(() => {
    const original = window.fetch;
    window.bodies = { sizes: [], most: 0, now: 0 };
    window.fetch = async (path, request) => {
      const isBlock = request?.body instanceof Blob;
      if (!isBlock) return original(path, request);
      window.bodies.sizes.push(request.body.size);
      window.bodies.now += 1;
      window.bodies.most = Math.max(window.bodies.most, window.bodies.now);
      try {
        return await original(path, request);
      } finally {
        window.bodies.now -= 1;
      }
    };
  });

export default async function (check, browser) {
  const folder = mkdtempSync(join(tmpdir(), "partita-uploads-"));
  const file = (name, content) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const choose = (page, files) => page.getByLabel("Files to upload").setInputFiles(files);

  await check("upload: several files are chosen and arrive, with their types, in the folder that is shown", async () => {
    await freshContainer(container);
    const page = await signedIn(browser, `#/blobs/${container}?prefix=in%2F`);
    await choose(page, [file("a.txt", "text"), file("empty", ""), file("page.html", "<b>x</b>")]);
    await page.getByText("3 of 3 files uploaded").waitFor();
    await page.getByRole("link", { name: "page.html", exact: true }).waitFor();
    assert.equal((await getBlob(container, "in/a.txt")).text, "text");
    assert.equal((await getBlob(container, "in/empty")).text, "");
    assert.equal((await headBlob(container, "in/page.html")).headers.get("content-type"), "text/html");
    await page.getByRole("button", { name: "Clear" }).click();
    await until(() => page.getByRole("region", { name: "Uploads" }).count(), 0);
  });

  await check("upload: a large file goes block after block, and never more than one block is under way", async () => {
    await freshContainer(container);
    const large = join(folder, "large.bin");
    const handle = openSync(large, "w");
    ftruncateSync(handle, 61 * MIB + 5);
    writeSync(handle, "head", 0);
    writeSync(handle, "tail", 61 * MIB + 1);
    closeSync(handle);
    const page = await signedIn(browser, `#/blobs/${container}`);
    await page.getByRole("button", { name: "Upload", exact: true }).waitFor();
    await noteBodies(page);
    await page.evaluate(() => {
      window.seen = [];
      new MutationObserver(() => {
        const bar = document.querySelector(".uploads li progress");
        if (bar) window.seen.push(bar.value);
      }).observe(document.body, { subtree: true, childList: true, attributes: true });
    });
    await choose(page, [large]);
    await page.getByText("1 of 1 file uploaded").waitFor();
    const { sizes, most } = await page.evaluate(() => window.bodies);
    assert.deepEqual([sizes.length, Math.max(...sizes), most], [16, 4 * MIB, 1]);
    const seen = await page.evaluate(() => window.seen);
    assert.ok(new Set(seen).size > 3 && seen.every((value, index) => index === 0 || value >= seen[index - 1]), String(seen));
    const { headers } = await headBlob(container, "large.bin");
    assert.equal(headers.get("content-length"), String(61 * MIB + 5));
    const end = await blobs("GET", { container, name: "large.bin" }, undefined, { "x-ms-range": `bytes=${61 * MIB + 1}-` });
    assert.equal(end.text, "tail");
    const list = await blobs("GET", { container, name: "large.bin", query: "comp=blocklist&blocklisttype=all" });
    assert.equal(list.text.match(/<Block>/g).length, 16);
  });

  await check("upload: what is there is replaced only after a question, small or large", async () => {
    await freshContainer(container);
    await putBlob(container, "small.txt", "theirs");
    await putBlob(container, "big.bin", "theirs");
    const page = await signedIn(browser, `#/blobs/${container}`);
    await page.getByRole("link", { name: "small.txt", exact: true }).waitFor();
    await noteBodies(page);
    await choose(page, [file("small.txt", "mine"), file("big.bin", Buffer.alloc(9 * MIB, 7))]);
    await until(() => page.getByText("exists already").count(), 2);
    assert.equal((await getBlob(container, "small.txt")).text, "theirs");
    assert.deepEqual(await page.evaluate(() => window.bodies.sizes), [4], "nothing of the large one was sent");
    for (let left = 2; left > 0; left -= 1) {
      await page.getByRole("button", { name: "Replace" }).first().click();
      await until(() => page.getByText("exists already").count(), left - 1);
    }
    await page.getByText("2 of 2 files uploaded").waitFor();
    assert.equal((await getBlob(container, "small.txt")).text, "mine");
    assert.equal((await headBlob(container, "big.bin")).headers.get("content-length"), String(9 * MIB));
  });

  await check("upload: one that is canceled leaves nothing, and the next one goes on", async () => {
    await freshContainer(container);
    const page = await signedIn(browser, `#/blobs/${container}`);
    await page.getByText(`${container} is empty`).waitFor();
    // The second block waits until it is canceled.
    let blocks = 0;
    await page.route(/comp=block&/, async (route) => {
      blocks += 1;
      if (blocks < 2) return route.continue();
    });
    await choose(page, [file("stopped.bin", Buffer.alloc(20 * MIB, 1)), file("next.txt", "next")]);
    await until(() => blocks, 2);
    await page.getByText("20 %", { exact: true }).waitFor();
    await page.getByText("waits", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Cancel the upload of stopped.bin" }).click();
    await page.getByText("canceled", { exact: true }).waitFor();
    await page.getByText("1 of 2 files uploaded").waitFor();
    await page.unroute(/comp=block&/);
    assert.equal((await headBlob(container, "stopped.bin")).status, 404);
    assert.equal((await getBlob(container, "next.txt")).text, "next");
  });

  await check("upload: a block that the server was too busy for is sent again", async () => {
    await freshContainer(container);
    const page = await signedIn(browser, `#/blobs/${container}`);
    await page.getByText(`${container} is empty`).waitFor();
    let refused = 0;
    await page.route(/comp=block&/, async (route) => {
      refused += 1;
      if (refused === 2) return route.fulfill({ status: 503, body: "<Error><Code>ServerBusy</Code><Message>busy</Message></Error>" });
      return route.continue();
    });
    await choose(page, [file("busy.bin", Buffer.alloc(9 * MIB, 3))]);
    await page.getByText("1 of 1 file uploaded").waitFor();
    await page.unroute(/comp=block&/);
    assert.equal(refused, 4, "three blocks, one of them twice");
    assert.ok((await getBlob(container, "busy.bin")).bytes.equals(Buffer.alloc(9 * MIB, 3)));
  });

  await check("upload: files that are dropped on the page are uploaded", async () => {
    await freshContainer(container);
    const page = await signedIn(browser, `#/blobs/${container}`);
    await page.getByText(`${container} is empty`).waitFor();
    const transfer = await page.evaluateHandle(() => {
      const made = new DataTransfer();
      made.items.add(new File(["one"], "dropped 1.txt", { type: "text/plain" }));
      made.items.add(new File(["two"], "dropped 2.txt", { type: "text/plain" }));
      return made;
    });
    await page.dispatchEvent(".drop-page", "dragover", { dataTransfer: transfer });
    await until(() => page.locator(".drop-page.over").count(), 1);
    await page.dispatchEvent(".drop-page", "drop", { dataTransfer: transfer });
    await page.getByText("2 of 2 files uploaded").waitFor();
    assert.equal(await page.locator(".drop-page.over").count(), 0);
    assert.equal((await getBlob(container, "dropped 2.txt")).text, "two");
  });
}
