// CSV (RFC 4180) with the columns of Azure Storage Explorer and `partita export`: a property and beside it `NAME@type`.

import { EDM_TYPES, type EdmType, namesOf, type Raw, SYSTEM, valueOf } from "../model/edm.ts";

const cell = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
export const csvLine = (cells: string[]): string => `${cells.map(cell).join(",")}\r\n`;

export function csvHeader(names: string[]): string[] {
  return [...SYSTEM, ...names.flatMap((name) => [name, `${name}@type`])];
}

export function csvRow(raw: Raw, names: string[]): string[] {
  const system = SYSTEM.map((name) => String(raw[name] ?? ""));
  return system.concat(
    names.flatMap((name) => {
      const value = valueOf(raw, name);
      return value ? [value.text, `Edm.${value.type}`] : ["", ""];
    }),
  );
}

export const jsonLine = (text: Raw, write: (raw: Raw) => string): string => `${write(text)}\n`;

/** Cuts a stream of text into records; a record may contain line ends inside quotes. */
export class CsvReader {
  private cells: string[] = [];
  private text = "";
  private isQuoted = false;
  private wasQuote = false;
  private isEmpty = true;
  line = 1;

  /** The records that are complete, each with the line on which it ends. */
  *push(chunk: string): Generator<{ cells: string[]; line: number }> {
    for (const c of chunk) {
      if (c === "\n") this.line += 1;
      if (this.isQuoted) {
        if (c !== '"') this.text += c;
        else {
          this.isQuoted = false;
          this.wasQuote = true;
        }
        continue;
      }
      if (c === '"') {
        if (this.wasQuote) this.text += '"';
        this.isQuoted = true;
        this.isEmpty = false;
      } else if (c === ",") {
        this.cells.push(this.text);
        this.text = "";
        this.isEmpty = false;
      } else if (c === "\n") {
        const done = this.record();
        if (done) yield { cells: done, line: this.line - 1 };
      } else if (c !== "\r") {
        this.text += c;
        this.isEmpty = false;
      }
      this.wasQuote = false;
    }
  }

  *end(): Generator<{ cells: string[]; line: number }> {
    if (this.isQuoted) throw new Error(`line ${this.line}: a quoted cell is not closed`);
    const done = this.record();
    if (done) yield { cells: done, line: this.line };
  }

  private record(): string[] | undefined {
    const cells = [...this.cells, this.text];
    const isEmpty = this.isEmpty;
    this.cells = [];
    this.text = "";
    this.isEmpty = true;
    return isEmpty ? undefined : cells;
  }
}

/** A record as an entity with annotations, so that one path writes both formats. */
export function rawOfCsv(header: string[], cells: string[]): Raw {
  if (cells.length > header.length) throw new Error(`${cells.length} cells, but the first line names ${header.length}`);
  const types = new Map<string, string>();
  header.forEach((name, at) => name.endsWith("@type") && types.set(name.slice(0, -5), (cells[at] ?? "").replace("Edm.", "")));
  const raw: Raw = {};
  header.forEach((name, at) => {
    const text = cells[at] ?? "";
    if (name.endsWith("@type")) return;
    const type = types.get(name) ?? "";
    if (type && !EDM_TYPES.includes(type as EdmType)) throw new Error(`${name} has the type ${type}, which tables do not have`);
    if (SYSTEM.includes(name) || type === "String" || (!type && text)) raw[name] = text;
    else if (type) {
      raw[name] = text;
      raw[`${name}@odata.type`] = `Edm.${type}`;
    }
  });
  return raw;
}

export const propertyNames = (raw: Raw): string[] => namesOf(raw).filter((name) => !SYSTEM.includes(name));
