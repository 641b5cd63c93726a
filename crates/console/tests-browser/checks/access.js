// The SAS maker, stored policies, CORS and service properties.

import assert from "node:assert/strict";
import { signedIn } from "../lab.js";
import { createTable, dropTable, insert, putMessage, queues, tables } from "../service.js";

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

  await check("access: a token for a range of keys and of a policy reads that range, until the policy goes", async () => {
    for (const pk of ["a", "b", "c"]) await insert(table, { PartitionKey: pk, RowKey: "1", A: 1 });
    await tables("PUT", `/${table}?comp=acl`, "<SignedIdentifiers><SignedIdentifier><Id>lenders</Id><AccessPolicy><Expiry>2099-01-01T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>", { "Content-Type": "application/xml" });
    const page = await signedIn(browser, "#/access");
    await page.getByLabel("Table", { exact: true }).fill(table);
    await page.getByLabel("r read entities").uncheck();
    await page.getByLabel("Expires", { exact: true }).fill("");
    await page.getByText("Start, addresses, HTTPS, policy, range of keys").click();
    await page.getByLabel("Stored policy").fill("lenders");
    await page.getByLabel("First PartitionKey").fill("b");
    await page.getByLabel("Last PartitionKey").fill("b");
    await page.getByRole("button", { name: "Make the token" }).click();
    const url = (await page.getByLabel("URL", { exact: true }).innerText()).trim();
    const said = await page.locator(".explanation").innerText();
    assert.match(said, /from partition "b" to partition "b"/);
    assert.match(said, /"lenders" provides the terms/);
    const read = () => fetch(url.replace(/\?/, "()?"), { headers: { accept: "application/json;odata=nometadata" } });
    assert.deepEqual((await (await read()).json()).value.map((row) => row.PartitionKey), ["b"]);
    await tables("PUT", `/${table}?comp=acl`, "<SignedIdentifiers/>", { "Content-Type": "application/xml" });
    assert.equal((await read()).status, 403);
  });

  await check("access: a token for a queue peeks and takes nothing", async () => {
    await queues("PUT", "/sas-queue");
    await queues("DELETE", "/sas-queue/messages");
    await putMessage("sas-queue", "hello");
    const page = await signedIn(browser, "#/access");
    await page.getByRole("radio", { name: "One queue" }).check();
    await page.getByLabel("Queue", { exact: true }).fill("sas-queue");
    await page.getByRole("button", { name: "Make the token" }).click();
    const [base, token] = (await page.getByLabel("URL", { exact: true }).innerText()).trim().split("?");
    assert.match(await page.locator(".explanation").innerText(), /messages of queue sas-queue/);
    assert.match(await (await fetch(`${base}/messages?peekonly=true&${token}`)).text(), /hello/);
    assert.equal((await fetch(`${base}/messages?${token}`)).status, 403);
  });

  await check("access: what is refused as a token is said in words", async () => {
    const page = await signedIn(browser, "#/access");
    await page.getByLabel("Table", { exact: true }).fill(table);
    await page.getByLabel("Expires", { exact: true }).fill("tomorrow");
    await page.getByRole("button", { name: "Make the token" }).click();
    assert.match(await page.getByRole("alert").innerText(), /the expiry is "tomorrow"/);
  });

  await check("access: a policy of a queue is added", async () => {
    await queues("PUT", "/policy-queue");
    const page = await signedIn(browser, "#/access?tab=policies&of=queue%2Fpolicy-queue");
    await page.getByRole("button", { name: "Add a policy" }).click();
    await page.getByLabel("Name").fill("workers");
    await page.getByLabel("p take and delete messages").check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The policies of policy-queue were saved.").waitFor();
    assert.match((await queues("GET", "/policy-queue?comp=acl")).text, /<Id>workers<\/Id>.*<Permission>rp<\/Permission>/);
  });

  await check("access: request logs and metrics of queues are set", async () => {
    const read = async () => (await queues("GET", "/?restype=service&comp=properties")).text;
    await queues("PUT", "/?restype=service&comp=properties", "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics></StorageServiceProperties>");
    const page = await signedIn(browser, "#/settings");
    await page.getByRole("tab", { name: "Queues" }).click();
    await page.getByRole("group", { name: "Logged requests" }).getByLabel("write").check();
    await page.getByLabel("Delete logs after").check();
    await page.getByLabel("Days that logs are kept").fill("11");
    const hour = page.getByRole("group", { name: "Every hour" });
    await hour.getByLabel("On", { exact: true }).check();
    await hour.getByLabel("For each operation too").check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The service properties were saved.").waitFor();
    const stored = await read();
    assert.match(stored, /<Logging>.*<Write>true<\/Write>.*<Days>11<\/Days>.*<\/Logging>/);
    assert.match(stored, /<HourMetrics>.*<Enabled>true<\/Enabled><IncludeAPIs>true<\/IncludeAPIs>/);
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
