// One blob, through the session: what it is, what is in it, and what changes it.

import { children, escape, parse, textAt } from "../lib/xml.ts";
import { at, leaseHeader, type LeaseState, spelledMetadata, VERSION } from "./blobs.ts";
import { call } from "./http.ts";

/** A blob, or one of its snapshots. */
export interface BlobRef {
  container: string;
  name: string;
  snapshot?: string;
}

/** The headers that programs get with the content. */
export const CONTENT_HEADERS = ["Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Cache-Control"] as const;
export type ContentHeader = (typeof CONTENT_HEADERS)[number];

export interface BlobProperties {
  size: number;
  type: string;
  etag: string;
  modified: string;
  created: string;
  md5: string;
  tier: string;
  /** The tier follows from the account's default. */
  isInferred: boolean;
  archive: string;
  lease: LeaseState;
  content: Record<ContentHeader, string>;
  metadata: [string, string][];
  tagCount: number;
  /** Others that are worth showing, by name. */
  more: [string, string][];
}

const path = ({ container, name, snapshot }: BlobRef, query = ""): string => {
  const options = [query, snapshot && `snapshot=${encodeURIComponent(snapshot)}`].filter(Boolean).join("&");
  return `${at(container, name)}${options && `?${options}`}`;
};

/** Where the browser gets the content from, to save it. The server gives it a type that nothing runs. */
export const contentPath = (blob: BlobRef): string => path(blob);

const MORE: [string, string][] = [
  ["x-ms-blob-sequence-number", "Sequence number"],
  ["x-ms-blob-committed-block-count", "Appended blocks"],
  ["x-ms-blob-sealed", "Sealed"],
  ["x-ms-copy-status", "Copy"],
  ["x-ms-copy-source", "Copied from"],
  ["x-ms-copy-progress", "Bytes copied"],
  ["x-ms-access-tier-change-time", "Tier changed"],
  ["x-ms-rehydrate-priority", "Rehydrated with priority"],
];

export async function blobProperties(blob: BlobRef): Promise<BlobProperties> {
  const { headers } = await call("HEAD", path(blob), { headers: VERSION });
  const of = (name: string): string => headers.get(name) ?? "";
  // The server passes on what whoever wrote the blob has chosen under names that browsers do not obey.
  const content = Object.fromEntries(CONTENT_HEADERS.map((name) => [name, of(`x-partita-${name.toLowerCase()}`)])) as Record<ContentHeader, string>;
  const metadata: [string, string][] = [];
  headers.forEach((value, name) => name.startsWith("x-ms-meta-") && metadata.push([name.slice(10), value]));
  const spelled = metadata.length && !blob.snapshot ? await spelledMetadata(blob.container, blob.name).catch(() => undefined) : undefined;
  return {
    size: Number(of("content-length")),
    type: of("x-ms-blob-type"),
    etag: of("etag"),
    modified: of("last-modified"),
    created: of("x-ms-creation-time"),
    md5: of("content-md5"),
    tier: of("x-ms-access-tier"),
    isInferred: of("x-ms-access-tier-inferred") === "true",
    archive: of("x-ms-archive-status"),
    lease: { state: of("x-ms-lease-state"), duration: of("x-ms-lease-duration") },
    content,
    metadata: spelled ?? metadata,
    tagCount: Number(of("x-ms-tag-count")),
    more: MORE.map(([name, label]): [string, string] => [label, of(name)]).filter(([, value]) => value),
  };
}

/** So many bytes from the beginning, if the blob is still this one. */
export async function readStart(blob: BlobRef, bytes: number, etag: string): Promise<Uint8Array> {
  const answer = await call("GET", path(blob), { headers: { ...VERSION, "x-ms-range": `bytes=0-${bytes - 1}`, "if-match": etag } });
  return new Uint8Array(await answer.arrayBuffer());
}

const own = (blob: BlobRef): Record<string, string> => ({ ...VERSION, ...leaseHeader(blob.container, blob.name) });

export const setContentHeaders = async (blob: BlobRef, { content, etag, md5 }: BlobProperties): Promise<void> => {
  const headers: Record<string, string> = { ...own(blob), "if-match": etag };
  // All are replaced together, the hash of the content too, if at least one is named.
  for (const name of CONTENT_HEADERS) if (content[name]) headers[`x-ms-blob-${name.toLowerCase()}`] = content[name];
  headers["x-ms-blob-content-type"] ??= "application/octet-stream";
  if (md5) headers["x-ms-blob-content-md5"] = md5;
  await call("PUT", path(blob, "comp=properties"), { headers });
};

export const setMetadata = async (blob: BlobRef, pairs: [string, string][], etag: string): Promise<void> => {
  const headers: Record<string, string> = { ...own(blob), "if-match": etag };
  for (const [name, value] of pairs) headers[`x-ms-meta-${name}`] = value;
  await call("PUT", path(blob, "comp=metadata"), { headers });
};

export async function tags(blob: BlobRef): Promise<[string, string][]> {
  const answer = await call("GET", path(blob, "comp=tags"), { headers: VERSION });
  const root = parse((await answer.text()).replace(/^\ufeff/, ""));
  return children(root.children[0], "Tag").map((tag) => [textAt(tag, "Key"), textAt(tag, "Value")]);
}

export async function setTags(blob: BlobRef, pairs: [string, string][]): Promise<void> {
  const written = pairs.map(([key, value]) => `<Tag><Key>${escape(key)}</Key><Value>${escape(value)}</Value></Tag>`);
  const body = `<?xml version="1.0" encoding="utf-8"?><Tags><TagSet>${written.join("")}</TagSet></Tags>`;
  await call("PUT", path(blob, "comp=tags"), { body, headers: { ...own(blob), "content-type": "application/xml" } });
}

export const TIERS = ["Hot", "Cool", "Cold", "Archive"] as const;

export const setTier = async (blob: BlobRef, tier: string): Promise<void> => void (await call("PUT", path(blob, "comp=tier"), { headers: { ...own(blob), "x-ms-access-tier": tier } }));

/** Returns the snapshot's time. */
export async function takeSnapshot(blob: BlobRef): Promise<string> {
  const answer = await call("PUT", path(blob, "comp=snapshot"), { headers: own(blob) });
  return answer.headers.get("x-ms-snapshot") ?? "";
}

/** A blob goes with its snapshots. */
export const deleteBlob = async (blob: BlobRef): Promise<void> =>
  void (await call("DELETE", path(blob), { headers: { ...own(blob), ...(!blob.snapshot && { "x-ms-delete-snapshots": "include" }) } }));

/** Restores a deleted blob, with the snapshots that were deleted. */
export const undeleteBlob = async (blob: BlobRef): Promise<void> => void (await call("PUT", path({ ...blob, snapshot: "" }, "comp=undelete"), { headers: VERSION }));
