// The SAS maker, stored policies, CORS and service properties.

import assert from "node:assert/strict";
import { signedIn } from "../lab.js";
import { createTable, dropTable, insert, tables } from "../service.js";

const table = "AccessRows";

export default async function (check, browser) {
  await dropTable(table);
  await createTable(table);
  await insert(table, { PartitionKey: "p", RowKey: "1", A: 1 });

  await check("access: a token works for what it grants, and says what that is", async () => {
    const page = await signedIn(browser, "#/access");
    await page.getByLabel("Table", { exact: true }).fill(table);
    await page.getByRole("button", { name: "Make the token" }).click();
    const url = (await page.getByLabel("URL", { exact: true }).innerText()).trim();
    const said = await page.locator(".explanation").innerText();
    assert.match(said, /read/);
    assert.match(said, new RegExp(table, "i"));
    const read = await fetch(url.replace(/\?/, "()?"), { headers: { accept: "application/json;odata=nometadata" } });
    assert.equal(read.status, 200, await read.clone().text());
    const [base, token] = url.split("?");
    const write = await fetch(`${base}?${token}`, { method: "POST", headers: { "content-type": "application/json" }, body: '{"PartitionKey":"p","RowKey":"2"}' });
    assert.equal(write.status, 403);
  });

  await check("access: a stored policy is added, kept and removed", async () => {
    const page = await signedIn(browser, `#/access?tab=policies&of=table%2F${table}`);
    await page.getByRole("button", { name: "Add a policy" }).click();
    await page.getByLabel("Name").fill("readers");
    await page.getByLabel("Expires").fill("2030-01-01T00:00:00Z");
    await page.getByLabel("a add entities").check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(`The policies of ${table} were saved.`).waitFor();
    const stored = (await tables("GET", `/${table}?comp=acl`)).text;
    assert.match(stored, /<Id>readers<\/Id>.*<Expiry>2030-01-01T00:00:00[^<]*<\/Expiry><Permission>ra<\/Permission>/);
    await page.getByRole("button", { name: "Remove policy 1" }).click();
    await page.getByRole("button", { name: "Save" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".toast").length > 1);
    assert.doesNotMatch((await tables("GET", `/${table}?comp=acl`)).text, /readers/);
  });

  await check("access: what the service refuses is shown", async () => {
    const page = await signedIn(browser, `#/access?tab=policies&of=table%2F${table}`);
    await page.getByRole("button", { name: "Add a policy" }).click();
    await page.getByLabel("Name").fill("late");
    await page.getByLabel("Expires").fill("soon");
    await page.getByRole("button", { name: "Save" }).click();
    assert.match(await page.getByRole("alert").innerText(), /Invalid/);
  });

  await check("access: a CORS rule and metrics are set, the others stay", async () => {
    const read = async () => (await tables("GET", "/?restype=service&comp=properties")).text;
    await tables("PUT", "/?restype=service&comp=properties", "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>false</Write><RetentionPolicy><Enabled>true</Enabled><Days>9</Days></RetentionPolicy></Logging><Cors/></StorageServiceProperties>", { "Content-Type": "application/xml" });
    const page = await signedIn(browser, "#/settings");
    await page.getByRole("button", { name: "Add a rule" }).click();
    await page.getByLabel("Origins").fill("https://a.example,https://b.example");
    await page.getByLabel("PUT", { exact: true }).check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The service properties were saved.").waitFor();
    const stored = await read();
    assert.match(stored, /<AllowedOrigins>https:\/\/a\.example,https:\/\/b\.example<\/AllowedOrigins>/);
    assert.match(stored, /<AllowedMethods>GET,PUT<\/AllowedMethods>/);
    assert.match(stored, /<Delete>true<\/Delete>/);
    assert.match(stored, /<Days>9<\/Days>/);
    await page.getByRole("button", { name: "Remove the rule" }).click();
    await page.getByRole("button", { name: "Save" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".toast").length > 1);
    assert.doesNotMatch(await read(), /a\.example/);
  });
}
