// Every promise of docs/console.md in a real browser against the real server: node check.js [beginning of a name]
//
// PARTITA_CONSOLE is the console's address, PARTITA_TABLES, PARTITA_QUEUES and PARTITA_BLOBS are HOST:PORT of the services.

import { freePages, openBrowser, troubles } from "./lab.js";
import access from "./checks/access.js";
import accessibility from "./checks/accessibility.js";
import blobs from "./checks/blobs.js";
import browse from "./checks/browse.js";
import entities from "./checks/entities.js";
import files from "./checks/files.js";
import filter from "./checks/filter.js";
import grid from "./checks/grid.js";
import hostile from "./checks/hostile.js";
import large from "./checks/large.js";
import live from "./checks/live.js";
import queues from "./checks/queues.js";
import session from "./checks/session.js";
import tables from "./checks/tables.js";
import uploads from "./checks/uploads.js";

const only = process.argv[2] ?? "";
const { browser, close } = await openBrowser();
let [passed, failed] = [0, 0];

async function check(name, act) {
  if (!name.startsWith(only)) return;
  const before = troubles.length;
  await freePages(browser);
  try {
    await act();
    if (troubles.length > before) throw new Error(troubles.slice(before).join("\n"));
    passed += 1;
    if (only) console.log(`ok: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`not ok: ${name}\n${error.stack ?? error}`);
    const pictures = process.env.PARTITA_PICTURES;
    for (const [index, page] of pictures ? browser.pages().entries() : []) await page.screenshot({ path: `${pictures}/failed-${failed}-${index}.png` }).catch(() => undefined);
  }
}

try {
  const groups = { "sign-in": session, tables, grid, filter, cost: filter, entity: entities, files, queues, browse, blob: blobs, upload: uploads, access, live, cluster: live, server: live, hostile, accessibility, large };
  const wanted = Object.entries(groups).filter(([name]) => !only || name === only.split(":")[0]);
  for (const group of new Set(wanted.map(([, group]) => group))) await group(check, browser);
} finally {
  await close();
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed || !passed ? 1 : 0);
