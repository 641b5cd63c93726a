// Finds the first fault of a filter and its place while it is written. The server decides in the end: a filter that looks
// wrong here can still be sent.

import { fault as valueFault, type EdmType } from "../model/edm.ts";
import { COMPARISONS, type Token, tokens } from "./lexer.ts";

export interface Fault {
  at: number;
  end: number;
  message: string;
}

const STRENGTH = { or: 1, and: 2 } as const;

class Parser {
  at = 0;
  constructor(
    readonly text: string,
    readonly list: Token[],
  ) {}

  get token(): Token | undefined {
    return this.list[this.at];
  }

  fail(message: string, token = this.token): never {
    const place = token ?? { at: this.text.length, end: this.text.length + 1 };
    throw { at: place.at, end: place.end, message } satisfies Fault;
  }

  bad(): void {
    if (this.token?.kind === "bad") this.fail(this.token.why ?? "This can't be read.");
  }

  tests(strength = 1): void {
    if (strength > 2) return this.test();
    this.tests(strength + 1);
    for (;;) {
      this.bad();
      const word = this.token;
      if (word?.kind !== "word" || STRENGTH[word.text as "or" | "and"] !== strength) return;
      this.at += 1;
      this.tests(strength + 1);
    }
  }

  test(): void {
    this.bad();
    const token = this.token;
    if (token?.kind === "word" && token.text === "not") {
      this.at += 1;
      return this.test();
    }
    if (token?.kind === "open" && this.isTestInside()) {
      this.at += 1;
      this.tests();
      this.close();
      return;
    }
    this.comparison();
  }

  /** Brackets hold a test unless an operator follows that compares what they hold. */
  isTestInside(): boolean {
    let depth = 0;
    for (let at = this.at; at < this.list.length; at += 1) {
      const token = this.list[at] as Token;
      if (token.kind === "open") depth += 1;
      if (token.kind === "close") depth -= 1;
      if (depth === 0) return !COMPARISONS.includes(this.list[at + 1]?.text ?? "");
    }
    return true;
  }

  close(): void {
    this.bad();
    if (this.token?.kind !== "close") this.fail("A closing bracket ) is missing here.");
    this.at += 1;
  }

  comparison(): void {
    const left = this.operand();
    this.bad();
    const operator = this.token;
    if (operator?.kind === "word" && COMPARISONS.includes(operator.text)) {
      this.at += 1;
      this.operand();
      return;
    }
    if (operator?.kind === "word" && COMPARISONS.includes(operator.text.toLowerCase())) this.fail(`Operators are written small: ${operator.text.toLowerCase()}.`);
    if (operator?.kind === "open" && left.kind === "word") this.fail(`The service has no function ${left.text}. Compare with eq, ne, gt, ge, lt or le.`, left);
    const isEnd = !operator || operator.kind === "close" || operator.text === "and" || operator.text === "or";
    if (!isEnd) this.fail(left.kind === "word" ? "An operator belongs here: eq, ne, gt, ge, lt or le." : "and, or, or the end of the filter belongs here.");
    if (left.kind === "word") return; // a Boolean property alone
    if (left.kind !== "boolean") this.fail("This is a value alone. Compare it with a property.", left);
  }

  operand(): Token {
    this.bad();
    const token = this.token;
    if (!token) this.fail("The filter ends here, but a property or a value is missing.");
    switch (token.kind) {
      case "open": {
        this.at += 1;
        const inner = this.operand();
        this.close();
        return inner;
      }
      case "minus":
        return this.fail("A minus belongs directly before a number.");
      case "word":
        if (token.text === "and" || token.text === "or" || COMPARISONS.includes(token.text)) {
          const next = this.list[this.at + 1];
          const isName = next?.kind === "word" && COMPARISONS.includes(next.text);
          if (!isName) this.fail(`A property or a value is missing before ${token.text}.`);
        }
        if (token.text === "null") this.fail("The service has no null. A property that is missing never matches.");
        break;
      case "typed":
      case "number":
        this.literal(token);
        break;
      case "string":
      case "boolean":
        break;
      default:
        this.fail(`A property or a value belongs here, not ${token.text}.`);
    }
    this.at += 1;
    return token;
  }

  literal(token: Token): void {
    const [type, text] = literalParts(token);
    if (!type) return;
    const wrong = type === "DateTime" ? dateFault(text) : valueFault({ type, text });
    if (wrong) this.fail(wrong, token);
  }
}

/** Filters accept times with and without a zone and seconds. */
function dateFault(text: string): string | undefined {
  const isTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,7})?)?(Z|[+-]\d\d:\d\d)?)?$/.test(text);
  return isTime ? undefined : "Write a time such as datetime'2026-01-31T18:30:00Z'.";
}

function literalParts(token: Token): [EdmType | undefined, string] {
  if (token.kind === "number") {
    if (/L$/i.test(token.text)) return ["Int64", token.text.slice(0, -1)];
    return /^-?\d+$/.test(token.text) ? ["Int32", token.text] : [undefined, ""];
  }
  const [, prefix = "", inner = ""] = /^(\w+)'(.*)'$/.exec(token.text) ?? [];
  switch (prefix.toLowerCase()) {
    case "datetime":
      return ["DateTime", inner];
    case "guid":
      return ["Guid", inner];
    default:
      return /^([0-9a-f]{2})*$/i.test(inner) ? [undefined, ""] : ["Binary", "!"];
  }
}

export function check(text: string): Fault | undefined {
  if (!text.trim()) return undefined;
  const parser = new Parser(text, tokens(text));
  try {
    parser.tests();
    parser.bad();
    const rest = parser.token;
    if (rest?.kind === "close") parser.fail("This bracket was never opened.");
    if (rest) parser.fail("and, or, or the end of the filter belongs here.");
    return undefined;
  } catch (found) {
    return found as Fault;
  }
}
