// Splits a filter into tokens with their places. Never fails: what it can't read is a token of kind "bad".

export type Kind = "word" | "string" | "number" | "typed" | "boolean" | "open" | "close" | "minus" | "comma" | "bad";

export interface Token {
  kind: Kind;
  text: string;
  at: number;
  end: number;
  /** Of a bad token: what is wrong. */
  why?: string;
}

const PREFIXES = ["datetime", "guid", "binary", "x"];
export const COMPARISONS = ["eq", "ne", "gt", "ge", "lt", "le"];
export const WORDS = ["and", "or", "not", ...COMPARISONS];

export function tokens(text: string): Token[] {
  const found: Token[] = [];
  let at = 0;
  const add = (kind: Kind, end: number, why?: string): void => {
    found.push({ kind, text: text.slice(at, end), at, end, ...(why && { why }) });
    at = end;
  };
  while (at < text.length) {
    const rest = text.slice(at);
    const space = /^\s+/.exec(rest);
    if (space) {
      at += space[0].length;
      continue;
    }
    const first = rest[0] as string;
    if (first === "'") {
      const closed = /^'(?:[^']|'')*'/.exec(rest);
      if (closed) add("string", at + closed[0].length);
      else add("bad", text.length, "This text is not closed. A quote inside a text is written twice: ''.");
    } else if (first === "(") add("open", at + 1);
    else if (first === ")") add("close", at + 1);
    else if (first === ",") add("comma", at + 1);
    else if (/^-?(\d|INF\b)/.test(rest)) {
      const number = /^-?(INF|\d+(\.\d+)?([eE][+-]?\d+)?[dDfFmMlL]?)/.exec(rest) as RegExpExecArray;
      add("number", at + number[0].length);
    } else if (first === "-") add("minus", at + 1);
    else {
      const word = /^[\p{L}_][\p{L}\p{N}\p{M}\p{Pc}\p{Cf}]*/u.exec(rest);
      if (!word) {
        const wrong = String.fromCodePoint(rest.codePointAt(0) ?? 0);
        add("bad", at + wrong.length, advice(wrong, rest));
      } else if (rest[word[0].length] === "'" && PREFIXES.includes(word[0].toLowerCase())) {
        const closed = /^\w+'[^']*'/.exec(rest);
        if (closed) add("typed", at + closed[0].length);
        else add("bad", text.length, `This ${word[0]}'…' is not closed.`);
      } else if (word[0] === "true" || word[0] === "false") add("boolean", at + word[0].length);
      else if (word[0] === "NaN" || word[0] === "INF") add("number", at + word[0].length);
      else add("word", at + word[0].length);
    }
  }
  return found;
}

const INSTEAD: Record<string, string> = { "=": "eq", "!": "ne", "<": "lt or le", ">": "gt or ge", "&": "and", "|": "or", '"': "' around a text" };

function advice(wrong: string, rest: string): string {
  const instead = rest.startsWith("<=") ? "le" : rest.startsWith(">=") ? "ge" : INSTEAD[wrong];
  return instead ? `Write ${instead} instead of ${wrong}.` : `${wrong} has no meaning in a filter.`;
}
