// Uploads: files and folders that are dropped on a container's page, or chosen; how far they are, and a way to stop them.

import { useEffect, useRef, useState } from "preact/hooks";
import { bytes, count, plural } from "../lib/format.ts";
import { addFiles, cancelUpload, cancelUploads, clearUploads, retryUpload, type UploadItem, uploadItems, uploadsChanged, uploadsDone } from "../model/upload_list.ts";
import { toast } from "../ui/dialog.tsx";
import { Name } from "../ui/name.tsx";
import { Button } from "../ui/parts.tsx";

/** Lines that are shown of a long list. */
const SHOWN = 50;
/** Files that are taken over at once while a folder is read. */
const BUNCH = 100;

export function UploadButton({ container, prefix }: { container: string; prefix: string }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        class="hidden"
        type="file"
        multiple
        tabIndex={-1}
        aria-label="Files to upload"
        onChange={(event) => {
          addFiles(container, [...(event.currentTarget.files ?? [])].map((file) => ({ name: prefix + file.name, file })));
          // The same file may be chosen again.
          event.currentTarget.value = "";
        }}
      />
      <Button kind="primary" icon="upload" onClick={() => input.current?.click()}>
        Upload
      </Button>
    </>
  );
}

/** What makes a page take files that are dropped on it. */
export function useDrop(container: string, prefix: string) {
  const [isOver, over] = useState(false);
  const isFiles = (event: DragEvent): boolean => !!event.dataTransfer?.types.includes("Files");
  const on = {
    onDragOver: (event: DragEvent) => {
      if (!isFiles(event)) return;
      event.preventDefault();
      over(true);
    },
    onDragLeave: (event: DragEvent) => {
      if (!(event.currentTarget as Element).contains(event.relatedTarget as Node | null)) over(false);
    },
    onDrop: (event: DragEvent) => {
      if (!isFiles(event)) return;
      event.preventDefault();
      over(false);
      // The list is empty as soon as this function has returned.
      const items = [...(event.dataTransfer?.items ?? [])].filter(({ kind }) => kind === "file");
      const dropped = items.map((item) => item.webkitGetAsEntry() ?? item.getAsFile()).filter((one) => one !== null);
      void takeAll(container, prefix, dropped);
    },
  };
  return { isOver, on };
}

async function takeAll(container: string, prefix: string, dropped: (FileSystemEntry | File)[]): Promise<void> {
  let bunch: { name: string; file: File }[] = [];
  try {
    for (const one of dropped) {
      for await (const { path, file } of one instanceof File ? [{ path: one.name, file: one }] : filesOf(one, "")) {
        bunch.push({ name: prefix + path, file });
        if (bunch.length >= BUNCH) addFiles(container, bunch.splice(0));
      }
    }
  } catch (error) {
    toast(`A folder can't be read. ${(error as Error).message}`, "error");
  }
  if (bunch.length) addFiles(container, bunch);
}

/** The files in a folder and in those in it. */
async function* filesOf(entry: FileSystemEntry, folder: string): AsyncGenerator<{ path: string; file: File }> {
  const path = folder + entry.name;
  if (entry.isFile) {
    yield { path, file: await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject)) };
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    for (const inner of some) yield* filesOf(inner, `${path}/`);
  }
}

const isUnderWay = ({ state }: UploadItem): boolean => state === "waiting" || state === "sending";

export function Uploads({ container, done }: { container: string; done: () => void }) {
  uploadsChanged.value;
  const arrived = uploadsDone.value;
  const first = useRef(arrived);
  useEffect(() => {
    if (arrived === first.current) return;
    first.current = arrived;
    // Of many small files, not each one.
    const later = setTimeout(done, 150);
    return () => clearTimeout(later);
  }, [arrived]);
  const items = uploadItems(container);
  const waits = items.filter(isUnderWay).length;
  useEffect(() => {
    if (!waits) return;
    const ask = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [waits > 0]);
  if (!items.length) return null;
  const [sent, total] = [items.reduce((sum, item) => sum + (item.state === "done" ? item.size : item.sent), 0), items.reduce((sum, { size }) => sum + size, 0)];
  // What needs somebody comes first, then what is under way.
  const order = ["exists", "failed", "sending", "waiting", "done", "canceled"];
  const shown = order.flatMap((state) => items.filter((item) => item.state === state).slice(0, SHOWN)).slice(0, SHOWN);
  return (
    <section class="card uploads" aria-label="Uploads">
      <header class="card-head">
        <div class="progress">
          <progress aria-label="All uploads" value={total ? sent / total : waits ? 0 : 1} max={1} />
          <span role="status">
            {waits ? `${plural(waits, "file")} to go` : `${count(items.filter(({ state }) => state === "done").length)} of ${plural(items.length, "file")} uploaded`}, {bytes(sent)} of {bytes(total)}
          </span>
        </div>
        <div class="actions">{waits ? <Button onClick={() => cancelUploads(container)}>Cancel all</Button> : <Button onClick={() => clearUploads(container)}>Clear</Button>}</div>
      </header>
      <ul>
        {shown.map((item) => (
          <UploadLine key={item.id} item={item} />
        ))}
      </ul>
      {items.length > SHOWN && <p class="none">and {plural(items.length - SHOWN, "file")} more</p>}
    </section>
  );
}

function UploadLine({ item: { id, name, size, sent, state, error } }: { item: UploadItem }) {
  const percent = size ? `${Math.floor((sent / size) * 100)} %` : "";
  const text = { waiting: "waits", sending: percent || "sending", done: "uploaded", exists: "exists already", failed: error, canceled: "canceled" }[state];
  return (
    <li class={state}>
      <span class="mono">
        <Name text={name} />
      </span>
      <span class="faint">{bytes(size)}</span>
      {state === "sending" && <progress aria-label={`Upload of ${name}`} value={size ? sent / size : 0} max={1} />}
      <span class={state === "failed" || state === "exists" ? "fault" : "faint"}>{text}</span>
      <span class="spring" />
      {state === "exists" && <Button onClick={() => retryUpload(id, true)}>Replace</Button>}
      {state === "failed" && <Button onClick={() => retryUpload(id, false)}>Try again</Button>}
      {(state === "waiting" || state === "sending") && <Button kind="quiet" icon="close" label={`Cancel the upload of ${name}`} onClick={() => cancelUpload(id)} />}
    </li>
  );
}
