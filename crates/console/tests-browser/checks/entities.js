// Entities: the form, JSON, clone, delete and undo, code.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { signedIn } from "../lab.js";
import { createTable, dropTable, entities, entity, insert, insertMany, tables } from "../service.js";

const table = "EntityRows";
const typed = {
  PartitionKey: "p",
  RowKey: "it's 100% (odd)",
  Text: "line one\nline two",
  Whole: 7,
  "Long@odata.type": "Edm.Int64",
  Long: "9007199254740993",
  Share: 1.5,
  "Exact@odata.type": "Edm.Double",
  Exact: 1,
  Yes: true,
  "When@odata.type": "Edm.DateTime",
  When: "2026-01-31T18:30:00.1234567Z",
  "Id@odata.type": "Edm.Guid",
  Id: "7c9e6679-7425-40de-944b-e07fc1f90ae7",
  "Bytes@odata.type": "Edm.Binary",
  Bytes: "AAECAw==",
};
/** As stored, without what the service adds. */
const plain = (found) => Object.fromEntries(Object.entries(found ?? {}).filter(([name]) => !name.startsWith("odata.") && !name.startsWith("Timestamp")));

export default async function (check, browser) {
  await dropTable(table);
  await createTable(table);
  const open = async (rk) => {
    const page = await signedIn(browser, `#/tables/${table}?filter=${encodeURIComponent(`RowKey eq '${rk.replace(/'/g, "''")}'`)}`);
    // A row that is drawn again between two clicks is not clicked twice.
    await page.getByText("1 entity", { exact: true }).waitFor();
    await page.locator("[data-row='0'] [data-column='1']").dblclick();
    await page.getByRole("dialog").waitFor();
    return page;
  };
  const save = async (page) => {
    await page.getByRole("dialog").getByRole("button", { name: /^(Save|Add)$/ }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  };

  await check("entity: a new one, with an editor for every type", async () => {
    const page = await signedIn(browser, `#/tables/${table}`);
    await page.getByRole("button", { name: "Add entity" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("PartitionKey", { exact: true }).fill("p");
    await dialog.getByLabel("RowKey", { exact: true }).fill("new");
    const values = [
      ["T", "String", "a text"],
      ["I", "Int32", "-5"],
      ["L", "Int64", "9007199254740993"],
      ["D", "Double", "2"],
      ["B", "Boolean", "true"],
      ["W", "DateTime", "2026-01-31T18:30:00Z"],
      ["G", "Guid", "7c9e6679-7425-40de-944b-e07fc1f90ae7"],
      ["X", "Binary", "AAECAw=="],
    ];
    for (const [name, type, text] of values) {
      await dialog.getByRole("button", { name: "Add property" }).click();
      await dialog.getByLabel("Name").last().fill(name);
      await dialog.getByLabel(`Type of ${name}`).selectOption(type);
      const editor = dialog.getByLabel(`Value of ${name}`);
      if (type === "Boolean") await editor.check();
      else await editor.fill(text);
    }
    await save(page);
    const found = plain(await entity(table, "p", "new"));
    assert.deepEqual([found.T, found.I, found.L, found.D, found.B, found.G, found.X], ["a text", -5, "9007199254740993", 2, true, values[6][2], "AAECAw=="]);
    assert.deepEqual(["L", "W", "G", "X"].map((name) => found[`${name}@odata.type`]), ["Edm.Int64", "Edm.DateTime", "Edm.Guid", "Edm.Binary"]);
    const raw = (await tables("GET", `/${table}(PartitionKey='p',RowKey='new')`)).text;
    assert.match(raw, /"D":2\.0/, "a Double stays a Double");
    await page.getByRole("gridcell", { name: "new", exact: true }).waitFor();
  });

  await check("entity: what is wrong is said at its editor, and nothing is sent", async () => {
    await insert(table, { PartitionKey: "p", RowKey: "wrong", Whole: 1 });
    const page = await open("wrong");
    await page.getByLabel("Value of Whole").fill("1.5");
    await page.getByText("Write a whole number.").waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    assert.equal(await page.getByRole("dialog").isVisible(), true);
    assert.equal((await entity(table, "p", "wrong")).Whole, 1);
  });

  await check("entity: saved without a change, every type and value stays", async () => {
    await insert(table, typed);
    const before = plain(await entity(table, typed.PartitionKey, typed.RowKey.replace(/'/g, "''")));
    const page = await open(typed.RowKey);
    await save(page);
    await page.getByText("The entity was saved.").waitFor();
    const after = plain(await entity(table, typed.PartitionKey, typed.RowKey.replace(/'/g, "''")));
    assert.deepEqual(after, before);
    assert.equal(before.Long, "9007199254740993");
  });

  await check("entity: the JSON view shows and takes the same entity", async () => {
    await insert(table, { PartitionKey: "p", RowKey: "json", Whole: 1, Share: 2.5 });
    const page = await open("json");
    await page.getByRole("tab", { name: "JSON" }).click();
    const editor = page.getByLabel("The entity as JSON");
    const text = await editor.inputValue();
    assert.match(text, /"Whole": 1/);
    await editor.fill(text.replace('"Whole": 1', '"Whole": 2, "Added@odata.type": "Edm.Int64", "Added": "5"'));
    await save(page);
    const found = plain(await entity(table, "p", "json"));
    assert.deepEqual([found.Whole, found.Share, found.Added, found["Added@odata.type"]], [2, 2.5, "5", "Edm.Int64"]);
  });

  await check("entity: bad JSON is refused in words", async () => {
    await insert(table, { PartitionKey: "p", RowKey: "bad-json", Whole: 1 });
    const page = await open("bad-json");
    await page.getByRole("tab", { name: "JSON" }).click();
    await page.getByLabel("The entity as JSON").fill('{"PartitionKey":"p","RowKey":"bad-json","List":[1]}');
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("List is a list; a property holds one value.").waitFor();
  });

  await check("entity: a change of somebody else is not overwritten unasked", async () => {
    await insert(table, { PartitionKey: "p", RowKey: "raced", Whole: 1 });
    const page = await open("raced");
    await tables("PUT", `/${table}(PartitionKey='p',RowKey='raced')`, JSON.stringify({ Whole: 2 }));
    await page.getByLabel("Value of Whole").fill("3");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Someone changed this entity after you opened it.").waitFor();
    assert.equal((await entity(table, "p", "raced")).Whole, 2);
    await page.getByRole("button", { name: "Show theirs" }).click();
    await page.waitForFunction(() => document.querySelector('[aria-label="Value of Whole"]').value === "2");
    await page.getByLabel("Value of Whole").fill("4");
    await save(page);
    assert.equal((await entity(table, "p", "raced")).Whole, 4);
  });

  await check("entity: a clone has the same properties and another key", async () => {
    await insert(table, { ...typed, RowKey: "origin" });
    const page = await open("origin");
    await page.getByRole("button", { name: "Clone" }).click();
    await page.getByRole("dialog", { name: `Clone into ${table}` }).waitFor();
    assert.equal(await page.getByLabel("RowKey", { exact: true }).inputValue(), "origin-copy");
    await page.getByLabel("RowKey", { exact: true }).fill("cloned");
    await save(page);
    const [origin, cloned] = [plain(await entity(table, "p", "origin")), plain(await entity(table, "p", "cloned"))];
    assert.deepEqual({ ...cloned, RowKey: "origin" }, origin);
  });

  await check("entity: several are deleted, and undo brings them back whole", async () => {
    await dropTable("UndoRows");
    await createTable("UndoRows");
    for (const pk of ["a", "b"]) await insertMany("UndoRows", pk, Array.from({ length: 150 }, (_, index) => ({ ...typed, PartitionKey: pk, RowKey: String(index).padStart(3, "0") })));
    const before = (await entities("UndoRows")).map(plain);
    const page = await signedIn(browser, "#/tables/UndoRows");
    await page.locator("[data-row='0']").waitFor();
    await page.getByLabel(/^Select all/).click();
    await page.getByText("300 entities selected").waitFor();
    await page.getByRole("button", { name: "Delete them" }).click();
    await page.getByText("300 entities deleted from UndoRows.").waitFor();
    assert.deepEqual(await entities("UndoRows"), []);
    await page.getByRole("button", { name: "Undo", exact: true }).click();
    await page.getByText("300 entities are back in UndoRows.").waitFor();
    assert.deepEqual((await entities("UndoRows")).map(plain), before);
    await page.locator("[data-row='20']").waitFor();
  });

  await check("entity: the query and the entity as code in five languages", async () => {
    await insert(table, { ...typed, RowKey: "code" });
    const page = await open("code");
    await page.getByRole("tab", { name: "Code" }).click();
    for (const [language, part] of [["curl", "curl -sS -X PUT"], ["Python", "upsert_entity"], ["C#", "UpsertEntityAsync"], ["JavaScript", "upsertEntity"], ["Rust", "upsert_replace"]]) {
      await page.getByRole("button", { name: language, exact: true }).click();
      await page.getByRole("button", { name: "Copy", exact: true }).click();
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      assert.ok(copied.includes(part), copied);
      assert.ok(copied.includes("9007199254740993"), copied);
    }
    await page.keyboard.press("Escape");
    for (const [language, part] of [["curl", "--data-urlencode"], ["Python", "query_entities"], ["C#", "QueryAsync"], ["JavaScript", "listEntities"], ["Rust", ".query()"]]) {
      await page.getByRole("button", { name: "Copy as" }).click();
      await page.getByRole("menuitem", { name: language, exact: true }).click();
      await page.getByText(`The query as ${language} copied.`).waitFor();
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      assert.ok(copied.includes(part) && copied.includes("RowKey eq 'code'".slice(0, 6)), copied);
    }
  });

  await check("entity: the copied curl commands work with a token of the console", async () => {
    const owner = await signedIn(browser, "#/access");
    await owner.getByLabel("Table", { exact: true }).fill(table);
    for (const label of ["r read entities", "a add entities", "u update entities"]) await owner.getByLabel(label).setChecked(true);
    await owner.getByRole("button", { name: "Make the token" }).click();
    const token = (await owner.getByLabel("Token", { exact: true }).innerText()).trim();
    await insert(table, { ...typed, RowKey: "quote's end" });
    const page = await open("quote's end");
    await page.getByRole("tab", { name: "Code" }).click();
    await page.getByRole("button", { name: "Copy", exact: true }).click();
    const write = await page.evaluate(() => navigator.clipboard.readText());
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Copy as" }).click();
    await page.getByRole("menuitem", { name: "curl" }).click();
    await page.getByText("The query as curl copied.").waitFor();
    const read = await page.evaluate(() => navigator.clipboard.readText());
    const before = plain(await entity(table, "p", "quote''s end"));
    const run = (script) => execFileSync("bash", ["-c", script], { env: { ...process.env, SAS: token }, encoding: "utf8" });
    assert.equal(run(write), "");
    assert.deepEqual(plain(await entity(table, "p", "quote''s end")), before);
    assert.deepEqual(JSON.parse(run(read)).value.map((row) => row.RowKey), ["quote's end"]);
  });
}
