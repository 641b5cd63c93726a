// Stored data is shown and never run.

import assert from "node:assert/strict";
import { go, signedIn, violations } from "../lab.js";
import { CONSOLE, createTable, dropTable, insert, putMessage, queues } from "../service.js";

const table = "HostileRows";
const ATTACKS = [
  "<script>window.pwned=1</script>",
  "<img src=x onerror=window.pwned=1>",
  "\"><svg onload=window.pwned=1>",
  "javascript:window.pwned=1",
  "{{constructor.constructor('window.pwned=1')()}}",
  "</textarea><script>window.pwned=1</script>",
  "' onmouseover='window.pwned=1",
  "\u202e\u0000<script>window.pwned=1</script>".replace("\u0000", ""),
  "__proto__",
];

export default async function (check, browser) {
  await dropTable(table);
  await createTable(table);
  for (const [index, attack] of ATTACKS.entries()) {
    const key = attack.replace(/[/\\#?]/g, "_");
    await insert(table, { PartitionKey: `a${index} ${key}`, RowKey: key, Text: attack, constructor: attack, toString: attack, __html: attack, "Bytes@odata.type": "Edm.Binary", Bytes: Buffer.from(attack).toString("base64") });
  }
  await queues("PUT", "/hostile");
  await queues("DELETE", "/hostile/messages");
  for (const attack of ATTACKS) await putMessage("hostile", JSON.stringify({ attack }));
  for (const attack of ATTACKS.slice(0, 3)) await putMessage("hostile", Buffer.from(attack).toString("base64"));

  await check("hostile: entities full of HTML and script run nothing, on any page", async () => {
    const page = await signedIn(browser);
    page.on("dialog", (dialog) => dialog.dismiss());
    await go(page, `#/tables/${table}`);
    await page.getByText("<script>window.pwned=1</script>").first().waitFor();
    for (let row = 0; row < ATTACKS.length; row += 1) {
      await page.locator(`[data-row='${row}'] [data-column='0']`).dblclick();
      await page.getByRole("dialog").waitFor();
      for (const tab of ["JSON", "Code", "Form"]) await page.getByRole("tab", { name: tab }).click();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    await page.getByRole("combobox", { name: "Filter" }).fill("Text eq '<script>window.pwned=1</script>'");
    await page.keyboard.press("Enter");
    await page.getByText("1 entity", { exact: true }).waitFor();
    await go(page, "#/queues/hostile");
    await page.getByText("onerror").first().waitFor();
    await go(page, `#/tables/${encodeURIComponent("<img src=x onerror=window.pwned=1>")}?filter=${encodeURIComponent("<script>window.pwned=1</script>")}`);
    await page.getByRole("combobox", { name: "Filter" }).waitFor();
    await go(page, "#/live");
    await page.waitForTimeout(2500);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.deepEqual(await violations(page), []);
    assert.equal(await page.locator("img, main script, iframe, object").count(), 0);
  });

  await check("hostile: the policy is as strict as promised", async () => {
    const page = await browser.newPage(); // not watched: the block is what is wanted
    await page.goto(`${CONSOLE}/console/`);
    const answer = await page.request.get(`${CONSOLE}/console/`);
    const policy = answer.headers()["content-security-policy"];
    for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"]) assert.ok(policy.includes(part), policy);
    assert.equal(answer.headers()["x-content-type-options"], "nosniff");
    const blocked = await page.evaluate(() => {
      try {
        document.body.innerHTML = "<b>x</b>";
        return "written";
      } catch (error) {
        return error.name;
      }
    });
    assert.equal(blocked, "TypeError");
  });
}
