// Every page under axe-core, light and wide, and dark and narrow; the switch of colours; the keyboard.

import assert from "node:assert/strict";
import { faults, go, signedIn, until, violations, watch } from "../lab.js";
import { seedAll } from "../seed.js";
import { CONSOLE } from "../service.js";

const PAGES = [
  ["#/tables", (page) => page.getByRole("link", { name: "Books" }).waitFor()],
  ["#/tables/Books", (page) => page.locator("[data-row='3']").waitFor()],
  ["#/queues", (page) => page.getByRole("link", { name: "jobs", exact: true }).waitFor()],
  ["#/queues/jobs", (page) => page.getByText("ship").first().waitFor()],
  ["#/blobs", (page) => page.getByRole("link", { name: "photos", exact: true }).waitFor()],
  ["#/blobs/photos", (page) => page.getByRole("link", { name: "notes.md", exact: true }).waitFor()],
  ["#/blobs/photos?blob=2026%2Fmay%2Fwaves.png", (page) => page.getByRole("img", { name: /^Picture/ }).waitFor()],
  ["#/blobs/photos?blob=notes.md", (page) => page.getByLabel("The content as text").waitFor()],
  ["#/blobs/photos?blob=notes.md&tab=properties", (page) => page.getByLabel("The name of metadata 1").waitFor()],
  ["#/blobs/photos?blob=notes.md&tab=lease", (page) => page.getByText("State:").waitFor()],
  ["#/blobs/photos?blob=notes.md&tab=snapshots", (page) => page.getByText("Taken").waitFor()],
  ["#/blobs/photos?blob=notes.md&tab=sas", (page) => page.getByRole("button", { name: "Make the token" }).waitFor()],
  ["#/blobs/photos?blob=notes.md&tab=code", (page) => page.getByLabel("The download as curl").waitFor()],
  ["#/access?tab=policies&of=blob%2Fphotos", (page) => page.getByLabel("Public access").waitFor()],
  ["#/settings?of=blob", (page) => page.getByText("Soft delete").waitFor()],
  ["#/live", (page) => page.waitForTimeout(2500)],
  ["#/access", (page) => page.getByLabel("Table", { exact: true }).waitFor()],
  ["#/access?tab=policies&of=table%2FBooks", (page) => page.getByLabel("Name").first().waitFor()],
  ["#/settings", (page) => page.getByText("Rule 1").waitFor()],
  ["#/cluster", (page) => page.getByRole("heading", { name: "Cluster" }).waitFor()],
  ["#/server", (page) => page.getByText("Settings in force").waitFor()],
];
/** A row that is drawn again between two clicks is not clicked twice. */
async function openFirst(page) {
  await page.getByText("1 entity", { exact: true }).waitFor();
  await page.locator("[data-row='0'] [data-column='1']").dblclick();
}

const DIALOGS = [
  ["#/tables", (page) => page.getByRole("button", { name: "New table" }).first().click()],
  ["#/tables/Books?filter=RowKey%20eq%20'all-types'", openFirst],
  ["#/tables/Books?filter=Year%20eq%201961", (page) => page.getByRole("button", { name: "Why is this slow?" }).click()],
  ["#/queues/jobs", (page) => page.getByRole("button", { name: "Put a message" }).click()],
  ["#/blobs", (page) => page.getByRole("button", { name: "New container" }).first().click()],
  ["#/blobs/photos", (page) => page.getByRole("button", { name: "Delete notes.md" }).click()],
];

export default async function (check, browser) {
  await seedAll();
  // Colours do not depend on the width, nor places on the colours.
  for (const [theme, width] of [["light", 1280], ["dark", 390]]) {
    await check(`accessibility: no serious fault on any page, ${theme}, ${width} wide`, async () => {
      const page = await signedIn(browser);
      await page.emulateMedia({ colorScheme: theme });
      await page.setViewportSize({ width, height: 844 });
      const found = [];
      for (const [path, ready] of PAGES) {
        await go(page, "#/none");
        await go(page, path);
        await ready(page);
        found.push(...(await faults(page)).map((fault) => `${path} ${fault}`));
        const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (beyond > 0) found.push(`${path} is ${beyond} pixels wider than the window`);
      }
      for (const [path, open] of DIALOGS) {
        await go(page, "#/none");
        await go(page, path);
        await open(page);
        await page.getByRole("dialog").waitFor().catch((error) => assert.fail(`the dialog of ${path}: ${error.message}`));
        await page.waitForTimeout(200);
        found.push(...(await faults(page)).map((fault) => `dialog of ${path} ${fault}`));
        await page.keyboard.press("Escape");
      }
      assert.deepEqual(found, []);
      assert.deepEqual(await violations(page), []);
    });
  }

  await check("accessibility: no serious fault on the sign-in page", async () => {
    await browser.clearCookies();
    const page = await browser.newPage();
    watch(page);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await page.goto(`${CONSOLE}/console/`);
      await page.getByRole("heading", { name: "Partita" }).waitFor();
      assert.deepEqual(await faults(page), []);
    }
  });

  await check("accessibility: colours follow the system, or the switch, which is remembered", async () => {
    const page = await signedIn(browser);
    const ground = () =>
      page.evaluate(async () => {
        // A change of the medium takes effect with the next frame, or fades in.
        const now = () => getComputedStyle(document.body).backgroundColor;
        for (let [before, frames] = ["", 0]; frames < 3; frames = now() === before ? frames + 1 : 0) {
          before = now();
          await new Promise(requestAnimationFrame);
        }
        return now();
      });
    await page.emulateMedia({ colorScheme: "light" });
    const light = await ground();
    await page.emulateMedia({ colorScheme: "dark" });
    // The page may hear of the change some frames later.
    let dark = light;
    for (let looks = 0; dark === light && looks < 200; looks++) dark = await ground();
    assert.notEqual(light, dark);
    await page.getByRole("button", { name: /^Colours follow the system/ }).click();
    await page.getByRole("button", { name: /^Dark/ }).click();
    await until(ground, light);
    await page.reload();
    await page.getByRole("button", { name: /^Light/ }).waitFor();
    await until(ground, light);
    await page.getByRole("button", { name: /^Light/ }).click();
    await until(ground, dark);
  });

  await check("accessibility: 390 pixels are enough to find, open, change and save", async () => {
    const page = await signedIn(browser);
    await page.setViewportSize({ width: 390, height: 844 });
    const isInView = async (found) => {
      const box = await found.boundingBox();
      assert.ok(box && box.x >= 0 && box.x + box.width <= 390 && box.y >= 0 && box.y + box.height <= 844, JSON.stringify(box));
    };
    for (const name of ["Queues", "Live", "Access", "Settings", "Cluster", "Server", "Tables"]) {
      await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }).click();
      await page.getByRole("heading", { name, exact: true, level: 1 }).waitFor();
    }
    await page.getByRole("link", { name: "Books" }).click();
    await isInView(page.getByRole("combobox", { name: "Filter" }));
    await page.getByRole("combobox", { name: "Filter" }).fill("RowKey eq 'all-types'");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText("1 entity", { exact: true }).waitFor();
    await page.locator("[data-row='0'] [data-column='1']").dblclick();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Value of Title").fill("One of each type");
    const save = dialog.getByRole("button", { name: "Save" });
    await save.scrollIntoViewIfNeeded();
    await isInView(save);
    await save.click();
    await page.getByText("The entity was saved.").waitFor();
  });

  await check("accessibility: everything is reached with the keyboard alone", async () => {
    const page = await signedIn(browser);
    await page.getByRole("link", { name: "Books" }).waitFor();
    await page.keyboard.press("Tab");
    await until(() => page.evaluate(() => document.activeElement.textContent), "To the content");
    await page.keyboard.press("Enter");
    await until(() => page.evaluate(() => document.activeElement.id), "main");
    await page.getByRole("button", { name: "New table" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await until(() => page.evaluate(() => document.activeElement.tagName), "INPUT");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const ring = await page.getByRole("button", { name: "New table" }).evaluate((button) => {
      button.focus();
      return getComputedStyle(button).outlineStyle;
    });
    assert.equal(ring, "solid");
  });
}
