// Containers, and blobs browsed like folders.

import assert from "node:assert/strict";
import { go, signedIn, until } from "../lab.js";
import { blobs, freshContainer, putBlob } from "../service.js";

const names = (page) => page.locator("table.blobs .entry .name").allInnerTexts();
const PROPERTIES = { container: "", query: "restype=service&comp=properties" };

/** Soft delete, for `days` or not at all. */
export const softDelete = (days) =>
  blobs("PUT", PROPERTIES, `<StorageServiceProperties><DeleteRetentionPolicy><Enabled>${!!days}</Enabled>${days ? `<Days>${days}</Days>` : ""}</DeleteRetentionPolicy></StorageServiceProperties>`);

export default async function (check, browser) {
  await check("browse: a container is made, and a bad name is refused where it is typed", async () => {
    await blobs("DELETE", { container: "made-here", query: "restype=container" });
    const page = await signedIn(browser, "#/blobs");
    await page.getByRole("button", { name: "New container" }).first().click();
    await page.getByLabel("Name").fill("Made_Here");
    await page.getByText("Small letters only.").waitFor();
    await until(() => page.getByRole("button", { name: "Create" }).isDisabled(), true);
    await page.getByLabel("Name").fill("made-here");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("made-here is empty").waitFor();
    assert.equal((await blobs("GET", { container: "made-here", query: "restype=container" })).status, 200);
  });

  await check("browse: containers show public access and lease, and one is deleted only if its name was typed", async () => {
    await freshContainer("gone-here");
    await freshContainer("leased-here");
    await blobs("PUT", { container: "gone-here", query: "restype=container&comp=acl" }, undefined, { "x-ms-blob-public-access": "blob" });
    await blobs("PUT", { container: "leased-here", query: "restype=container&comp=lease" }, undefined, { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1" });
    const page = await signedIn(browser, "#/blobs");
    const row = (name) => page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });
    await row("gone-here").getByText("public", { exact: true }).waitFor();
    assert.match(await row("gone-here").innerText(), /blobs/);
    assert.match(await row("leased-here").innerText(), /none\s+leased for ever/);
    await page.getByRole("button", { name: "Delete gone-here" }).click();
    const button = page.getByRole("button", { name: "Delete the container" });
    await until(() => button.isDisabled(), true);
    await page.getByLabel("Type gone-here to confirm").fill("gone-here");
    await button.click();
    await page.getByText("gone-here was deleted.").waitFor();
    assert.equal((await blobs("GET", { container: "gone-here", query: "restype=container" })).status, 404);
  });

  await check("browse: folders open and close, and the prefix finds names", async () => {
    await freshContainer("folders");
    for (const name of ["readme.md", "2024/may/a.txt", "2024/may/b.txt", "2024/june/c.txt", "2024/x", "2025/d.txt"]) await putBlob("folders", name, name);
    const page = await signedIn(browser, "#/blobs/folders");
    await until(async () => (await names(page)).join(" "), "2024/ 2025/ readme.md");
    await page.getByRole("link", { name: "2024/" }).click();
    await until(async () => (await names(page)).join(" "), "june/ may/ x");
    await page.getByRole("link", { name: "may/" }).click();
    await until(async () => (await names(page)).join(" "), "a.txt b.txt");
    await page.getByRole("navigation", { name: "Folders" }).getByRole("link", { name: "2024" }).click();
    await until(async () => (await names(page)).join(" "), "june/ may/ x");
    await page.goBack();
    await until(async () => (await names(page)).join(" "), "a.txt b.txt");
    const box = page.getByLabel("Names that begin with");
    await box.fill("2024/j");
    await box.press("Enter");
    await until(async () => (await names(page)).join(" "), "june/");
    await box.fill("none");
    await box.press("Enter");
    await page.getByText("Nothing begins like this").waitFor();
    await go(page, "#/blobs/folders?prefix=2024%2Fmay%2F");
    await page.getByRole("link", { name: "a.txt", exact: true }).click();
    await page.getByRole("heading", { name: "a.txt" }).waitFor();
  });

  await check("browse: a long list comes in pages", async () => {
    await freshContainer("long-list");
    const all = Array.from({ length: 405 }, (_, index) => `n${String(index).padStart(4, "0")}`);
    for (let at = 0; at < all.length; at += 45) await Promise.all(all.slice(at, at + 45).map((name) => putBlob("long-list", name, "x")));
    const page = await signedIn(browser, "#/blobs/long-list");
    const seen = [];
    for (const [first, count] of [["n0000", 200], ["n0200", 200], ["n0400", 5]]) {
      await page.getByRole("link", { name: first, exact: true }).waitFor();
      const shown = await names(page);
      assert.equal(shown.length, count);
      seen.push(...shown);
      if (count === 200) await page.getByRole("button", { name: "Next page" }).click();
    }
    assert.deepEqual(seen, all);
    assert.equal(await page.getByRole("button", { name: "Next page" }).isDisabled(), true);
    await page.goBack();
    await page.getByRole("link", { name: "n0200", exact: true }).waitFor();
    await page.getByRole("button", { name: "First page" }).click();
    await page.getByRole("link", { name: "n0000", exact: true }).waitFor();
  });

  await check("browse: the list shows type, size, tier, lease and time", async () => {
    await freshContainer("columns");
    await putBlob("columns", "block", "x".repeat(2048), { "x-ms-access-tier": "Cool", "x-ms-blob-content-type": "text/plain" });
    await blobs("PUT", { container: "columns", name: "log" }, undefined, { "x-ms-blob-type": "AppendBlob" });
    await blobs("PUT", { container: "columns", name: "disk" }, undefined, { "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1024" });
    await blobs("PUT", { container: "columns", name: "block", query: "comp=lease" }, undefined, { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1" });
    const page = await signedIn(browser, "#/blobs/columns");
    const cells = (name) => page.getByRole("row").filter({ hasText: name }).locator("td").allInnerTexts();
    await page.getByRole("link", { name: "block", exact: true }).waitFor();
    const [, size, type, tier, lease, modified] = await cells("block");
    assert.deepEqual([size, type, tier, lease], ["2.0 KiB", "block text/plain", "Cool", "leased for ever"]);
    assert.match(modified, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ$/);
    assert.match((await cells("log")).join("|"), /^log *\|0 B\|append .*\|–\|none\|/);
    assert.match((await cells("disk")).join("|"), /^disk *\|1.0 KiB\|page .*\|–\|none\|/);
  });

  await check("browse: snapshots and deleted blobs are shown on request, and a deleted one comes back", async () => {
    await softDelete(7);
    try {
      await freshContainer("restored");
      await putBlob("restored", "dir/kept", "one");
      await blobs("PUT", { container: "restored", name: "dir/kept", query: "comp=snapshot" });
      await putBlob("restored", "dir/lost", "two");
      await blobs("DELETE", { container: "restored", name: "dir/lost" });
      const page = await signedIn(browser, "#/blobs/restored?prefix=dir%2F");
      await until(async () => (await names(page)).join(" "), "kept");
      await page.getByLabel("Deleted").check();
      await until(async () => (await names(page)).join(" "), "kept lost");
      await page.getByText("deleted, gone in").waitFor();
      assert.equal(await page.getByRole("link", { name: "lost", exact: true }).count(), 0);
      await page.getByLabel("Snapshots").check();
      await until(async () => (await names(page)).join(" "), "kept kept lost");
      await page.getByText(/^snapshot \d{4}/).waitFor();
      await page.getByRole("button", { name: "Undelete dir/lost" }).click();
      await page.getByText("The blob is back").waitFor();
      await page.getByRole("link", { name: "lost", exact: true }).waitFor();
      assert.equal((await blobs("GET", { container: "restored", name: "dir/lost" })).text, "two");
    } finally {
      await softDelete(0);
    }
  });

  await check("browse: a blob is deleted from the list, after a question", async () => {
    await freshContainer("deleted-one");
    await putBlob("deleted-one", "a", "x");
    await blobs("PUT", { container: "deleted-one", name: "a", query: "comp=snapshot" });
    const page = await signedIn(browser, "#/blobs/deleted-one");
    await page.getByRole("button", { name: "Delete a", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    assert.equal((await blobs("HEAD", { container: "deleted-one", name: "a" })).status, 200);
    await page.getByRole("button", { name: "Delete a", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("deleted-one is empty").waitFor();
    assert.equal((await blobs("HEAD", { container: "deleted-one", name: "a" })).status, 404);
  });

  await check("browse: soft delete is set on the page of settings", async () => {
    await softDelete(0);
    const page = await signedIn(browser, "#/settings?of=blob");
    await page.getByLabel("Delete deleted blobs after").check();
    await page.getByLabel("Days that deleted blobs are kept").fill("9");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The service properties were saved.").waitFor();
    assert.match((await blobs("GET", PROPERTIES)).text, /<DeleteRetentionPolicy>.*<Enabled>true<\/Enabled>.*<Days>9<\/Days>/);
    await softDelete(0);
  });

  await check("browse: policies of a container are saved, and its public access stays", async () => {
    await freshContainer("shared-here");
    const acl = { container: "shared-here", query: "restype=container&comp=acl" };
    await blobs("PUT", acl, "<SignedIdentifiers><SignedIdentifier><Id>old</Id><AccessPolicy><Permission>rwdx</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>", { "x-ms-blob-public-access": "container" });
    const page = await signedIn(browser, "#/blobs/shared-here");
    await page.getByText("can be listed and read by anyone").waitFor();
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Policies and public access" }).click();
    await page.getByLabel("l list blobs").check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The policies of shared-here were saved.").waitFor();
    const kept = await blobs("GET", acl);
    assert.match(kept.text, /<Permission>rwdxl<\/Permission>/);
    assert.equal(kept.headers.get("x-ms-blob-public-access"), "container");
    await page.getByLabel("Public access").selectOption("");
    await page.getByRole("button", { name: "Save" }).click();
    await until(async () => (await blobs("GET", acl)).headers.get("x-ms-blob-public-access"), null);
  });
}
