// Which page is shown, kept in the address after `#`, so that the browser's back button and bookmarks work.

import { signal } from "@preact/signals";

export interface Route {
  /** Decoded parts of the path: `#/tables/Books` is `["tables", "Books"]`. */
  path: string[];
  query: URLSearchParams;
}

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { path: parts, query: new URLSearchParams(query) };
}

export const route = signal<Route>(read());
addEventListener("hashchange", () => (route.value = read()));

export function href(path: string[], query: Record<string, string | undefined> = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => !!entry[1]);
  const text = new URLSearchParams(given).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function go(path: string[], query: Record<string, string | undefined> = {}): void {
  location.hash = href(path, query);
}

/** Changes the address without a new entry in the history. */
export function replace(path: string[], query: Record<string, string | undefined> = {}): void {
  history.replaceState(null, "", href(path, query));
  route.value = read();
}
