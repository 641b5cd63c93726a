// A million rows, or as many as are named, browsed with the times of frames: node million.js [ROWS]

import assert from "node:assert/strict";
import { browse } from "./browse.js";
import { openBrowser, troubles } from "./lab.js";

const { browser, close } = await openBrowser();
try {
  await browse(browser, Number(process.argv[2] ?? 1_000_000), 300, console.log);
  assert.deepEqual(troubles, []);
} finally {
  await close();
}
