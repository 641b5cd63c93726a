// The filter box, and what a query cost.

import assert from "node:assert/strict";
import { signedIn, until } from "../lab.js";
import { createTable, dropTable, insertMany } from "../service.js";

const table = "FilterRows";

export default async function (check, browser) {
  await dropTable(table);
  await createTable(table);
  for (const pk of ["a", "b"]) {
    await insertMany(table, pk, Array.from({ length: 300 }, (_, index) => ({ RowKey: String(index).padStart(4, "0"), Year: 1900 + (index % 100), Title: `title ${index}`, "Copies@odata.type": "Edm.Int64", Copies: String(index) })));
  }
  const box = (page) => page.getByRole("combobox", { name: "Filter" });
  const options = (page) => page.getByRole("option").allInnerTexts();
  const cost = (page) => page.getByRole("group", { name: "What this query cost" }).innerText();
  const ready = async (filter = "") => {
    const page = await signedIn(browser, `#/tables/${table}${filter && `?filter=${encodeURIComponent(filter)}`}`);
    await page.getByRole("group", { name: "What this query cost" }).getByText("returned").waitFor();
    return page;
  };

  await check("filter: completes property names, operators and values by their types", async () => {
    const page = await ready();
    await box(page).pressSequentially("Ye");
    await page.getByRole("option", { name: /^Year/ }).waitFor();
    assert.match((await options(page))[0], /Year\s*Int32/);
    await page.keyboard.press("Tab");
    await until(() => box(page).inputValue(), "Year ");
    const listed = async () => (await options(page)).map((text) => text.match(/^\w+/)?.[0]).join(" ");
    await until(listed, "eq ne gt ge lt le");
    await box(page).pressSequentially("lt 1910 ");
    await until(listed, "and or");
    await box(page).pressSequentially("and Copies gt ");
    await until(async () => (await options(page))[0]?.replace(/\s+/g, " "), "0L Int64");
    await page.keyboard.press("Escape");
    await box(page).pressSequentially("5L");
    await page.keyboard.press("Enter");
    await page.getByText(/^\d+ entities$/).waitFor();
    assert.equal(new URL(page.url()).hash.includes("filter=Year+lt+1910+and+Copies+gt+5L"), true, page.url());
  });

  await check("filter: an error is shown at its place", async () => {
    const page = await ready();
    await box(page).fill("Year == 1961");
    await page.getByText("Write eq instead of =.").waitFor();
    await until(() => page.locator(".filter-paint .wrong").innerText(), "=");
    await box(page).fill("Title eq 'open");
    await page.getByText("This text is not closed").waitFor();
    assert.match(await page.locator(".filter-says").innerText(), /^at 10:/);
    await box(page).fill("Year eq 99999999999");
    await page.getByText("Between -2147483648 and 2147483647.").waitFor();
  });

  await check("filter: what the server refuses is said beside the filter", async () => {
    const page = await ready();
    await box(page).fill("Year eq 'a' add 1");
    await box(page).press("Enter");
    await page.locator(".filter-says").getByText(/./).first().waitFor();
    await until(() => box(page).getAttribute("aria-invalid"), "true");
  });

  await check("cost: each class with its ranges, examined against returned", async () => {
    for (const [filter, expected, examined, returned] of [
      ["PartitionKey eq 'a' and RowKey eq '0001'", "Point", 1, 1],
      ["PartitionKey eq 'a' and RowKey lt '0010'", "Range", 10, 10],
      ["PartitionKey eq 'a' and Year eq 1961", "Partition scan", 300, 3],
      ["Year eq 1961", "Table scan", 600, 6],
    ]) {
      const page = await ready(filter);
      const said = (await cost(page)).replace(/\s+/g, " ");
      assert.ok(said.startsWith(expected), said);
      assert.ok(said.includes(`1 key range`), said);
      assert.ok(said.includes(`${examined} examined`), said);
      assert.ok(said.includes(`${returned} returned`), said);
      assert.match(said, /ms in the server/);
      assert.match(said, /1 Azure transaction/);
    }
  });

  await check("cost: why it is slow, with the advisor's proposal", async () => {
    const page = await ready("Title eq 'title 7'");
    await page.getByRole("button", { name: "Why is this slow?" }).click();
    const panel = page.getByRole("dialog", { name: "Why is this slow?" });
    await panel.getByText("No partition is given").waitFor();
    await panel.getByText("598 entities, 99.6 %").waitFor();
    await panel.locator(".proposed").first().waitFor();
    await panel.getByText("Title eq String").waitFor();
  });
}
