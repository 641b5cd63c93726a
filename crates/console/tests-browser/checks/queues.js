// Queues: create, put, peek, clear, poison.

import assert from "node:assert/strict";
import { signedIn } from "../lab.js";
import { peekTexts, putMessage, queues } from "../service.js";

export default async function (check, browser) {
  const make = async (name) => {
    await queues("PUT", `/${name}`);
    await queues("DELETE", `/${name}/messages`);
  };

  await check("queues: one is made, gets a message and shows it", async () => {
    await queues("DELETE", "/made-here");
    const page = await signedIn(browser, "#/queues");
    const name = `made-${Date.now()}`;
    await page.getByRole("button", { name: "New queue" }).first().click();
    await page.getByLabel("Name").fill(name);
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("No visible messages").waitFor();
    await page.getByRole("button", { name: "Put a message" }).click();
    await page.getByLabel("Text").fill('{"task":"<ship> & bill"}');
    await page.getByRole("button", { name: "Put", exact: true }).click();
    await page.getByText('{"task":"<ship> & bill"}').waitFor();
    assert.deepEqual(await peekTexts(name), ['{"task":"<ship> & bill"}']);
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Delete the queue" }).click();
    await page.getByLabel(`Type ${name} to confirm`).fill(name);
    await page.getByRole("dialog").getByRole("button", { name: "Delete the queue" }).click();
    await page.getByText(`${name} was deleted.`).waitFor();
  });

  await check("queues: a peek takes nothing, and Base64 is shown as text", async () => {
    await make("peeked-here");
    await putMessage("peeked-here", Buffer.from("packed text").toString("base64"));
    const page = await signedIn(browser, "#/queues/peeked-here");
    await page.getByText("packed text").waitFor();
    await page.getByText("taken 0 times").waitFor();
    await page.getByRole("button", { name: "Peek again" }).click();
    await page.getByText("taken 0 times").waitFor();
    assert.equal((await peekTexts("peeked-here")).length, 1);
  });

  await check("queues: a queue is cleared only if its name was typed", async () => {
    await make("cleared-here");
    await putMessage("cleared-here", "one");
    const page = await signedIn(browser, "#/queues/cleared-here");
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Clear the queue" }).click();
    const clear = page.getByRole("dialog").getByRole("button", { name: "Clear the queue" });
    assert.equal(await clear.isDisabled(), true);
    await page.getByLabel("Type cleared-here to confirm").fill("cleared-here");
    await clear.click();
    await page.getByText("cleared-here was cleared.").waitFor();
    assert.deepEqual(await peekTexts("cleared-here"), []);
  });

  await check("queues: poison messages are pointed out and moved back", async () => {
    await make("steps");
    await make("steps-poison");
    for (const text of ["first", "second"]) await putMessage("steps-poison", text);
    const page = await signedIn(browser, "#/queues/steps");
    await page.getByText("2 messages failed too often and went to").waitFor();
    await page.getByRole("link", { name: "steps-poison" }).click();
    await page.getByRole("button", { name: "Move all to steps" }).click();
    await page.getByText("2 messages moved to steps.").waitFor();
    const left = await queues("GET", "/steps-poison?comp=metadata"); // those that are invisible count too
    assert.equal(left.headers.get("x-ms-approximate-messages-count"), "0");
    assert.deepEqual((await peekTexts("steps")).sort(), ["first", "second"]);
  });
}
