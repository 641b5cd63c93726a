// A small reader and writer for the service's XML: elements and text. No attributes, no document types, no processing.
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
  const tags = /<(?:\?[^>]*\?|!--[\s\S]*?--|(\/?)([A-Za-z_][\w.:-]*)[^<>]*?(\/?))>/g;
  let at = 0;
  for (const tag of text.matchAll(tags)) {
    const inner = open[open.length - 1] as Element;
    inner.text += decode(text.slice(at, tag.index));
    at = tag.index + tag[0].length;
    const [, closing, name, empty] = tag;
    if (!name) continue;
    if (closing) {
      if (inner.name !== name) throw new Error(`</${name}> closes <${inner.name || "nothing"}>`);
      open.pop();
      continue;
    }
    const element: Element = { name, children: [], text: "" };
    inner.children.push(element);
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
