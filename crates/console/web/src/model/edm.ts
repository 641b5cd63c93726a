// Typed values of entities, as the service writes them in JSON and as people write them in editors. Knows no request.

export const EDM_TYPES = ["String", "Int32", "Int64", "Double", "Boolean", "DateTime", "Guid", "Binary"] as const;
export type EdmType = (typeof EDM_TYPES)[number];

/** A value in its canonical text: `7`, `1.5`, `true`, `2026-01-02T03:04:05Z`, base64. */
export interface Value {
  type: EdmType;
  text: string;
}

/** An entity as it came, with annotations. Values are read from it when they are shown. */
export type Raw = Record<string, unknown>;

export const SYSTEM = ["PartitionKey", "RowKey", "Timestamp"];
const ANNOTATION = "@odata.type";

/**
 * Reads a page. `JSON.parse` would turn the Double `1.0` into the Int32 `1`, so numbers with a point or an exponent are
 * wrapped first: `{"double":"1.0"}`. No value of an entity is an object otherwise.
 */
export function parsePage(text: string): { value: Raw[] } & Raw {
  return JSON.parse(wrapDoubles(text));
}

// A quote inside a text has a backslash before it, and no name ends with one: what follows `":` is a value.
const DOUBLE = /(?<!\\)":\s*(-?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+))(?=\s*[,}])/g;
const wrapDoubles = (text: string): string => text.replace(DOUBLE, '":{"double":"$1"}');

export function valueOf(raw: Raw, name: string): Value | undefined {
  const found = raw[name];
  if (found === undefined || found === null) return undefined;
  const annotated = raw[name + ANNOTATION];
  if (typeof found === "object") return { type: "Double", text: (found as { double: string }).double };
  if (typeof annotated === "string") return { type: annotated.replace("Edm.", "") as EdmType, text: String(found) };
  if (name === "Timestamp") return { type: "DateTime", text: String(found) };
  if (typeof found === "number") return { type: Number.isInteger(found) ? "Int32" : "Double", text: String(found) };
  if (typeof found === "boolean") return { type: "Boolean", text: String(found) };
  return { type: "String", text: String(found) };
}

/** Names of an entity's properties, without annotations; the system's own first. */
export function namesOf(raw: Raw): string[] {
  return Object.keys(raw).filter((name) => !name.includes("@") && !name.startsWith("odata."));
}

export const partitionKey = (raw: Raw): string => String(raw.PartitionKey ?? "");
export const rowKey = (raw: Raw): string => String(raw.RowKey ?? "");
export const etagOf = (raw: Raw): string => String(raw["odata.etag"] ?? "*");
/** No key contains U+0000. */
export const keyOf = (raw: Raw): string => `${partitionKey(raw)}\u0000${rowKey(raw)}`;

/** What is wrong with a text as a value of a type, in words; nothing if it is right. */
export function fault({ type, text }: Value): string | undefined {
  switch (type) {
    case "String":
      return undefined;
    case "Boolean":
      return text === "true" || text === "false" ? undefined : "Write true or false.";
    case "Int32":
      return wholeFault(text, 31n);
    case "Int64":
      return wholeFault(text, 63n);
    case "Double":
      return /^([+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|NaN|-?Infinity)$/.test(text) ? undefined : "Write a number such as 1.5, 2e10, NaN or -Infinity.";
    case "DateTime":
      return dateFault(text);
    case "Guid":
      return /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(text) ? undefined : "Write 32 hexadecimal digits as 8-4-4-4-12.";
    case "Binary":
      return /^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0 ? undefined : "Write Base64; its length is a multiple of 4.";
  }
}

function wholeFault(text: string, bits: bigint): string | undefined {
  if (!/^[+-]?\d{1,20}$/.test(text)) return "Write a whole number.";
  const [value, limit] = [BigInt(text.replace("+", "")), 1n << bits];
  return value >= -limit && value < limit ? undefined : `Between -${limit} and ${limit - 1n}.`;
}

function dateFault(text: string): string | undefined {
  const matches = /^(\d{4})-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,7})?)?(Z|[+-]\d\d:\d\d)$/.exec(text);
  if (!matches || Number.isNaN(Date.parse(text.replace(/(\.\d{3})\d+/, "$1")))) return "Write a time such as 2026-01-31T18:30:00Z.";
  return Number(matches[1]) >= 1601 ? undefined : "The service keeps times from the year 1601 on.";
}

/** What is wrong with the name of a property. */
export function nameFault(name: string): string | undefined {
  if (!name) return "Give the property a name.";
  if (name.length > 255) return "A name has at most 255 characters.";
  if (SYSTEM.includes(name)) return `${name} is the service's own.`;
  return /^[\p{L}_][\p{L}\p{N}\p{M}\p{Pc}\p{Cf}]*$/u.test(name) ? undefined : "Letters, digits and _; the first is no digit.";
}

/** What is wrong with a key. */
export function keyFault(key: string): string | undefined {
  // eslint-disable-next-line no-control-regex
  const bad = /[/\\#?\u0000-\u001f\u007f-\u009f]/.exec(key);
  if (bad) return `A key can't contain ${bad[0] < " " || bad[0] > "~" ? "control characters" : bad[0]}.`;
  return key.length > 512 ? "A key has at most 512 characters." : undefined;
}

/** One property in JSON, with the annotation that its type needs. */
export function writeProperty(name: string, { type, text }: Value): string {
  const quoted = JSON.stringify(name);
  const annotated = (value: string): string => `${JSON.stringify(name + ANNOTATION)}:"Edm.${type}",${quoted}:${value}`;
  switch (type) {
    case "Boolean":
      return `${quoted}:${text}`;
    case "Int32":
      return `${quoted}:${BigInt(text.replace("+", ""))}`;
    case "Double":
      // As the service writes it: a point or an exponent is enough.
      if (/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text) && /[.eE]/.test(text)) return `${quoted}:${text}`;
      return Number.isFinite(Number(text)) ? annotated(String(Number(text))) : annotated(JSON.stringify(text));
    case "String":
      return `${quoted}:${JSON.stringify(text)}`;
    case "Int64":
      return annotated(JSON.stringify(text.replace("+", "")));
    default:
      return annotated(JSON.stringify(text));
  }
}

export interface Draft {
  partitionKey: string;
  rowKey: string;
  properties: [string, Value][];
}

export function draftOf(raw: Raw): Draft {
  const names = namesOf(raw).filter((name) => !SYSTEM.includes(name));
  const properties = names.map((name) => [name, valueOf(raw, name)] as const).filter((pair): pair is [string, Value] => !!pair[1]);
  return { partitionKey: partitionKey(raw), rowKey: rowKey(raw), properties };
}

/** The body of an insert or update. */
export function writeEntity({ partitionKey, rowKey, properties }: Draft): string {
  const keys = `"PartitionKey":${JSON.stringify(partitionKey)},"RowKey":${JSON.stringify(rowKey)}`;
  return `{${[keys, ...properties.map(([name, value]) => writeProperty(name, value))].join(",")}}`;
}

/** The same, indented, for people; with the timestamp if there is one. */
export function prettyEntity(draft: Draft): string {
  const lines = [`"PartitionKey": ${JSON.stringify(draft.partitionKey)}`, `"RowKey": ${JSON.stringify(draft.rowKey)}`];
  for (const [name, value] of draft.properties) {
    const written = writeProperty(name, value);
    const cut = written.startsWith(JSON.stringify(name + ANNOTATION)) ? `${JSON.stringify(name + ANNOTATION)}:"Edm.${value.type}",` : "";
    const prefix = `${JSON.stringify(name)}:`;
    if (cut) lines.push(`${JSON.stringify(name + ANNOTATION)}: "Edm.${value.type}"`);
    lines.push(`${JSON.stringify(name)}: ${written.slice(cut.length + prefix.length)}`);
  }
  return `{\n  ${lines.join(",\n  ")}\n}`;
}

/** Reads what people wrote in the JSON view; throws words. */
export function readEntity(text: string): Draft {
  let raw: Raw;
  try {
    raw = JSON.parse(wrapDoubles(text));
  } catch (error) {
    throw new Error(`This is no JSON: ${(error as Error).message}`);
  }
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) throw new Error("An entity is a JSON object: { … }.");
  if (typeof raw.PartitionKey !== "string") throw new Error("PartitionKey must be a text.");
  if (typeof raw.RowKey !== "string") throw new Error("RowKey must be a text.");
  for (const name of namesOf(raw)) {
    const value = raw[name];
    if (Array.isArray(value)) throw new Error(`${name} is a list; a property holds one value.`);
    if (value && typeof value === "object" && !("double" in value)) throw new Error(`${name} is an object; a property holds one value.`);
    const annotated = raw[name + ANNOTATION];
    if (annotated !== undefined && !EDM_TYPES.includes(String(annotated).replace("Edm.", "") as EdmType))
      throw new Error(`${name} has the type ${annotated}, which tables do not have. There are ${EDM_TYPES.join(", ")}.`);
  }
  const draft = draftOf(raw);
  for (const [name, value] of draft.properties) {
    const wrong = nameFault(name) ?? fault(value);
    if (wrong) throw new Error(`${name}: ${wrong}`);
  }
  return draft;
}

/** A value in the notation of filters. */
export function literal({ type, text }: Value): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  switch (type) {
    case "String":
      return quoted;
    case "Int64":
      return `${text}L`;
    case "DateTime":
      return `datetime${quoted}`;
    case "Guid":
      return `guid${quoted}`;
    case "Binary":
      return `X'${hex(text)}'`;
    case "Double":
      return text === "Infinity" ? "INF" : text === "-Infinity" ? "-INF" : /[.eEN]/.test(text) ? text : `${text}.0`;
    default:
      return text;
  }
}

const hex = (base64: string): string => [...atob(base64)].map((c) => c.charCodeAt(0).toString(16).padStart(2, "0")).join("");
