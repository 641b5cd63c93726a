// What can come next in a filter: property names that were seen, operators, beginnings of values by type.

import { EDM_TYPES, type EdmType } from "../model/edm.ts";
import { COMPARISONS, type Token, tokens } from "./lexer.ts";

export interface Proposal {
  /** What is shown. */
  label: string;
  /** What replaces the text from `from` to the cursor. */
  insert: string;
  from: number;
  detail: string;
  /** Where the cursor goes, counted from the end of what is inserted. */
  back: number;
}

/** The types that were seen of each property. */
export type Seen = Map<string, Set<EdmType>>;

const MEANING: Record<string, string> = {
  eq: "equals",
  ne: "differs from",
  gt: "greater than",
  ge: "greater or equal",
  lt: "less than",
  le: "less or equal",
  and: "both",
  or: "either",
  not: "the opposite",
};

type Place = "operand" | "operator" | "value" | "connective";

export function complete(text: string, cursor: number, seen: Seen): Proposal[] {
  const before = tokens(text.slice(0, cursor));
  const last = before[before.length - 1];
  if (last?.kind === "bad" || (last && last.end === cursor && ["string", "typed", "number"].includes(last.kind))) return [];
  const isTyping = last?.kind === "word" && last.end === cursor;
  const prefix = isTyping ? last.text : "";
  const known = isTyping ? before.slice(0, -1) : before;
  const proposals = at(place(known), property(known), seen, cursor - prefix.length);
  const wanted = prefix.toLowerCase();
  const matching = proposals.filter(({ label }) => label.toLowerCase().startsWith(wanted) || (wanted.length > 1 && label.toLowerCase().includes(wanted)));
  return matching.length === 1 && matching[0]?.insert.trim() === prefix ? [] : matching.slice(0, 12);
}

function place(known: Token[]): Place {
  const last = known[known.length - 1];
  if (!last || last.kind === "open") return "operand";
  if (last.kind === "word") {
    if (["and", "or", "not"].includes(last.text)) return "operand";
    const isOperator = COMPARISONS.includes(last.text) && known[known.length - 2]?.kind === "word";
    return isOperator ? "value" : "operator";
  }
  return "connective";
}

function property(known: Token[]): string {
  return known[known.length - 2]?.text ?? "";
}

function at(where: Place, name: string, seen: Seen, from: number): Proposal[] {
  const word = (label: string): Proposal => ({ label, insert: `${label} `, from, detail: MEANING[label] ?? "", back: 0 });
  switch (where) {
    case "operand": {
      const names = [...seen].map(([label, types]) => ({ label, insert: `${label} `, from, detail: [...types].join(", "), back: 0 }));
      return [...names, word("not"), { label: "( … )", insert: "()", from, detail: "a group", back: 1 }];
    }
    case "operator":
      return COMPARISONS.map(word);
    case "value": {
      const likely = seen.get(name);
      const types = likely?.size ? [...likely] : [...EDM_TYPES];
      return types.flatMap((type) => values(type, from));
    }
    case "connective":
      return ["and", "or"].map(word);
  }
}

function values(type: EdmType, from: number): Proposal[] {
  const one = (label: string, insert: string, back = 0): Proposal => ({ label, insert, from, detail: type, back });
  switch (type) {
    case "String":
      return [one("'…'", "''", 1)];
    case "Boolean":
      return [one("true", "true "), one("false", "false ")];
    case "DateTime": {
      const now = `${new Date().toISOString().slice(0, 19)}Z`;
      const today = `${now.slice(0, 10)}T00:00:00Z`;
      return [one("today", `datetime'${today}' `), one("now", `datetime'${now}' `), one("datetime'…'", "datetime''", 1)];
    }
    case "Guid":
      return [one("guid'…'", "guid''", 1)];
    case "Binary":
      return [one("X'…'", "X''", 1)];
    case "Int64":
      return [one("0L", "0L", 1)];
    case "Double":
      return [one("0.0", "0.0")];
    case "Int32":
      return [one("0", "0")];
  }
}
