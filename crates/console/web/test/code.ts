// Code as the console copies it, of an entity with every type and with what is hard to quote. The suites of the SDKs and of our
// client run these files; `npm run code` writes them, and the tests here compare them.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Draft, writeEntity } from "../src/model/edm.ts";
import { entitySnippet, LANGUAGES, querySnippet } from "../src/model/snippets.ts";

const draft: Draft = {
  partitionKey: "it's",
  rowKey: `a"b $HOME \u202e%41 é`,
  properties: [
    ["Text", { type: "String", text: `'; rm -rf "$HOME" \`x\` "#\\n\n\r\t\u0007\u0085\u2028\u202e\ufeff 🎵 {0} %s` }],
    ["Empty", { type: "String", text: "" }],
    ["Whole", { type: "Int32", text: "-5" }],
    ["Long", { type: "Int64", text: "9007199254740993" }],
    ["Exact", { type: "Double", text: "1" }],
    ["Small", { type: "Double", text: "1.5e-7" }],
    ["Never", { type: "Double", text: "NaN" }],
    ["Least", { type: "Double", text: "-Infinity" }],
    ["Yes", { type: "Boolean", text: "true" }],
    ["When", { type: "DateTime", text: "2026-01-31T18:30:00.1234567Z" }],
    ["Id", { type: "Guid", text: "7c9e6679-7425-40de-944b-e07fc1f90ae7" }],
    ["Bytes", { type: "Binary", text: "AAECAw==" }],
    ["Ünïcode_1", { type: "String", text: "é" }],
  ],
};
const filter = `PartitionKey eq 'it''s' and Whole lt 0 and Empty eq ''`;
const RESULT = "Ok::<(), Box<dyn std::error::Error>>(())";

const ascii = (json: string): string => json.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** The files' contents, by name. */
function files(): Record<string, string> {
  const of = (language: (typeof LANGUAGES)[number]) => {
    const [endpoint, table] = ["http://127.0.0.1:10002/devstoreaccount1", `ConsoleCode${language.replace("#", "Sharp")}`];
    return { table, write: entitySnippet(language, { endpoint, table, draft }), read: querySnippet(language, { endpoint, table, filter }) };
  };
  const code = Object.fromEntries(LANGUAGES.map((language) => [language, of(language)]));
  const block = (text: string): string => `{\n${text}\n${RESULT}\n}\n`;
  return {
    "console_code.json": `${ascii(JSON.stringify({ entity: writeEntity(draft), code }, null, 2))}\n`,
    "console_write.rs.in": block(of("Rust").write),
    "console_read.rs.in": block(of("Rust").read),
  };
}

/** Names of the files that are not what the console copies. Writes them if it was asked to. */
export function stale(): string[] {
  const folder = join(process.cwd(), "../../../conformance/sdk/cases");
  const found = files();
  if (process.env.PARTITA_WRITE_CODE) for (const [name, text] of Object.entries(found)) writeFileSync(join(folder, name), text);
  return Object.keys(found).filter((name) => readFileSync(join(folder, name), "utf8") !== found[name]);
}
