// The live page, the cluster page, the server page.

import assert from "node:assert/strict";
import { faults, go, signedIn } from "../lab.js";
import { blobs, CONSOLE, createTable, dropTable, entities, entity, freshContainer, getBlob, insert, putBlob } from "../service.js";

const table = "LiveRows";

export default async function (check, browser) {
  await dropTable(table);
  await createTable(table);
  await insert(table, { PartitionKey: "hot one", RowKey: "1", A: 1 });
  /** Asks for one entity over and over until the page shows what is waited for. */
  const load = async (page, until) => {
    let isDone = false;
    const waited = until(page).finally(() => (isDone = true));
    waited.catch(() => undefined); // it is awaited below
    while (!isDone) {
      for (let index = 0; index < 20; index += 1) await entity(table, "hot one", "1");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return waited;
  };

  await check("live: throughput and latency are drawn second by second", async () => {
    const page = await signedIn(browser, "#/live");
    await page.getByText("connected", { exact: true }).waitFor();
    await load(page, (page) =>
      page.waitForFunction(() => {
        const paths = [...document.querySelectorAll(".chart .line.one")].map((path) => path.getAttribute("d") ?? "");
        return paths.length >= 4 && paths.slice(0, 2).every((d) => (d.match(/L/g) ?? []).length >= 2);
      }),
    );
    const label = await page.getByRole("img", { name: /^Throughput/ }).getAttribute("aria-label");
    assert.match(label, /requests [\d.k]+ \/s/);
  });

  await check("live: the heat map shows the partition that is asked for most", async () => {
    const page = await signedIn(browser, "#/live");
    await load(page, (page) => page.locator(".heat tbody tr").filter({ hasText: "hot one" }).waitFor());
    await load(page, (page) => page.waitForFunction(() => !!document.querySelector(".squares .heat-5, .squares .heat-4")));
    await page.locator(".heat a").filter({ hasText: "hot one" }).click();
    await page.locator("[data-row='0']").getByText("hot one").waitFor();
  });

  await check("live: a blob and a container that are asked for often lead to their pages", async () => {
    const container = "live-blobs";
    await freshContainer(container);
    await putBlob(container, "dir/hot blob.txt", "warm");
    const ask = async (label) => {
      const page = await signedIn(browser, "#/live");
      const link = page.locator(".heat a").filter({ hasText: `${container} ${label}` });
      for (let tries = 0; tries < 100 && !(await link.isVisible()); tries += 1) {
        for (let index = 0; index < 40; index += 1) await getBlob(container, "dir/hot blob.txt");
        for (let index = 0; index < 40; index += 1) await blobs("GET", { container, query: "restype=container&comp=list" });
        await page.waitForTimeout(100);
      }
      await link.click();
      return page;
    };
    const blob = await ask("dir/hot blob.txt");
    await blob.getByLabel("The content as text").getByText("warm").waitFor();
    const list = await ask("container");
    await list.locator("a.entry").filter({ hasText: "dir" }).waitFor();
  });

  await check("live: the tail shows requests as they end, and filters them", async () => {
    const page = await signedIn(browser, "#/live");
    await page.getByText("connected", { exact: true }).waitFor();
    const row = page.locator(".tail tbody tr").first();
    await load(page, () => row.waitFor());
    await page.getByLabel("Outcome").selectOption("refused");
    const ask = async () => {
      for (let index = 0; index < 3; index += 1) await entities("NoSuchTableHere");
    };
    // At most fifty requests a second are told, and what came before may have used them up.
    const refused = page.locator(".tail tbody tr").filter({ hasText: "404" }).first();
    for (let tries = 0; tries < 200 && !(await refused.isVisible()); tries += 1) {
      await ask();
      await page.waitForTimeout(300);
    }
    await refused.waitFor();
    const states = await page.locator(".tail .status").allInnerTexts();
    assert.deepEqual(states.filter((text) => !/^4\d\d$/.test(text)), []);
    await page.getByLabel("Find requests").fill("NoSuchTableHere");
    await page.locator(".tail tbody tr").filter({ hasText: "NoSuchTableHere" }).first().waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    const before = await page.locator(".tail tbody tr").count();
    await ask();
    await page.waitForTimeout(1500);
    assert.equal(await page.locator(".tail tbody tr").count(), before);
  });

  await check("live: the store's health is there", async () => {
    const page = await signedIn(browser, "#/live");
    await page.getByRole("region", { name: "Health" }).getByText("Healthy").waitFor();
    await page.getByRole("meter", { name: "Connections" }).waitFor();
  });

  await check("live: what is above fifty requests a second is counted and left out", async () => {
    const page = await signedIn(browser, "#/live");
    await page.getByText("connected", { exact: true }).waitFor();
    const left = page.getByText(/[\d,]+ requests? (was|were) left out: at most 50 a second are shown\./);
    for (let tries = 0; tries < 200 && !(await left.isVisible()); tries += 1) {
      await Promise.all(Array.from({ length: 200 }, () => entity(table, "hot one", "1")));
      await page.waitForTimeout(200);
    }
    await left.waitFor();
    assert.ok((await page.locator(".tail tbody tr").count()) <= 200, "the list is bounded");
  });

  await check("cluster: servers with their slots, nodes and segments; or a single server says so", async () => {
    const { cluster } = await (await fetch(`${CONSOLE}/api/status`)).json();
    const page = await signedIn(browser, "#/cluster");
    if (!cluster) {
      await page.getByRole("heading", { name: "A single server" }).waitFor();
      return;
    }
    const section = (title) => page.locator("section").filter({ has: page.getByRole("heading", { name: title }) });
    await page.getByText(`Keyspace ${cluster.keyspace}`).waitFor();
    await section("Servers").getByRole("cell", { name: `${cluster.slot} (this one)` }).waitFor();
    await section("Servers").getByRole("cell", { name: "accepted" }).first().waitFor();
    for (const node of cluster.nodes) {
      const row = section("Nodes").getByRole("row").filter({ hasText: node.address });
      await row.getByRole("cell", { name: "up", exact: true }).waitFor();
      await row.getByRole("cell", { name: node.datacenter, exact: true }).waitFor();
    }
    const segments = section("Directory segments").getByRole("row").filter({ hasText: `devstoreaccount1/${table}` });
    // The server reads the directory once a second, and the table is new.
    for (let tries = 0; tries < 60 && !(await segments.first().isVisible()); tries += 1) {
      await page.getByRole("button", { name: "Read again" }).click();
      await page.waitForTimeout(500);
    }
    assert.deepEqual((await segments.getByRole("cell").allInnerTexts()).slice(1), ["1"]);
    assert.deepEqual(await faults(page), []);
  });

  await check("server: a freeze is shown where an operator looks, until it is thawed", async () => {
    const page = await signedIn(browser, "#/server");
    const command = async (name) => {
      await page.getByRole("button", { name, exact: true }).click();
      await page.getByRole("dialog").getByRole("button", { name, exact: true }).click();
      await page.getByRole("dialog").waitFor({ state: "detached" });
    };
    try {
      await command("Freeze writes");
      await page.getByText(/^frozen since .*: writes are refused$/).waitFor();
      await go(page, "#/live");
      await page.getByRole("region", { name: "Health" }).getByText("Ready, with remarks").waitFor();
      await go(page, "#/server");
    } finally {
      await command("Thaw writes");
    }
    await page.getByText(/^frozen since .*: writes are refused$/).waitFor({ state: "detached" });
    await insert(table, { PartitionKey: "thawed", RowKey: String(Date.now()) });
  });

  await check("server: a command that fails says why", async () => {
    const { store } = await (await fetch(`${CONSOLE}/api/status`)).json();
    if (store.kind === "embedded") return;
    const page = await signedIn(browser, "#/server");
    await page.getByRole("button", { name: "Checkpoint", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Checkpoint", exact: true }).click();
    assert.match(await page.getByRole("dialog").getByRole("alert").innerText(), /\w{4,}/);
  });

  await check("server: settings in force, secrets hidden, and commands", async () => {
    const page = await signedIn(browser, "#/server");
    await page.getByLabel("Find a setting").fill("listen");
    await page.getByRole("cell", { name: "listen", exact: true }).waitFor();
    await page.getByRole("button", { name: "Reload accounts" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Reload accounts" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });
}
