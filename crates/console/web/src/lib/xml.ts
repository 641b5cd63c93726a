// A small reader and writer for the service's XML: elements and text. No document types, no processing, and of attributes only
// the one that says that a text is percent-encoded: XML can't carry every character of a blob's name.
// The browser's own parser is not used, because a page that requires Trusted Types may not give it text.

export interface Element {
  name: string;
  children: Element[];
  text: string;
}

const ENTITIES: Record<string, string> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

function decode(text: string): string {
  return text.replace(/&(#x[0-9a-f]+|#\d+|\w+);/gi, (whole, name: string) => {
    if (name.startsWith("#x")) return String.fromCodePoint(parseInt(name.slice(2), 16));
    if (name.startsWith("#")) return String.fromCodePoint(Number(name.slice(1)));
    return ENTITIES[name] ?? whole;
  });
}

export const escape = (text: string): string =>
  text.replace(/[<>&"]/g, (c) => ({ "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;" })[c] ?? c);

/** The root element, or an error that says what is wrong. */
export function parse(text: string): Element {
  const root: Element = { name: "", children: [], text: "" };
  const open = [root];
  const tags = /<(?:\?[^>]*\?|!--[\s\S]*?--|(\/?)([A-Za-z_][\w.:-]*)([^<>]*?)(\/?))>/g;
  const encoded = new Set<Element>();
  let at = 0;
  for (const tag of text.matchAll(tags)) {
    const inner = open[open.length - 1] as Element;
    inner.text += decode(text.slice(at, tag.index));
    at = tag.index + tag[0].length;
    const [, closing, name, attributes = "", empty] = tag;
    if (!name) continue;
    if (closing) {
      if (inner.name !== name) throw new Error(`</${name}> closes <${inner.name || "nothing"}>`);
      if (encoded.has(inner)) inner.text = decodeURIComponent(inner.text);
      open.pop();
      continue;
    }
    const element: Element = { name, children: [], text: "" };
    inner.children.push(element);
    if (/\sEncoded="true"/.test(attributes)) encoded.add(element);
    if (!empty) open.push(element);
  }
  if (open.length > 1) throw new Error(`<${open[open.length - 1]?.name}> is not closed`);
  const first = root.children[0];
  if (!first) throw new Error("no XML element was found");
  return first;
}

export const child = (element: Element | undefined, name: string): Element | undefined =>
  element?.children.find((found) => found.name === name);

export const children = (element: Element | undefined, name: string): Element[] =>
  element?.children.filter((found) => found.name === name) ?? [];

/** The text of the element at this path, or an empty text. */
export function textAt(element: Element | undefined, ...path: string[]): string {
  let found = element;
  for (const name of path) found = child(found, name);
  return found?.text ?? "";
}
