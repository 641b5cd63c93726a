// Tables: list, create, drop.

import assert from "node:assert/strict";
import { signedIn, until } from "../lab.js";
import { createTable, dropTable, entities, insertMany } from "../service.js";

export default async function (check, browser) {
  await check("tables: the list shows what is there", async () => {
    await dropTable("ListedHere");
    await createTable("ListedHere");
    await insertMany("ListedHere", "p", Array.from({ length: 37 }, (_, index) => ({ RowKey: String(index), Text: "x".repeat(100) })));
    const page = await signedIn(browser);
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "ListedHere" }) });
    const [, rows, size] = await row.getByRole("cell").allInnerTexts();
    assert.match(rows, /^37$/);
    assert.match(size, /^\d[\d.]* (B|KiB)$/);
    await dropTable("ListedHere");
  });

  await check("tables: a new one is made, and a bad name is refused where it is typed", async () => {
    await dropTable("MadeHere");
    const page = await signedIn(browser);
    await page.getByRole("button", { name: "New table" }).first().click();
    await page.getByLabel("Name").fill("made here");
    await page.getByText("is neither").waitFor();
    await until(() => page.getByRole("button", { name: "Create" }).isDisabled(), true);
    await page.getByLabel("Name").fill("MadeHere");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("MadeHere is empty").waitFor();
    assert.deepEqual(await entities("MadeHere"), []);
  });

  await check("tables: one is dropped only if its name was typed", async () => {
    await createTable("DroppedHere");
    const page = await signedIn(browser);
    await page.getByRole("button", { name: "Drop DroppedHere" }).click();
    const drop = page.getByRole("button", { name: "Drop the table" });
    await until(() => drop.isDisabled(), true);
    await page.getByLabel("Type DroppedHere to confirm").fill("Dropped");
    await until(() => drop.isDisabled(), true);
    await page.getByLabel("Type DroppedHere to confirm").fill("DroppedHere");
    await drop.click();
    await page.getByText("DroppedHere was dropped.").waitFor();
    assert.equal(await entities("DroppedHere"), undefined);
  });
}
