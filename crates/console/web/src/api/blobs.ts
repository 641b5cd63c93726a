// The Blob service, through the session: `/api/forward/blob/…`. Containers, and lists of blobs; `blob.ts` has one blob.

import { children, child, type Element, parse, textAt } from "../lib/xml.ts";
import { call } from "./http.ts";

/** Of the protocol; older ones have no tags. */
export const VERSION = { "x-ms-version": "2021-12-02" };

export interface LeaseState {
  /** "available", "leased", "breaking", "broken" or "expired". */
  state: string;
  /** "infinite" or "fixed", while it is leased. */
  duration: string;
}

export interface ContainerInfo {
  name: string;
  modified: string;
  /** "", "blob" or "container". */
  access: string;
  lease: LeaseState;
}

export interface BlobInfo {
  name: string;
  /** Its time, if it is a snapshot. */
  snapshot: string;
  isDeleted: boolean;
  /** Days until a deleted one is gone. */
  daysLeft: string;
  type: string;
  contentType: string;
  size: number;
  tier: string;
  modified: string;
  lease: LeaseState;
}

/** A folder is a name that ends with a slash, which names of blobs begin with. */
export interface BlobPage {
  entries: ({ folder: string } | { blob: BlobInfo })[];
  /** Where the next page begins; empty at the end. */
  next: string;
}

/**
 * The whole path in one part: browsers take the parts `.` and `..` out of an address, also if the dots are encoded, and never
 * look into a part. The service reads an encoded slash as a slash.
 */
export const at = (container: string, blob?: string): string => `/api/forward/blob/${encodeURIComponent(blob === undefined ? container : `${container}/${blob}`)}`;

const xmlOf = async (answer: Response): Promise<Element> => parse((await answer.text()).replace(/^\ufeff/, ""));

const leaseOf = (properties: Element | undefined): LeaseState => ({ state: textAt(properties, "LeaseState"), duration: textAt(properties, "LeaseDuration") });

export async function listContainers(): Promise<ContainerInfo[]> {
  const found: ContainerInfo[] = [];
  let marker = "";
  do {
    const answer = await call("GET", `/api/forward/blob/?comp=list&include=system${marker && `&marker=${encodeURIComponent(marker)}`}`, { headers: VERSION });
    const root = await xmlOf(answer);
    for (const element of children(child(root, "Containers"), "Container")) {
      const properties = child(element, "Properties");
      found.push({ name: textAt(element, "Name"), modified: textAt(properties, "Last-Modified"), access: textAt(properties, "PublicAccess"), lease: leaseOf(properties) });
    }
    marker = textAt(root, "NextMarker");
  } while (marker);
  return found;
}

export const createContainer = async (name: string): Promise<void> => void (await call("PUT", `${at(name)}?restype=container`, { headers: VERSION }));

export const deleteContainer = async (name: string): Promise<void> => void (await call("DELETE", `${at(name)}?restype=container`, { headers: { ...VERSION, ...leaseHeader(name) } }));

/** The state of a container's lease, and who may read it without a key. */
export async function containerState(name: string): Promise<{ lease: LeaseState; access: string; modified: string }> {
  const { headers } = await call("GET", `${at(name)}?restype=container`, { headers: VERSION });
  const of = (header: string): string => headers.get(header) ?? "";
  return { lease: { state: of("x-ms-lease-state"), duration: of("x-ms-lease-duration") }, access: of("x-ms-blob-public-access"), modified: of("last-modified") };
}

export interface ListRequest {
  container: string;
  prefix: string;
  marker?: string;
  /** Names in folders are shown as their folder. Not together with snapshots. */
  byFolder: boolean;
  snapshots?: boolean;
  deleted?: boolean;
  most: number;
}

export async function listBlobs({ container, prefix, marker = "", byFolder, snapshots, deleted, most }: ListRequest): Promise<BlobPage> {
  const include = [snapshots && "snapshots", deleted && "deleted"].filter(Boolean).join(",");
  const options = Object.entries({ prefix, marker, delimiter: byFolder ? "/" : "", include, maxresults: String(most) }).filter(([, value]) => value);
  const query = options.map(([name, value]) => `&${name}=${encodeURIComponent(value)}`).join("");
  const root = await xmlOf(await call("GET", `${at(container)}?restype=container&comp=list${query}`, { headers: VERSION }));
  const entries = (child(root, "Blobs")?.children ?? []).map((element) => (element.name === "BlobPrefix" ? { folder: textAt(element, "Name") } : { blob: blobOf(element) }));
  return { entries, next: textAt(root, "NextMarker") };
}

function blobOf(element: Element): BlobInfo {
  const properties = child(element, "Properties");
  const of = (name: string): string => textAt(properties, name);
  return {
    name: textAt(element, "Name"),
    snapshot: textAt(element, "Snapshot"),
    isDeleted: textAt(element, "Deleted") === "true",
    daysLeft: of("RemainingRetentionDays"),
    type: of("BlobType"),
    contentType: of("Content-Type"),
    size: Number(of("Content-Length")),
    tier: of("ArchiveStatus") || of("AccessTier"),
    modified: of("Last-Modified"),
    lease: leaseOf(properties),
  };
}

/** Most snapshots of a blob that are shown. */
const SNAPSHOTS_MAX = 1000;

/** The snapshots of one blob, also deleted ones, the newest first. */
export async function listSnapshots(container: string, blob: string): Promise<BlobInfo[]> {
  const found: BlobInfo[] = [];
  let marker = "";
  do {
    const page = await listBlobs({ container, prefix: blob, marker, byFolder: false, snapshots: true, deleted: true, most: SNAPSHOTS_MAX });
    for (const entry of page.entries) {
      // A blob's own name comes before all that it is the beginning of.
      if (!("blob" in entry) || entry.blob.name !== blob) return found.reverse();
      if (entry.blob.snapshot) found.push(entry.blob);
    }
    marker = page.next;
  } while (marker && found.length < SNAPSHOTS_MAX);
  return found.reverse();
}

/** Metadata of a blob, with its names as they are spelled: those of headers come in small letters. */
export async function spelledMetadata(container: string, blob: string): Promise<[string, string][] | undefined> {
  const root = await xmlOf(await call("GET", `${at(container)}?restype=container&comp=list&include=metadata&maxresults=1&prefix=${encodeURIComponent(blob)}`, { headers: VERSION }));
  const element = child(child(root, "Blobs"), "Blob");
  return textAt(element, "Name") === blob ? (child(element, "Metadata")?.children ?? []).map(({ name, text }) => [name, text]) : undefined;
}

/** Leases that this page has acquired, by container and blob: what is leased is written with its id. */
const leases = new Map<string, string>();
const leaseKey = (container: string, blob = ""): string => `${container}/${blob}`;

export const heldLease = (container: string, blob?: string): string => leases.get(leaseKey(container, blob)) ?? "";

export function leaseHeader(container: string, blob?: string): Record<string, string> {
  const id = heldLease(container, blob);
  return id ? { "x-ms-lease-id": id } : {};
}

export type LeaseAction = { do: "acquire"; seconds: number } | { do: "renew" | "release"; id: string } | { do: "break"; seconds: string };

/** Returns the lease's id after it was acquired or renewed. */
export async function lease(action: LeaseAction, container: string, blob?: string): Promise<string> {
  const path = `${at(container, blob)}?${blob === undefined ? "restype=container&" : ""}comp=lease`;
  const headers: Record<string, string> = { ...VERSION, "x-ms-lease-action": action.do };
  if (action.do === "acquire") headers["x-ms-lease-duration"] = String(action.seconds);
  else if (action.do === "break") {
    if (action.seconds) headers["x-ms-lease-break-period"] = action.seconds;
  } else headers["x-ms-lease-id"] = action.id;
  const answer = await call("PUT", path, { headers });
  const id = answer.headers.get("x-ms-lease-id") ?? "";
  if (action.do === "acquire" || action.do === "renew") leases.set(leaseKey(container, blob), id);
  else leases.delete(leaseKey(container, blob));
  return id;
}
