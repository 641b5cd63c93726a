// The Table service, through the session: `/api/forward/table/…`. The server signs; requests and answers are the service's own.

import { etagOf, parsePage, partitionKey, type Raw, rowKey } from "../model/edm.ts";
import { ApiError, call, getJson } from "./http.ts";
import { session } from "./session.ts";

export interface TableInfo {
  name: string;
  estimated_rows?: number;
  estimated_bytes?: number;
}

/** What `x-partita-explain` says of one page. */
export interface Explained {
  class: string;
  key_ranges: number;
  /** The first of them, in words. */
  ranges?: string[];
  examined?: number;
  returned?: number;
  ms?: number;
  shape?: string;
  azure?: { class?: string; entities?: number; seconds_at_targets?: number; requests?: number; at_least?: boolean };
  proposal?: Proposal | null;
}

/** What would make a query examine less. */
export interface Proposal {
  kind: string;
  text: string;
  pattern?: string;
}

/** A shape of filters that examined rows in vain. */
export interface Shape {
  table: string;
  shape: string;
  class: string;
  queries: number;
  examined: number;
  returned: number;
  in_vain: number;
  ms: number;
  proposal?: Proposal | null;
}

export interface Continuation {
  partition: string;
  row?: string;
}

export interface Page {
  rows: Raw[];
  next?: Continuation;
  explained?: Explained;
  /** From the request's start to the last byte, in the browser. */
  ms: number;
}

export interface Query {
  table: string;
  filter?: string;
  select?: string;
  top?: number;
  from?: Continuation;
}

const FORWARD = "/api/forward/table";
const quoted = (key: string): string => encodeURIComponent(`'${key.replaceAll("'", "''")}'`);
export const entityPath = (table: string, pk: string, rk: string): string => `/${encodeURIComponent(table)}(PartitionKey=${quoted(pk)},RowKey=${quoted(rk)})`;

export async function listTables(): Promise<TableInfo[]> {
  const found: TableInfo[] = [];
  let next = "";
  do {
    const page = await getJson<{ tables: TableInfo[]; next?: string }>(`/api/tables${next && `?next=${encodeURIComponent(next)}`}`);
    found.push(...page.tables);
    next = page.next ?? "";
  } while (next);
  return found;
}

export async function createTable(name: string): Promise<void> {
  await call("POST", `${FORWARD}/Tables`, { json: { TableName: name }, headers: { prefer: "return-no-content" } });
}

export async function dropTable(name: string): Promise<void> {
  await call("DELETE", `${FORWARD}/Tables(${quoted(name)})`);
}

export function queryString({ filter, select, top, from }: Query): string {
  const options: string[] = [];
  const add = (name: string, value: string | undefined): void => void (value && options.push(`${name}=${encodeURIComponent(value)}`));
  add("$filter", filter);
  add("$select", select);
  add("$top", top ? String(top) : "");
  add("NextPartitionKey", from?.partition);
  add("NextRowKey", from?.row);
  return options.length ? `?${options.join("&")}` : "";
}

export async function queryPage(query: Query, abort?: AbortSignal): Promise<Page> {
  const started = performance.now();
  const headers: Record<string, string> = { accept: "application/json;odata=minimalmetadata" };
  if (session.peek()?.extensions) headers["x-partita-explain"] = "1";
  const answer = await call("GET", `${FORWARD}/${encodeURIComponent(query.table)}()${queryString(query)}`, abort ? { headers, abort } : { headers });
  const rows = parsePage(await answer.text()).value;
  const partition = answer.headers.get("x-ms-continuation-nextpartitionkey");
  const row = answer.headers.get("x-ms-continuation-nextrowkey");
  return {
    rows,
    ms: performance.now() - started,
    ...(partition !== null && { next: { partition, ...(row !== null && { row }) } }),
    ...explanation(answer),
  };
}

function explanation(answer: Response): { explained?: Explained } {
  const text = answer.headers.get("x-partita-explain");
  if (!text?.startsWith("{")) return {};
  try {
    return { explained: JSON.parse(text) as Explained };
  } catch {
    return {};
  }
}

export async function getEntity(table: string, pk: string, rk: string): Promise<Raw> {
  const answer = await call("GET", FORWARD + entityPath(table, pk, rk), { headers: { accept: "application/json;odata=minimalmetadata" } });
  return parsePage(await answer.text());
}

const typed = { "content-type": "application/json", accept: "application/json;odata=nometadata", prefer: "return-no-content" };

export async function insertEntity(table: string, body: string): Promise<void> {
  await call("POST", `${FORWARD}/${encodeURIComponent(table)}`, { body, headers: typed });
}

/** Replaces the entity if it still has this ETag. */
export async function updateEntity(table: string, pk: string, rk: string, etag: string, body: string): Promise<void> {
  await call("PUT", FORWARD + entityPath(table, pk, rk), { body, headers: { ...typed, "if-match": etag } });
}

export interface Operation {
  do: "insert" | "upsert" | "merge" | "delete";
  pk: string;
  rk: string;
  body?: string;
  etag?: string;
}

const METHODS = { insert: "POST", upsert: "PUT", merge: "PATCH", delete: "DELETE" } as const;
export const BATCH_MAX = 100;

/** Sends up to 100 operations on one partition as one transaction. */
export async function sendBatch(table: string, operations: Operation[], abort?: AbortSignal): Promise<void> {
  const only = operations[0];
  if (operations.length === 1 && only) return sendOne(table, only, abort);
  const endpoint = (session.peek()?.endpoints.table ?? "").replace(/\/$/, "");
  const [batch, changes] = [`batch_${crypto.randomUUID()}`, `changeset_${crypto.randomUUID()}`];
  const parts = operations.map((operation) => {
    const path = operation.do === "insert" ? `/${encodeURIComponent(table)}` : entityPath(table, operation.pk, operation.rk);
    const head = [`${METHODS[operation.do]} ${endpoint}${path} HTTP/1.1`, "Accept: application/json;odata=minimalmetadata", "Prefer: return-no-content"];
    if (operation.do === "delete") head.push(`If-Match: ${operation.etag ?? "*"}`);
    if (operation.body) head.push("Content-Type: application/json");
    return `--${changes}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n${head.join("\r\n")}\r\n\r\n${operation.body ?? ""}\r\n`;
  });
  const body = `--${batch}\r\nContent-Type: multipart/mixed; boundary=${changes}\r\n\r\n${parts.join("")}--${changes}--\r\n--${batch}--\r\n`;
  const headers = { "content-type": `multipart/mixed; boundary=${batch}`, accept: "application/json;odata=minimalmetadata" };
  const answer = await call("POST", `${FORWARD}/$batch`, abort ? { body, headers, abort } : { body, headers });
  judge(await answer.text(), operations.length);
}

async function sendOne(table: string, { do: what, pk, rk, body, etag }: Operation, abort?: AbortSignal): Promise<void> {
  const path = what === "insert" ? `/${encodeURIComponent(table)}` : entityPath(table, pk, rk);
  const headers: Record<string, string> = what === "delete" ? { "if-match": etag ?? "*", accept: typed.accept } : { ...typed };
  await call(METHODS[what], FORWARD + path, { ...(body && { body }), headers, ...(abort && { abort }) });
}

/** A failed transaction is answered 202 with the one failure inside. */
function judge(text: string, sent: number): void {
  const failed = /HTTP\/1\.1 ([45]\d\d)/.exec(text);
  if (!failed) {
    if ((text.match(/HTTP\/1\.1 2\d\d/g) ?? []).length < sent) throw new ApiError(0, "NoAnswer", "The batch's answer is incomplete.");
    return;
  }
  let [code, message] = [failed[1] ?? "", "The batch was refused."];
  try {
    const error = JSON.parse(/\{[\s\S]*\}/.exec(text)?.[0] ?? "")["odata.error"];
    code = error.code;
    message = String(error.message.value).replace(/\s*RequestId:[\s\S]*$/, "");
  } catch {
    // The status alone is shown.
  }
  throw new BatchError(Number(failed[1]), code, message.replace(/^\d+:/, ""), Number(/^(\d+):/.exec(message)?.[1] ?? 0));
}

/** The operation at `index` was refused, so none was done. */
export class BatchError extends ApiError {
  constructor(
    status: number,
    code: string,
    message: string,
    readonly index: number,
  ) {
    super(status, code, message);
  }
}

/** Groups of one partition, each at most a transaction long; the order within a partition is kept. */
export function batches(rows: Raw[]): Raw[][] {
  return [...grouped(rows).values()].flatMap((group) => {
    const cut: Raw[][] = [];
    for (let at = 0; at < group.length; at += BATCH_MAX) cut.push(group.slice(at, at + BATCH_MAX));
    return cut;
  });
}

function grouped(rows: Raw[]): Map<string, Raw[]> {
  const groups = new Map<string, Raw[]>();
  for (const row of rows) {
    const group = groups.get(partitionKey(row));
    if (group) group.push(row);
    else groups.set(partitionKey(row), [row]);
  }
  return groups;
}

/** Deletes rows as they were seen: one that changed since is refused. Reports how many are done. */
export async function deleteRows(table: string, rows: Raw[], done: (deleted: Raw[]) => void): Promise<void> {
  for (const group of batches(rows)) {
    await sendBatch(table, group.map((raw) => ({ do: "delete", pk: partitionKey(raw), rk: rowKey(raw), etag: etagOf(raw) })));
    done(group);
  }
}

// The server's extensions.

export const explain = (table: string, filter: string, run: boolean): Promise<Explained> =>
  getJson(`${FORWARD}/$partita/explain/${encodeURIComponent(table)}?${filter ? `$filter=${encodeURIComponent(filter)}&` : ""}run=${run}`);

/** The shapes of filters that looked at most rows in vain, the heaviest first. */
export const advice = async (): Promise<Shape[]> => (await getJson<{ shapes: Shape[] }>(`${FORWARD}/$partita/advice`)).shapes;
