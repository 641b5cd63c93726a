// Uploads one file: as a whole if it is small, otherwise block after block. Of a file, only the block that is being sent is
// read, and it is the browser that reads it.

import { escape } from "../lib/xml.ts";
import { at, leaseHeader, VERSION } from "./blobs.ts";
import { ApiError, call } from "./http.ts";

const MIB = 1024 * 1024;
export const BLOCK_BYTES = 4 * MIB;
const BLOCKS_MAX = 50_000;
const ATTEMPTS = 4;

export interface FileUpload {
  container: string;
  name: string;
  file: Blob;
  /** What is there already is replaced. */
  overwrite: boolean;
  abort: AbortSignal;
  /** Bytes that the server has. */
  sent: (bytes: number) => void;
}

/** Fails with `BlobAlreadyExists` if there is one and it may not be replaced. What was sent of a canceled upload is forgotten within a week. */
export async function uploadFile({ container, name, file, overwrite, abort, sent }: FileUpload): Promise<void> {
  const path = at(container, checked(name));
  const headers = {
    ...VERSION,
    ...leaseHeader(container, name),
    "x-ms-blob-content-type": /^[\x20-\x7e]+$/.test(file.type) ? file.type : "application/octet-stream",
    ...(!overwrite && { "if-none-match": "*" }),
  };
  if (file.size <= BLOCK_BYTES) {
    await attempt(file, abort, () => call("PUT", path, { body: file, abort, headers: { ...headers, "x-ms-blob-type": "BlockBlob" } }));
    sent(file.size);
    return;
  }
  // Known at once, and not after everything was sent.
  if (!overwrite && (await exists(path, abort))) throw new ApiError(409, "BlobAlreadyExists", "There is a blob of this name.");
  const ids: string[] = [];
  const upload = crypto.randomUUID().slice(0, 8);
  const size = Math.max(BLOCK_BYTES, Math.ceil(file.size / BLOCKS_MAX / MIB) * MIB);
  for (let from = 0; from < file.size; from += size) {
    const id = btoa(`${upload}-${String(ids.length).padStart(5, "0")}`);
    const block = file.slice(from, from + size);
    await attempt(block, abort, () => call("PUT", `${path}?comp=block&blockid=${encodeURIComponent(id)}`, { body: block, abort, headers: { ...VERSION, ...leaseHeader(container, name) } }));
    ids.push(id);
    sent(from + block.size);
  }
  const body = `<?xml version="1.0" encoding="utf-8"?><BlockList>${ids.map((id) => `<Latest>${escape(id)}</Latest>`).join("")}</BlockList>`;
  await call("PUT", `${path}?comp=blocklist`, { body, abort, headers: { ...headers, "content-type": "application/xml" } });
}

function checked(name: string): string {
  if (name.length > 1024) throw new Error(`The name has ${name.length} characters; a blob's name has at most 1,024.`);
  if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(name)) throw new Error("The name of the file is not Unicode.");
  return name;
}

async function exists(path: string, abort: AbortSignal): Promise<boolean> {
  try {
    await call("HEAD", path, { headers: VERSION, abort });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return false;
    throw error;
  }
}

/** Sends a block again if the server was busy or did not answer: the same block twice is the same as once. */
async function attempt(part: Blob, abort: AbortSignal, send: () => Promise<Response>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await send();
      return;
    } catch (error) {
      const isPassing = error instanceof ApiError && (error.status === 0 || error.status >= 500) && !abort.aborted;
      if (!isPassing) throw error;
      await part.slice(0, 1).arrayBuffer().catch(() => {
        throw new Error("The file can't be read any more. It was changed, moved or deleted.");
      });
      if (tries >= ATTEMPTS) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200 * 2 ** tries));
    }
  }
}
