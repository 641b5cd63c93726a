// Pictures of every page, light and dark, wide and narrow: node screenshots.js DIRECTORY [part of a name]

import { mkdirSync, writeFileSync } from "node:fs";
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
    }
    await page.close();
  }
}
await close();
console.log(troubles.length ? troubles.join("\n") : "no trouble in any page");
