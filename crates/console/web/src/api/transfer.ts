// Import and export of a table in the browser, page by page and batch by batch, in bounded memory.

import { CsvReader, csvHeader, csvLine, csvRow, propertyNames, rawOfCsv } from "../lib/csv.ts";
import { draftOf, fault, keyFault, parsePage, partitionKey, type Raw, rowKey, valueOf, writeEntity, writeProperty } from "../model/edm.ts";
import { words } from "./http.ts";
import { BATCH_MAX, BatchError, type Continuation, type Operation, queryPage, sendBatch } from "./tables.ts";

export type Format = "jsonl" | "csv";
export type Mode = "upsert" | "merge" | "insert";

export interface Progress {
  done: number;
  total: number;
  entities: number;
  rejects: { line: number; text: string }[];
  rejected: number;
}

const PARALLEL = 6;
const REJECTS_SHOWN = 50;
const BATCH_BYTES = 2 * 1024 * 1024;

function exportLine(raw: Raw): string {
  const stamp = valueOf(raw, "Timestamp");
  const body = writeEntity(draftOf(raw));
  if (!stamp) return `${body}\n`;
  // After the keys, as the service writes it; `partita export` has the same order.
  const at = body.indexOf(`"RowKey":`) + `"RowKey":${JSON.stringify(rowKey(raw))}`.length;
  return `${body.slice(0, at)},"Timestamp":${JSON.stringify(stamp.text)}${body.slice(at)}\n`;
}

/** Reads every page and gives the file's parts; the caller counts. */
export async function* exportTable(table: string, filter: string, format: Format, abort: AbortSignal): AsyncGenerator<{ text: string; rows: number }> {
  const pages = async function* (): AsyncGenerator<Raw[]> {
    let from: Continuation | undefined;
    do {
      const page = await queryPage({ table, filter, ...(from && { from }) }, abort);
      yield page.rows;
      from = page.next;
    } while (from);
  };
  if (format === "jsonl") {
    for await (const rows of pages()) yield { text: rows.map(exportLine).join(""), rows: rows.length };
    return;
  }
  // The columns are known only after a first pass.
  const names = new Set<string>();
  for await (const rows of pages()) {
    for (const raw of rows) for (const name of propertyNames(raw)) names.add(name);
    yield { text: "", rows: 0 };
  }
  const columns = [...names].sort();
  yield { text: csvLine(csvHeader(columns)), rows: 0 };
  for await (const rows of pages()) yield { text: rows.map((raw) => csvLine(csvRow(raw, columns))).join(""), rows: rows.length };
}

interface Item {
  line: number;
  operation: Operation;
}

/** One reader, several batches under way. Entities of a partition keep their order only within a batch. */
export async function importFile(table: string, file: File, format: Format, mode: Mode, abort: AbortSignal, report: (progress: Progress) => void): Promise<Progress> {
  const progress: Progress = { done: 0, total: file.size, entities: 0, rejects: [], rejected: 0 };
  const reject = (line: number, why: string): void => {
    progress.rejected += 1;
    if (progress.rejects.length < REJECTS_SHOWN) progress.rejects.push({ line, text: why });
  };
  const running = new Map<string, Promise<void>>();
  const send = async (items: Item[]): Promise<void> => {
    while (items.length && !abort.aborted) {
      try {
        await sendBatch(table, items.map(({ operation }) => operation), abort);
        progress.entities += items.length;
        report({ ...progress });
        return;
      } catch (error) {
        if (abort.aborted) return;
        const [refused] = items.splice(error instanceof BatchError ? Math.min(error.index, items.length - 1) : 0, 1);
        if (refused) reject(refused.line, words(error));
        // A server that does not answer refuses everything; there is no point in trying each line.
        if (!(error instanceof BatchError) && items.length) throw error;
      }
    }
  };
  let group: Item[] = [];
  let bytes = 0;
  const flush = async (): Promise<void> => {
    if (!group.length) return;
    const [items, pk] = [group, group[0]?.operation.pk ?? ""];
    group = [];
    bytes = 0;
    await running.get(pk);
    while (running.size >= PARALLEL) await Promise.race(running.values());
    const work = send(items).finally(() => running.get(pk) === work && running.delete(pk));
    running.set(pk, work);
    work.catch(() => undefined);
  };
  const keys = new Set<string>();
  const add = async (line: number, raw: Raw): Promise<void> => {
    const item = check(line, raw, mode);
    if (typeof item === "string") return reject(line, item);
    const { pk, rk, body = "" } = item.operation;
    const isFull = group.length >= BATCH_MAX || bytes + body.length > BATCH_BYTES || keys.has(rk);
    if (group.length && (group[0]?.operation.pk !== pk || isFull)) await flush();
    if (!group.length) keys.clear();
    group.push(item);
    keys.add(rk);
    bytes += body.length;
  };
  for await (const record of records(file, format, (read) => (progress.done = read))) {
    if (abort.aborted) break;
    if (typeof record.raw === "string") reject(record.line, record.raw);
    else await add(record.line, record.raw);
    report({ ...progress });
  }
  if (!abort.aborted) await flush();
  await Promise.all(running.values());
  progress.done = abort.aborted ? progress.done : progress.total;
  return progress;
}

function check(line: number, raw: Raw, mode: Mode): Item | string {
  if (typeof raw.PartitionKey !== "string" || typeof raw.RowKey !== "string") return "PartitionKey and RowKey are missing or not texts";
  const wrongKey = keyFault(raw.PartitionKey) ?? keyFault(raw.RowKey);
  if (wrongKey) return wrongKey;
  const draft = draftOf(raw);
  for (const [name, value] of draft.properties) {
    const wrong = fault(value);
    if (wrong) return `${name}: ${wrong}`;
  }
  const body = mode === "insert" ? writeEntity(draft) : `{${draft.properties.map(([name, value]) => writeProperty(name, value)).join(",")}}`;
  return { line, operation: { do: mode, pk: partitionKey(raw), rk: rowKey(raw), body } };
}

async function* records(file: File, format: Format, read: (bytes: number) => void): AsyncGenerator<{ line: number; raw: Raw | string }> {
  let done = 0;
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, out) {
      done += chunk.length;
      out.enqueue(chunk);
    },
  });
  const reader = file.stream().pipeThrough(counted).pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
  const csv = new CsvReader();
  let header: string[] | undefined;
  let [rest, line] = ["", 0];
  const csvRecord = ({ cells, line }: { cells: string[]; line: number }): { line: number; raw: Raw | string } | undefined => {
    if (!header) {
      header = cells.map((name) => name.replace(/^\ufeff/, ""));
      if (!header.includes("PartitionKey") || !header.includes("RowKey")) throw new Error("The first line must name the columns, PartitionKey and RowKey among them.");
      return undefined;
    }
    try {
      return { line, raw: rawOfCsv(header, cells) };
    } catch (error) {
      return { line, raw: (error as Error).message };
    }
  };
  const jsonRecord = (text: string): { line: number; raw: Raw | string } | undefined => {
    line += 1;
    if (!text.trim()) return undefined;
    try {
      return { line, raw: parsePage(text) };
    } catch {
      return { line, raw: "this line is no JSON object" };
    }
  };
  for (;;) {
    const chunk = await reader.read();
    read(done);
    const text = chunk.value ?? "";
    if (format === "csv") {
      for (const record of chunk.done ? csv.end() : csv.push(text)) {
        const made = csvRecord(record);
        if (made) yield made;
      }
    } else {
      const lines = (rest + text).split("\n");
      rest = chunk.done ? "" : (lines.pop() ?? "");
      for (const one of lines) {
        const made = jsonRecord(one);
        if (made) yield made;
      }
    }
    if (chunk.done) return;
  }
}
