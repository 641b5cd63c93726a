// The same query, or the same write, in other languages. Credentials are never part of it: programs read a connection string
// from the environment, curl a token.

import { hasUnseen, UNSEEN } from "../lib/unseen.ts";
import { type Draft, type EdmType, type Value, writeEntity } from "./edm.ts";

export const LANGUAGES = ["curl", "Python", "C#", "JavaScript", "Rust"] as const;
export type Language = (typeof LANGUAGES)[number];

export interface QuerySnippet {
  endpoint: string;
  table: string;
  filter: string;
}

export interface EntitySnippet {
  endpoint: string;
  table: string;
  draft: Draft;
}

export const VARIABLE = "AZURE_STORAGE_CONNECTION_STRING";
/** In a terminal or an editor, a character of somebody's data that is not seen could make the copied code do or show something else. */
const code = (character: string, digits = 4): string => character.charCodeAt(0).toString(16).padStart(digits, "0");

/** For bash and zsh. */
export const shell = (text: string): string =>
  hasUnseen(text)
    ? `$'${text.replace(/[\\']/g, "\\$&").replace(UNSEEN, (found) => (found < "\u0080" ? `\\x${code(found, 2)}` : `\\u${code(found)}`))}'`
    : `'${text.replaceAll("'", `'\\''`)}'`;
/** A text that Python, C# and JavaScript read alike: JSON's quotes and escapes. */
export const quote = (text: string): string => JSON.stringify(text).replace(UNSEEN, (found) => `\\u${code(found)}`);
export const rust = (text: string): string => {
  if (hasUnseen(text)) return `"${text.replace(/[\\"]/g, "\\$&").replace(UNSEEN, (found) => `\\u{${code(found, 1)}}`)}"`;
  if (!/[\\"]/.test(text)) return `"${text}"`;
  let hashes = "#";
  while (text.includes(`"${hashes}`)) hashes += "#";
  return `r${hashes}"${text}"${hashes}`;
};

export function querySnippet(language: Language, { endpoint, table, filter }: QuerySnippet): string {
  switch (language) {
    case "curl": {
      const lines = [`# SAS: a token with the permission to read, from the page Access`, `curl -sS -G ${shell(`${endpoint}/${table}()`)}"?$SAS" \\`];
      if (filter) lines.push(`  --data-urlencode ${shell(`$filter=${filter}`)} \\`);
      lines.push(`  -H 'Accept: application/json;odata=minimalmetadata'`);
      return lines.join("\n");
    }
    case "Python":
      return `import os
from azure.data.tables import TableClient

table = TableClient.from_connection_string(os.environ["${VARIABLE}"], ${quote(table)})
for entity in table.${filter ? `query_entities(${quote(filter)})` : "list_entities()"}:
    print(entity)`;
    case "C#":
      return `using Azure.Data.Tables;

var table = new TableClient(Environment.GetEnvironmentVariable("${VARIABLE}"), ${quote(table)});
await foreach (var entity in table.QueryAsync<TableEntity>(${filter ? quote(filter) : ""}))
    Console.WriteLine($"{entity.PartitionKey} {entity.RowKey}");`;
    case "JavaScript":
      return `import { TableClient } from "@azure/data-tables";

const table = TableClient.fromConnectionString(process.env.${VARIABLE}, ${quote(table)}, { allowInsecureConnection: true });
for await (const entity of table.listEntities(${filter ? `{ queryOptions: { filter: ${quote(filter)} } }` : ""})) {
  console.log(entity);
}`;
    case "Rust":
      return `use partita_client::{Entity, TableService};

let service = TableService::from_connection_string(&std::env::var("${VARIABLE}")?)?;
let entities = service.table(${rust(table)})?.query()${filter ? `.filter(${rust(filter)})` : ""}.all::<Entity>().await?;
for entity in entities {
    println!("{:?}", entity.entity);
}`;
  }
}

export function entitySnippet(language: Language, { endpoint, table, draft }: EntitySnippet): string {
  const keys = [draft.partitionKey, draft.rowKey].map((key) => `'${encodeURIComponent(key.replaceAll("'", "''")).replaceAll("'", "%27")}'`);
  switch (language) {
    case "curl":
      return `# SAS: a token with the permissions to add and update, from the page Access
curl -sS -X PUT ${shell(`${endpoint}/${table}(PartitionKey=${keys[0]},RowKey=${keys[1]})`)}"?$SAS" \\
  -H 'Content-Type: application/json' \\
  --data-raw ${shell(writeEntity(draft))}`;
    case "Python":
      return `${pythonImports(draft)}
table = TableClient.from_connection_string(os.environ["${VARIABLE}"], ${quote(table)})
table.upsert_entity({
${lines(draft, (name, value) => `    ${quote(name)}: ${python(value)},`)}
}, mode="replace")`;
    case "C#":
      return `using Azure.Data.Tables;

var table = new TableClient(Environment.GetEnvironmentVariable("${VARIABLE}"), ${quote(table)});
await table.UpsertEntityAsync(new TableEntity(${quote(draft.partitionKey)}, ${quote(draft.rowKey)})
{
${draft.properties.map(([name, value]) => `    [${quote(name)}] = ${csharp(value)},`).join("\n")}
}, TableUpdateMode.Replace);`;
    case "JavaScript":
      return `import { TableClient } from "@azure/data-tables";

const table = TableClient.fromConnectionString(process.env.${VARIABLE}, ${quote(table)}, { allowInsecureConnection: true });
await table.upsertEntity({
  partitionKey: ${quote(draft.partitionKey)},
  rowKey: ${quote(draft.rowKey)},
${draft.properties.map(([name, value]) => `  ${quote(name)}: ${javascript(value)},`).join("\n")}
}, "Replace");`;
    case "Rust":
      return `use partita_client::{Entity, TableService};

let service = TableService::from_connection_string(&std::env::var("${VARIABLE}")?)?;
let entity = Entity::from_json(${rust(writeEntity(draft))}.as_bytes())?;
service.table(${rust(table)})?.upsert_replace(&entity).await?;`;
  }
}

function lines(draft: Draft, line: (name: string, value: Value) => string): string {
  const all: [string, Value][] = [
    ["PartitionKey", { type: "String", text: draft.partitionKey }],
    ["RowKey", { type: "String", text: draft.rowKey }],
    ...draft.properties,
  ];
  return all.map(([name, value]) => line(name, value)).join("\n");
}

function pythonImports(draft: Draft): string {
  const uses = (type: EdmType): boolean => draft.properties.some(([, value]) => value.type === type);
  const first = ["import os"];
  if (uses("Binary")) first.unshift("import base64");
  if (uses("Guid")) first.push("import uuid");
  return `${first.join("\n")}\nfrom azure.data.tables import TableClient${uses("Int64") || uses("DateTime") ? ", EntityProperty, EdmType" : ""}\n`;
}

function python({ type, text }: Value): string {
  switch (type) {
    case "String":
      return quote(text);
    case "Boolean":
      return text === "true" ? "True" : "False";
    case "Int64":
      return `EntityProperty(${text}, EdmType.INT64)`;
    case "Double":
      return Number.isFinite(Number(text)) ? (/[.eE]/.test(text) ? text : `${text}.0`) : `float("${text}")`;
    case "DateTime":
      // A datetime would lose the last digit of the service's times.
      return `EntityProperty("${text}", EdmType.DATETIME)`;
    case "Guid":
      return `uuid.UUID("${text}")`;
    case "Binary":
      return `base64.b64decode("${text}")`;
    default:
      return text;
  }
}

function csharp({ type, text }: Value): string {
  switch (type) {
    case "String":
      return quote(text);
    case "Int64":
      return `${text}L`;
    case "Double":
      if (text === "NaN") return "double.NaN";
      if (/Infinity/.test(text)) return text.startsWith("-") ? "double.NegativeInfinity" : "double.PositiveInfinity";
      return `${text}d`;
    case "DateTime":
      return `DateTimeOffset.Parse("${text}")`;
    case "Guid":
      return `Guid.Parse("${text}")`;
    case "Binary":
      return `Convert.FromBase64String("${text}")`;
    default:
      return text;
  }
}

function javascript({ type, text }: Value): string {
  switch (type) {
    case "String":
      return quote(text);
    case "Boolean":
    case "Int32":
      return text;
    case "Int64":
      return `${text}n`;
    case "Binary":
      return `new Uint8Array(Buffer.from("${text}", "base64"))`;
    default:
      return `{ type: "${type}", value: ${type === "Double" && Number.isFinite(Number(text)) ? `"${text}"` : quote(text)} }`;
  }
}
