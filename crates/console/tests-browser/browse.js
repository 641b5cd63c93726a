// A large table, browsed: every frame's time while the grid scrolls, and how much of the table is ever held.
//
// The rows come from `partita import`. Beside the times of frames, which other programs on the machine lengthen, stands the
// processor time that the page's thread used for each. Times are printed, not judged; what is judged is that the right rows
// are shown, that few rows are in the document, and that few pages are held.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { go, signedIn } from "./lab.js";
import { CONNECTION, createTable, tables } from "./service.js";

const perPartition = 10_000;
const key = (index) => [`p${String(Math.floor(index / perPartition)).padStart(5, "0")}`, String(index % perPartition).padStart(6, "0")];

async function load(table, rows) {
  await createTable(table);
  const [pk, rk] = key(rows - 1);
  if ((await tables("GET", `/${table}(PartitionKey='${pk}',RowKey='${rk}')`)).status === 200) return;
  const program = spawn(process.env.PARTITA_PROGRAM ?? "partita", ["import", "--table", table, "--from", "-", "--connection-string", CONNECTION], { stdio: ["pipe", "ignore", "ignore"] });
  const ended = once(program, "exit");
  for (let index = 0; index < rows; index += 1) {
    const [partition, row] = key(index);
    const line = `{"PartitionKey":"${partition}","RowKey":"${row}","Number":${index},"Half":${index}.5,"Name":"row number ${index}","Even":${index % 2 === 0}}\n`;
    if (!program.stdin.write(line)) await once(program.stdin, "drain");
  }
  program.stdin.end();
  const [code] = await ended;
  assert.equal(code, 0, "the import failed");
}

/** In the page: scrolls once a frame by `step` pixels and gives the time of every frame. */
const scroll = (page, step, frames) =>
  page.evaluate(
    ([step, frames]) =>
      new Promise((resolve) => {
        const grid = document.querySelector(".grid");
        const times = [];
        let last = performance.now();
        const frame = (now) => {
          times.push(now - last);
          last = now;
          if (times.length > frames) return resolve(times.slice(1));
          grid.scrollTop += step;
          requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
      }),
    [step, frames],
  );

/** Makes the table if it is missing and browses it, `frames` frames at each speed; `say` gets the lines of the report. */
export async function browse(browser, rows, frames, say) {
  const table = `Rows${rows}`;
  await load(table, rows);
  const page = await signedIn(browser);
  let requests = 0;
  page.on("request", (request) => (requests += request.url().includes(`/${table}()`) ? 1 : 0));
  await go(page, `#/tables/${table}`);
  const shows = async (index) => {
    const [partition, row] = key(index);
    const cells = page.locator(`[data-row='${index}'] .value`);
    await cells.first().waitFor({ timeout: 120_000 });
    assert.deepEqual((await cells.allInnerTexts()).slice(0, 2), [partition, row], `row ${index}`);
  };
  const grid = page.getByRole("grid");
  await shows(0);
  const devtools = await browser.newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  /** Processor time of the page's thread so far, in milliseconds. */
  const busy = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration").value * 1000;
  };
  const measure = async (name, act) => {
    const before = await busy();
    const times = await act();
    say(report(name, times, (await busy()) - before));
  };
  await measure("standing still", () => scroll(page, 0, frames / 2));
  await measure("slowly, 6 pixels a frame", () => scroll(page, 6, frames));
  await measure("fast, 10 rows a frame", () => scroll(page, 280, frames));
  await page.waitForTimeout(500);

  // To the very end: keys alone are read on the way.
  const started = performance.now();
  const last = rows - 1;
  for (let tries = 0; tries < 4000; tries += 1) {
    await grid.evaluate((element) => void (element.scrollTop = element.scrollHeight));
    if (await page.getByText(`${rows.toLocaleString("en-US")} entities`, { exact: true }).isVisible()) break;
    await page.waitForTimeout(50);
  }
  await grid.evaluate((element) => void (element.scrollTop = element.scrollHeight));
  await shows(last);
  say(`${"to the last row".padEnd(26)} ${((performance.now() - started) / 1000).toFixed(1)} s, ${requests} requests in all`);
  await measure("upwards from the end", () => scroll(page, -280, frames));

  // Jumps into what is known: each page is read again by its token.
  await measure("after jumps", async () => {
    const times = [];
    for (const share of [0.5, 0.123, 0.987, 0.25, 0.75]) {
      times.push(...(await jump(page, share)));
      const first = Number(await page.locator("[data-row]").first().getAttribute("data-row"));
      await shows(first + 12);
    }
    return times;
  });
  const inDocument = await page.locator("[data-row]").count();
  assert.ok(inDocument < 80, `${inDocument} rows in the document`);
  // One request a page on the way, and one or two for each place that was looked at.
  assert.ok(requests <= rows / 1000 + 120, `${requests} requests`);
  const heap = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
  say(`${"at the end".padEnd(26)} ${inDocument} rows in the document, ${requests} requests, heap ${(heap / 1048576).toFixed(0)} MiB`);
  say(`${rows.toLocaleString("en-US")} rows were browsed`);
}

/** In the page: scrolls to this part of the track, and gives the time of every frame until rows are there. */
const jump = (page, share) =>
  page.evaluate(
    (share) =>
      new Promise((resolve) => {
        const grid = document.querySelector(".grid");
        grid.scrollTop = grid.scrollHeight * share;
        const times = [];
        let last = performance.now();
        const frame = (now) => {
          times.push(now - last);
          last = now;
          if (times.length > 30 && document.querySelector("[data-row] .value")) resolve(times.slice(1));
          else requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
      }),
    share,
  );

function report(name, times, used) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))].toFixed(1);
  const long = times.filter((time) => time > 34).length;
  return `${name.padEnd(26)} ${times.length} frames, each ${(used / times.length).toFixed(1)} ms of work: median ${at(0.5)} ms, 95 % within ${at(0.95)}, 99 % within ${at(0.99)}, longest ${at(1)}; ${long} longer than two frames`;
}
