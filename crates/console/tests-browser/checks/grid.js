// The grid: pages, columns, types, keys.

import assert from "node:assert/strict";
import { go, signedIn, until } from "../lab.js";
import { createTable, dropTable, entities, insert, insertMany } from "../service.js";

const table = "GridRows";

export default async function (check, browser) {
  await dropTable(table);
  await createTable(table);
  for (const pk of ["a", "b", "c"]) {
    await insertMany(table, pk, Array.from({ length: 900 }, (_, index) => ({ RowKey: String(index).padStart(4, "0"), Number: index, Half: index + 0.5, Text: `row ${index}`, [`Only${pk.toUpperCase()}`]: true })));
  }
  await insert(table, { PartitionKey: "d", RowKey: "mixed", Number: "a text", "Late@odata.type": "Edm.Guid", Late: "7c9e6679-7425-40de-944b-e07fc1f90ae7" });

  const grid = (page) => page.getByRole("grid");
  /** Scrolls down until the row is there: the track grows with what is read. */
  const reach = async (page, row) => {
    const found = page.locator(`[data-row='${row}'] .value`).first();
    for (let tries = 0; tries < 1000 && !(await found.isVisible()); tries += 1) {
      await grid(page).evaluate((element, top) => void (element.scrollTop = top), (row - 5) * 28);
      await page.waitForTimeout(50);
    }
    await found.waitFor();
  };

  await check("grid: scrolls through several pages by continuation tokens", async () => {
    const page = await signedIn(browser);
    const asked = [];
    page.on("request", (request) => request.url().includes(`/${table}()`) && asked.push(new URL(request.url()).searchParams));
    await go(page, `#/tables/${table}`);
    await page.locator("[data-row='0']").waitFor();
    await reach(page, 1010);
    await reach(page, 2700);
    await page.locator("[data-row='2700']").getByText("mixed").waitFor();
    await page.getByText("2,701 entities").waitFor();
    assert.ok(asked.length >= 3, `${asked.length} requests`);
    assert.ok(asked.slice(1).some((query) => query.get("NextPartitionKey")), "no request had a token");
    assert.equal(await page.locator("[data-row]").count() < 80, true, "only what is in view is in the document");
  });

  await check("grid: columns come from what is there, with their types", async () => {
    const page = await signedIn(browser, `#/tables/${table}`);
    await page.locator("[data-row='0']").waitFor();
    const heads = () => page.getByRole("columnheader").allInnerTexts();
    assert.ok((await heads()).some((text) => /^Number\s+i32/.test(text)));
    assert.ok((await heads()).some((text) => /^Half\s+dbl/.test(text)));
    assert.ok(!(await heads()).some((text) => text.startsWith("Late")));
    await reach(page, 2700);
    await grid(page).evaluate((element) => void (element.scrollLeft = 99_999));
    await page.getByRole("columnheader", { name: /^Late/ }).waitFor();
  });

  await check("grid: a column is made wider with the pointer and with the keyboard", async () => {
    const page = await signedIn(browser, `#/tables/${table}`);
    const head = page.getByRole("columnheader", { name: /^RowKey/ });
    const width = async () => (await head.boundingBox()).width;
    await page.locator("[data-row='0']").waitFor();
    const before = await width();
    const wider = async () => Math.round((await width()) - before);
    const handle = await head.locator(".resize").boundingBox();
    await page.mouse.move(handle.x + 4, handle.y + 8);
    await page.mouse.down();
    await page.mouse.move(handle.x + 84, handle.y + 8, { steps: 4 });
    await page.mouse.up();
    await until(wider, 80);
    await page.locator("[data-row='0'] [data-column='1']").click();
    await page.keyboard.press("Alt+ArrowLeft");
    await until(wider, 60);
  });

  await check("grid: a double click on the edge of a column fits it to what is in view", async () => {
    const page = await signedIn(browser, `#/tables/${table}`);
    const head = page.getByRole("columnheader", { name: /^Text/ });
    await page.locator("[data-row='0']").waitFor();
    const before = (await head.boundingBox()).width;
    await head.locator(".resize").dblclick();
    await until(async () => (await head.boundingBox()).width < before, true);
    const isCut = await page.locator("[data-row='3'] .cell").filter({ hasText: "row 3" }).evaluate((cell) => cell.scrollWidth > cell.clientWidth);
    assert.equal(isCut, false);
  });

  await check("grid: pages, ends, all rows, copies and deletes with the keyboard", async () => {
    await dropTable("GridKeys");
    await createTable("GridKeys");
    await insertMany("GridKeys", "p", Array.from({ length: 120 }, (_, index) => ({ RowKey: String(index).padStart(3, "0"), Number: index })));
    const page = await signedIn(browser, "#/tables/GridKeys");
    await page.locator("[data-row='0']").waitFor();
    await page.getByText("120 entities", { exact: true }).waitFor();
    await grid(page).focus();
    const place = () => page.locator(".cell.active").evaluate((cell) => `${cell.parentElement.dataset.row} ${cell.dataset.column}`);
    const press = async (key, expected) => {
      await page.keyboard.press(key);
      await until(place, expected);
    };
    await press("ArrowDown", "0 0");
    await press("Control+End", "119 0");
    await press("ArrowUp", "118 0");
    await press("Control+Home", "0 0");
    await press("End", "0 3");
    await press("Home", "0 0");
    await page.keyboard.press("PageDown");
    const down = Number((await place()).split(" ")[0]);
    assert.ok(down > 5 && down < 60, String(down));
    await press("PageUp", "0 0");
    await press("ArrowRight", "0 1");
    await press("ArrowDown", "1 1");
    await page.keyboard.press("Control+c");
    await until(() => page.evaluate(() => navigator.clipboard.readText()), "001");
    await grid(page).focus();
    await page.keyboard.press("Delete");
    await page.keyboard.press("Control+a");
    await page.getByText("120 entities selected").waitFor();
    assert.equal((await entities("GridKeys")).length, 120, "Delete without a selection deletes nothing");
    await page.keyboard.press("Delete");
    await page.getByText("120 entities deleted from GridKeys.").waitFor();
    assert.deepEqual(await entities("GridKeys"), []);
  });

  await check("grid: arrows move, Enter opens, Escape closes, Space selects", async () => {
    const page = await signedIn(browser, `#/tables/${table}`);
    await page.locator("[data-row='0']").waitFor();
    await grid(page).focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
    await until(() => page.locator(".cell.active").innerText(), "0002");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await until(() => page.getByLabel("RowKey", { exact: true }).inputValue(), "0002");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await grid(page).focus();
    await page.keyboard.press("Space");
    await page.getByText("1 entity selected").waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Shift+Space");
    await page.getByText("2 entities selected").waitFor();
  });
}
