// Import and export.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { signedIn } from "../lab.js";
import { CONNECTION, createTable, dropTable, entities, insert, insertMany } from "../service.js";

const odd = {
  PartitionKey: "odd",
  RowKey: "x",
  Text: 'comma, "quote"\r\nand a line',
  Empty: "",
  "Long@odata.type": "Edm.Int64",
  Long: "9007199254740993",
  "Exact@odata.type": "Edm.Double",
  Exact: 1,
  "Never@odata.type": "Edm.Double",
  Never: "NaN",
  "When@odata.type": "Edm.DateTime",
  When: "2026-01-31T18:30:00.1234567Z",
  "Bytes@odata.type": "Edm.Binary",
  Bytes: "AAECAw==",
};
const plain = (found) => Object.fromEntries(Object.entries(found).filter(([name]) => !name.startsWith("odata.") && !name.startsWith("Timestamp")));

export default async function (check, browser) {
  const folder = mkdtempSync(join(tmpdir(), "partita-files-"));
  await dropTable("FilesFrom");
  await createTable("FilesFrom");
  await insert("FilesFrom", odd);
  for (const pk of ["a", "b"]) await insertMany("FilesFrom", pk, Array.from({ length: 250 }, (_, index) => ({ RowKey: String(index).padStart(4, "0"), Number: index, Half: index / 2 })));
  const more = async (page, item) => {
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: item }).click();
  };

  for (const [format, label] of [["jsonl", /^JSON lines/], ["csv", /^CSV/]]) {
    await check(`files: export as ${format}, import into another table, every type kept`, async () => {
      const page = await signedIn(browser, "#/tables/FilesFrom");
      await page.locator("[data-row='0']").waitFor();
      await more(page, "Export to a file");
      await page.getByRole("radio", { name: label }).check();
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export", exact: true }).click()]);
      assert.equal(download.suggestedFilename(), `FilesFrom.${format}`);
      const path = join(folder, `FilesFrom.${format}`);
      await download.saveAs(path);
      await page.getByText("501 entities exported").waitFor();
      const target = `FilesTo${format}`;
      await dropTable(target);
      await createTable(target);
      await page.goto(page.url().replace("FilesFrom", target));
      await page.getByText(`${target} is empty`).waitFor();
      await page.getByRole("button", { name: "Import a file" }).click();
      await page.getByLabel("File", { exact: true }).setInputFiles(path);
      await page.getByRole("button", { name: "Import", exact: true }).click();
      await page.getByText(`501 entities imported into ${target}.`).waitFor();
      const sorted = (rows) => rows.map(plain).map((row) => Object.fromEntries(Object.entries(row).sort()));
      assert.deepEqual(sorted(await entities(target)), sorted(await entities("FilesFrom")));
    });
  }

  await check("files: an export in JSON lines has every byte that partita export writes", async () => {
    const program = process.env.PARTITA_PROGRAM ?? "partita";
    const written = execFileSync(program, ["export", "--table", "FilesFrom", "--to", "-", "--connection-string", CONNECTION], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    assert.equal(readFileSync(join(folder, "FilesFrom.jsonl"), "utf8"), written);
  });

  await check("files: an export has what the filter matches, and shows how far it is", async () => {
    await dropTable("FilesPages");
    await createTable("FilesPages");
    for (const pk of ["a", "b", "c"]) await insertMany("FilesPages", pk, Array.from({ length: 1100 }, (_, index) => ({ RowKey: String(index).padStart(4, "0"), Number: index })));
    const page = await signedIn(browser, `#/tables/FilesPages?filter=${encodeURIComponent("PartitionKey ge 'b'")}`);
    await page.locator("[data-row='0']").waitFor();
    await more(page, "Export to a file");
    await page.getByRole("dialog").getByText("PartitionKey ge 'b'").waitFor();
    await page.evaluate(() => {
      window.seen = [];
      new MutationObserver(() => {
        const text = document.querySelector(".progress .mono")?.textContent;
        if (text) window.seen.push(Number(text.replace(/,/g, "").match(/^\d+/)?.[0]));
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export", exact: true }).click()]);
    const path = join(folder, "pages.jsonl");
    await download.saveAs(path);
    await page.getByText("2,200 entities exported").waitFor();
    const keys = readFileSync(path, "utf8").trim().split("\n").map((line) => JSON.parse(line).PartitionKey);
    assert.deepEqual([keys.length, new Set(keys)], [2200, new Set(["b", "c"])]);
    const seen = await page.evaluate(() => window.seen);
    assert.ok(seen.some((rows) => rows > 0 && rows < 2200) && seen.every((rows, index) => index === 0 || rows >= seen[index - 1]), String(seen));
  });

  await check("files: lines that can't be stored are named, the others are stored", async () => {
    await dropTable("FilesBad");
    await createTable("FilesBad");
    const path = join(folder, "bad.jsonl");
    writeFileSync(path, ['{"PartitionKey":"p","RowKey":"1","A":1}', "no json", '{"PartitionKey":"p","A":1}', '{"PartitionKey":"p","RowKey":"a/b"}', '{"PartitionKey":"p","RowKey":"2","A":2}'].join("\n"));
    const page = await signedIn(browser, "#/tables/FilesBad");
    await page.getByRole("button", { name: "Import a file" }).click();
    await page.getByLabel("File", { exact: true }).setInputFiles(path);
    await page.getByRole("button", { name: "Import", exact: true }).click();
    await page.getByText("3 lines were rejected.").waitFor();
    const said = await page.getByRole("dialog").innerText();
    for (const part of ["line 2: this line is no JSON object", "line 3: PartitionKey and RowKey", "line 4: A key can't contain /"]) assert.ok(said.includes(part), said);
    assert.deepEqual((await entities("FilesBad")).map((row) => row.RowKey), ["1", "2"]);
  });

  await check("files: an import shows how far it is", async () => {
    await dropTable("FilesMany");
    await createTable("FilesMany");
    const path = join(folder, "many.jsonl");
    writeFileSync(path, Array.from({ length: 6000 }, (_, index) => JSON.stringify({ PartitionKey: `p${index % 7}`, RowKey: String(index), Text: "x".repeat(200) })).sort().join("\n"));
    const page = await signedIn(browser, "#/tables/FilesMany");
    await page.getByRole("button", { name: "Import a file" }).click();
    await page.getByLabel("File", { exact: true }).setInputFiles(path);
    await page.evaluate(() => {
      window.seen = [];
      new MutationObserver(() => {
        const bar = document.querySelector("progress");
        if (bar) window.seen.push(bar.value);
      }).observe(document.body, { subtree: true, childList: true, attributes: true });
    });
    await page.getByRole("button", { name: "Import", exact: true }).click();
    await page.getByText("6,000 entities imported into FilesMany.").waitFor();
    const seen = await page.evaluate(() => window.seen);
    assert.ok(seen.length > 0 && seen.every((value, index) => index === 0 || value >= seen[index - 1]), String(seen));
  });
}
