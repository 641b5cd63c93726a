// A browser, a page that is signed in, and what went wrong in it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { CONSOLE } from "./service.js";

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const EXECUTABLE = process.env.PARTITA_CHROMIUM ?? "/usr/bin/chromium";
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** A name of a stranger that leads to this machine, as after DNS rebinding. */
export const REBOUND = "rebound.example";
FLAGS.push(`--host-resolver-rules=MAP ${REBOUND} 127.0.0.1`);

const SIZE = { width: 1280, height: 800 };

/** Errors of scripts and violations of the content-security policy, of all pages. */
export const troubles = [];

export async function openBrowser() {
  const profile = mkdtempSync(join(tmpdir(), "partita-console-"));
  const browser = await chromium.launchPersistentContext(profile, { executablePath: EXECUTABLE, args: FLAGS, viewport: SIZE, permissions: ["clipboard-read", "clipboard-write"], acceptDownloads: true, reducedMotion: "reduce" });
  await browser.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
  });
  return {
    browser,
    close: async () => {
      await browser.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

export function watch(page) {
  page.on("pageerror", (error) => troubles.push(`${page.url()}: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    const text = message.text();
    const isExpected = /Failed to load resource/.test(text); // an answer of 4xx, which a test has asked for
    if (message.type() === "error" && !isExpected) troubles.push(`${page.url()}: ${text}`);
  });
}

export async function violations(page) {
  return page.evaluate(() => window.violations ?? []);
}

/** In milliseconds: far longer than a page takes on a busy machine. */
const PATIENCE = 60_000;

/** Pages that several checks use, one after the other: a new one would be a new process. */
const kept = [];
let taken = 0;

/** Begins a check: the kept pages are free again, and all others are closed. */
export async function freePages(browser) {
  taken = 0;
  for (const page of browser.pages()) if (!kept.includes(page)) await page.close();
}

/** A page that nothing of an earlier check is left in, but for what the browser stores. */
async function freshPage(browser) {
  const page = kept[taken] ?? (await browser.newPage());
  if (!kept[taken]) {
    watch(page);
    page.setDefaultTimeout(PATIENCE);
    kept.push(page);
  }
  taken += 1;
  page.removeAllListeners("request");
  // Behind another one, it would draw no frames.
  await page.bringToFront();
  await page.goto("about:blank");
  await page.setViewportSize(SIZE);
  await page.emulateMedia({ colorScheme: null });
  return page;
}

/** A page of the console, signed in to the development account. */
export async function signedIn(browser, path = "#/tables") {
  const page = await freshPage(browser);
  await page.goto(`${CONSOLE}/console/${path}`);
  const button = page.getByRole("button", { name: "Open the development account" });
  await button.or(page.getByRole("navigation", { name: "Pages" })).first().waitFor();
  if (await button.isVisible()) await button.click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  return page;
}

export async function go(page, path) {
  await page.goto(`${CONSOLE}/console/${path}`);
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

/** Another server of the program under test, with these arguments. Gives its console's address, and a function that ends it. */
export async function startServer(...more) {
  const child = spawn(process.env.PARTITA_PROGRAM ?? "partita", ["serve", "--listen", "127.0.0.1:0", "--log-level", "error", ...more], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  const address = await new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
    child.stdout.on("data", (part) => {
      said += part;
      const found = said.match(/Console and metrics: (http:\/\/[^/\s]+)/);
      if (found) resolve(found[1]);
    });
  });
  return { address, stop: () => child.kill() };
}

/** Waits until `read` gives what is expected: a page draws after a key or a click, not during it. */
export async function until(read, expected) {
  for (const end = Date.now() + PATIENCE; ; ) {
    const found = await read();
    if (found === expected || Date.now() > end) return assert.equal(found, expected);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** What axe finds that is serious or critical. It runs in the page's world of the test driver, which the policy does not bind. */
export async function faults(page) {
  if (!(await page.evaluate(() => !!window.axe))) await page.evaluate(AXE);
  const found = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"], preload: false })).violations);
  return found
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, impact, nodes }) => nodes.map((node) => `${impact} ${id}: ${node.target.join(" ")}: ${node.failureSummary}`));
}
