// Signing in and out.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { REBOUND, signedIn, startServer, violations, watch } from "../lab.js";
import { CONSOLE, KEY } from "../service.js";

export default async function (check, browser) {
  async function fresh() {
    await browser.clearCookies();
    const page = await browser.newPage();
    watch(page);
    await page.goto(`${CONSOLE}/`);
    await page.getByRole("heading", { name: "Partita" }).waitFor();
    return page;
  }
  const isIn = (page) => page.getByRole("navigation", { name: "Pages" }).waitFor();
  const fill = async (page, tab, fields) => {
    await page.getByRole("tab", { name: tab }).click();
    for (const [label, text] of Object.entries(fields)) await page.getByLabel(label, { exact: true }).fill(text);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
  };

  await check("sign-in: the development account opens at once", async () => {
    const page = await fresh();
    await page.getByRole("button", { name: "Open the development account" }).click();
    await isIn(page);
    await page.getByText("devstoreaccount1").waitFor();
    assert.deepEqual(await violations(page), []);
  });

  await check("sign-in: with a key", async () => {
    const page = await fresh();
    await fill(page, "Key", { Account: "devstoreaccount1", Key: KEY });
    await isIn(page);
  });

  await check("sign-in: with a connection string", async () => {
    const page = await fresh();
    await fill(page, "Connection string", { "Connection string": `DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=${KEY};` });
    await isIn(page);
  });

  await check("sign-in: a wrong key is refused in words", async () => {
    const page = await fresh();
    await fill(page, "Key", { Account: "devstoreaccount1", Key: "AAAA" });
    const said = await page.getByRole("alert").innerText();
    assert.match(said, /key/i);
  });

  await check("sign-in: with a SAS, and only what it permits", async () => {
    const owner = await signedIn(browser, "#/access");
    await owner.getByRole("radio", { name: "The account" }).check();
    for (const name of [/objects/, /containers/, /the service/, /^l list/]) await owner.getByRole("checkbox", { name }).setChecked(true);
    await owner.getByRole("button", { name: "Make the token" }).click();
    const token = await owner.getByLabel("Token", { exact: true }).innerText();
    const page = await fresh();
    await fill(page, "SAS", { "SAS URL or token": `?${token.trim()}`, Account: "devstoreaccount1" });
    await isIn(page);
    await page.getByText("shared access signature").waitFor();
    assert.equal(await page.getByRole("link", { name: "Access" }).count(), 0);
    await page.getByRole("button", { name: "New table" }).first().click();
    await page.getByLabel("Name").fill("NotAllowed");
    await page.getByRole("button", { name: "Create" }).click();
    assert.match(await page.getByRole("dialog").getByRole("alert").innerText(), /Authorization/);
  });

  await check("sign-in: the administration's token shows the server and no data", async () => {
    const token = "an-administrators-token-of-a-test";
    const server = await startServer("--in-memory", "--admin-token", token);
    try {
      const page = await browser.newPage();
      watch(page);
      await page.goto(`${server.address}/`);
      await fill(page, "Admin", { "Administration token": "a-wrong-administrators-token" });
      assert.match(await page.getByRole("alert").innerText(), /token/i);
      await fill(page, "Admin", { "Administration token": token });
      await isIn(page);
      await page.getByText("Administrator", { exact: true }).waitFor();
      assert.deepEqual(await page.getByRole("navigation", { name: "Pages" }).getByRole("link").allInnerTexts(), ["Live", "Cluster", "Server"]);
      await page.getByRole("region", { name: "Health" }).getByText("Healthy").waitFor();
      await page.getByText("only the owner of an account sees its partitions").waitFor();
      await page.getByRole("link", { name: "Server" }).click();
      await page.getByLabel("Find a setting").fill("admin-token");
      await page.getByRole("row").filter({ hasText: "admin-token" }).getByText("(hidden)").waitFor();
      assert.ok(!(await page.content()).includes(token));
      const data = await page.evaluate(async () => (await fetch("/api/forward/table/Tables")).status);
      assert.equal(data, 403);
      // A member of an account is no administrator of a server with a token.
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByRole("button", { name: "Open the development account" }).click();
      await isIn(page);
      assert.equal(await page.getByRole("link", { name: "Server" }).count(), 0);
    } finally {
      server.stop();
    }
  });

  await check("sign-in: a name that was pointed at this machine gets no page and no data", async () => {
    const page = await browser.newPage(); // not watched: the refusals are what is wanted
    const strange = CONSOLE.replace("127.0.0.1", REBOUND);
    for (const path of ["/", "/console/", "/api/session", "/api/tables", "/api/status", "/metrics"]) {
      const answer = await page.goto(strange + path);
      assert.equal(answer.status(), 421, path);
    }
  });

  await check("sign-in: scripts can't read the session, and it ends", async () => {
    const page = await fresh();
    await page.getByRole("button", { name: "Open the development account" }).click();
    await isIn(page);
    assert.equal(await page.evaluate(() => document.cookie), "");
    const [cookie] = await browser.cookies(CONSOLE);
    assert.equal(cookie.httpOnly, true);
    assert.equal(cookie.sameSite, "Strict");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Partita" }).waitFor();
    const again = await page.request.get(`${CONSOLE}/api/tables`, { headers: { cookie: `${cookie.name}=${cookie.value}` } });
    assert.equal(again.status(), 401);
  });

  await check("sign-in: a session that is over leads back to the sign-in page", async () => {
    const page = await signedIn(browser);
    await page.getByRole("button", { name: "New table" }).first().waitFor();
    await browser.clearCookies();
    // The page may notice it before the click.
    await page.evaluate(() => void (location.hash = "#/queues"));
    await page.getByText("The session has ended").waitFor();
  });

  await check("sign-in: pages of other sites can neither read nor change anything", async () => {
    const inside = await signedIn(browser);
    const site = createServer((_, answer) => answer.setHeader("Content-Type", "text/html").end("<!doctype html><title>elsewhere</title>"));
    site.listen(0, "127.0.0.1");
    await once(site, "listening");
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${site.address().port}`);
    const results = await page.evaluate(async (address) => {
      const outcomes = [];
      for (const [path, request] of [
        ["/api/session", { credentials: "include" }],
        ["/api/tables", { credentials: "include", mode: "no-cors" }],
        ["/api/forward/table/Tables", { method: "POST", credentials: "include", mode: "no-cors", body: '{"TableName":"FromElsewhere"}', headers: { "content-type": "text/plain" } }],
      ]) {
        try {
          const answer = await fetch(address + path, request);
          outcomes.push(answer.type === "opaque" ? "opaque" : await answer.text());
        } catch {
          outcomes.push("blocked");
        }
      }
      return outcomes;
    }, CONSOLE);
    site.close();
    assert.deepEqual(results, ["blocked", "blocked", "blocked"]);
    await inside.reload();
    await isIn(inside);
    assert.equal(await inside.getByRole("link", { name: "FromElsewhere" }).count(), 0);
  });
}
