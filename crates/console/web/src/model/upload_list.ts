// Files on their way into containers, one after the other. Knows no page: it goes on while somebody looks at another one.

import { signal } from "@preact/signals";
import { ApiError, words } from "../api/http.ts";
import { uploadFile } from "../api/upload.ts";

export interface UploadItem {
  id: number;
  container: string;
  name: string;
  size: number;
  sent: number;
  state: "waiting" | "sending" | "done" | "exists" | "failed" | "canceled";
  error: string;
}

interface Entry extends UploadItem {
  /** None once it is not needed any more. */
  file?: File;
  abort: AbortController;
}

/** Grows whenever something of the list has changed. */
export const uploadsChanged = signal(0);
/** Grows when a file has arrived. */
export const uploadsDone = signal(0);

let entries: Entry[] = [];
/** Those that wait, in their order: a list of ten thousand is not searched for the next one. */
let waiting: Entry[] = [];
let isRunning = false;
let nextId = 1;

const changed = (): void => void (uploadsChanged.value += 1);

export const uploadItems = (container: string): readonly UploadItem[] => entries.filter((entry) => entry.container === container);

export function addFiles(container: string, files: Iterable<{ name: string; file: File }>): void {
  for (const { name, file } of files) {
    const entry: Entry = { id: nextId++, container, name, size: file.size, sent: 0, state: "waiting", error: "", file, abort: new AbortController() };
    entries.push(entry);
    waiting.push(entry);
  }
  changed();
  void run();
}

async function run(): Promise<void> {
  if (isRunning) return;
  isRunning = true;
  for (let entry = waiting.shift(); entry; entry = waiting.shift()) if (entry.state === "waiting") await send(entry, false);
  isRunning = false;
}

async function send(entry: Entry, overwrite: boolean): Promise<void> {
  const { container, name, file, abort } = entry;
  if (!file) return;
  Object.assign(entry, { state: "sending", sent: 0, error: "" });
  changed();
  try {
    await uploadFile({
      container,
      name,
      file,
      overwrite,
      abort: abort.signal,
      sent: (bytes) => {
        entry.sent = bytes;
        changed();
      },
    });
    entry.state = "done";
    delete entry.file;
    uploadsDone.value += 1;
  } catch (error) {
    if (abort.signal.aborted) entry.state = "canceled";
    else if (error instanceof ApiError && error.code === "BlobAlreadyExists") entry.state = "exists";
    else Object.assign(entry, { state: "failed", error: words(error) });
    if (entry.state === "canceled") delete entry.file;
  }
  changed();
}

export function cancelUpload(id: number): void {
  const entry = entries.find((one) => one.id === id);
  if (!entry || (entry.state !== "waiting" && entry.state !== "sending")) return;
  entry.abort.abort();
  if (entry.state === "waiting") {
    entry.state = "canceled";
    delete entry.file;
  }
  changed();
}

export const cancelUploads = (container: string): void => uploadItems(container).forEach(({ id }) => cancelUpload(id));

/** Sends a file again; what is there already is replaced if it was said so. */
export function retryUpload(id: number, overwrite: boolean): void {
  const entry = entries.find((one) => one.id === id);
  if (entry?.file) void send(entry, overwrite);
}

/** Forgets those that are not under way. */
export function clearUploads(container: string): void {
  entries = entries.filter((entry) => entry.container !== container || entry.state === "waiting" || entry.state === "sending");
  changed();
}
