// Pictures of every page, light and dark, wide and narrow: node screenshots.js DIRECTORY [part of a name]

import { mkdirSync, mkdtempSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBrowser, signedIn, go, watch, troubles } from "./lab.js";
import { seedAll } from "./seed.js";
import { CONSOLE } from "./service.js";
import { shrink } from "./shrink.js";

const [directory = "pictures", only = ""] = process.argv.slice(2);
mkdirSync(directory, { recursive: true });

const PAGES = [
  ["tables", "#/tables", (page) => page.getByRole("link", { name: "Books" }).waitFor()],
  ["grid", "#/tables/Books", (page) => page.getByText("b00005").first().waitFor()],
  [
    "filter",
    "#/tables/Books?filter=Year%20lt%201930%20and%20Author%20eq%20'Italo%20Calvino'",
    async (page) => {
      await page.locator("[data-row='0']").waitFor();
      const box = page.getByRole("combobox", { name: "Filter" });
      await box.click();
      await box.press("End");
      await box.pressSequentially(" and ");
    },
  ],
  [
    "entity",
    "#/tables/Books?filter=RowKey%20eq%20'all-types'",
    async (page) => {
      await page.locator("[data-row='0'] [data-column='1']").dblclick();
      await page.getByRole("dialog").waitFor();
    },
  ],
  [
    "why-slow",
    "#/tables/Books?filter=Year%20eq%201961",
    async (page) => {
      await page.locator("[data-row='0']").waitFor();
      await page.getByRole("button", { name: "Why is this slow?" }).click();
      await page.getByText("What helps").waitFor();
    },
  ],
  ["queues", "#/queues", (page) => page.getByRole("link", { name: "jobs", exact: true }).waitFor()],
  ["queue", "#/queues/jobs", (page) => page.getByText("ship").first().waitFor()],
  ["containers", "#/blobs", (page) => page.getByRole("link", { name: "photos", exact: true }).waitFor()],
  ["container", "#/blobs/photos?prefix=2026%2F&show=snapshots%2Cdeleted", (page) => page.getByRole("link", { name: "may/waves.png", exact: true }).first().waitFor()],
  [
    "upload",
    "#/blobs/photos",
    async (page) => {
      await page.getByRole("link", { name: "notes.md", exact: true }).waitFor();
      // One is there already, one is under way, one waits.
      await page.route(/archive-2026/, (route) => (/0000[6-9]/.test(Buffer.from(new URL(route.request().url()).searchParams.get("blockid") ?? "", "base64").toString()) ? undefined : route.continue()));
      const folder = mkdtempSync(join(tmpdir(), "partita-pictures-"));
      const files = Object.entries({ "notes.md": 9, "archive-2026.tar": 40 * 1024 * 1024, "letter.pdf": 90_000 }).map(([name, size]) => {
        writeFileSync(join(folder, name), "");
        truncateSync(join(folder, name), size);
        return join(folder, name);
      });
      await page.getByLabel("Files to upload").setInputFiles(files);
      await page.getByText("60 %").waitFor();
    },
  ],
  ["blob", "#/blobs/photos?blob=2026%2Fmay%2Fwaves.png", (page) => page.getByRole("img", { name: /^Picture/ }).waitFor()],
  ["blob-text", "#/blobs/photos?blob=notes.md", (page) => page.getByLabel("The content as text").waitFor()],
  ["blob-properties", "#/blobs/photos?blob=notes.md&tab=properties", (page) => page.getByLabel("The name of metadata 1").waitFor()],
  ["live", "#/live", (page) => page.waitForTimeout(Number(process.env.PARTITA_LIVE_SECONDS ?? 8) * 1000)],
  [
    "access",
    "#/access",
    async (page) => {
      await page.getByLabel("Table", { exact: true }).fill("Books");
      await page.getByRole("button", { name: "Make the token" }).click();
      await page.getByRole("heading", { name: "URL" }).waitFor();
    },
  ],
  ["policies", "#/access?tab=policies&of=table%2FBooks", (page) => page.getByLabel("Name").first().waitFor()],
  ["settings", "#/settings", (page) => page.getByText("Rule 1").waitFor()],
  ["cluster", "#/cluster", (page) => page.getByRole("heading", { name: "Cluster" }).waitFor()],
  ["server", "#/server", (page) => page.getByText("Settings in force").waitFor()],
];

if (!process.env.PARTITA_NO_SEED) await seedAll();
const { browser, close } = await openBrowser();
for (const theme of ["light", "dark"]) {
  for (const [size, width, height] of [
    ["wide", 1280, 800],
    ["narrow", 390, 844],
  ]) {
    const name = (page) => join(directory, `${page}-${theme}-${size}.png`);
    if ("sign-in".includes(only)) {
      await browser.clearCookies();
      const page = await browser.newPage();
      watch(page);
      await page.emulateMedia({ colorScheme: theme });
      await page.setViewportSize({ width, height });
      await page.goto(`${CONSOLE}/console/`);
      await page.getByRole("heading", { name: "Partita" }).waitFor();
      writeFileSync(name("sign-in"), shrink(await page.screenshot()));
      await page.close();
    }
    const page = await signedIn(browser);
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize({ width, height });
    for (const [title, path, ready] of PAGES) {
      if (!title.includes(only)) continue;
      await go(page, "#/none");
      await go(page, path);
      try {
        await ready(page);
        await page.waitForTimeout(250);
      } catch (error) {
        console.log(`${title}: ${error.message}`);
      }
      writeFileSync(name(title), shrink(await page.screenshot()));
      await page.keyboard.press("Escape");
      const cancel = page.getByRole("button", { name: "Cancel all" });
      if (await cancel.isVisible()) {
        await cancel.click();
        await page.unrouteAll();
      }
    }
    await page.close();
  }
}
await close();
console.log(troubles.length ? troubles.join("\n") : "no trouble in any page");
