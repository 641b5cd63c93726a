// Import and export dialogs, with progress.

import { useRef, useState } from "preact/hooks";
import { words } from "../api/http.ts";
import { exportTable, type Format, importFile, type Mode, type Progress } from "../api/transfer.ts";
import { bytes, count, plural } from "../lib/format.ts";
import { closeDialog, Dialog, toast } from "../ui/dialog.tsx";
import { Button, Field, Notice } from "../ui/parts.tsx";

const FORMATS: [Format, string][] = [
  ["jsonl", "JSON lines: one entity a line, every type kept"],
  ["csv", "CSV: for spreadsheets, as Storage Explorer writes it"],
];

function FormatField({ format, choose }: { format: Format; choose: (format: Format) => void }) {
  return (
    <fieldset class="choices">
      <legend>Format</legend>
      {FORMATS.map(([name, label]) => (
        <label key={name}>
          <input type="radio" name="format" checked={format === name} onChange={() => choose(name)} /> {label}
        </label>
      ))}
    </fieldset>
  );
}

export function ExportDialog({ table, filter, estimate }: { table: string; filter: string; estimate: number }) {
  const [format, choose] = useState<Format>("jsonl");
  const [state, set] = useState<{ rows: number; bytes: number } | undefined>();
  const [error, fail] = useState<unknown>();
  const abort = useRef<AbortController | undefined>(undefined);
  const run = async (): Promise<void> => {
    abort.current = new AbortController();
    fail(undefined);
    set({ rows: 0, bytes: 0 });
    const parts: Blob[] = [];
    let [rows, size] = [0, 0];
    try {
      for await (const part of exportTable(table, filter, format, abort.current.signal)) {
        // As blobs, which the browser may keep on disk.
        const blob = new Blob([part.text]);
        parts.push(blob);
        rows += part.rows;
        size += blob.size;
        set({ rows, bytes: size });
      }
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob(parts, { type: format === "csv" ? "text/csv" : "application/x-ndjson" }));
      link.download = `${table}.${format}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      toast(`${plural(rows, "entity", "entities")} exported to ${link.download}.`);
      closeDialog();
    } catch (wrong) {
      set(undefined);
      if (!abort.current.signal.aborted) fail(wrong);
    }
  };
  const cancel = (): void => {
    abort.current?.abort();
    closeDialog();
  };
  return (
    <Dialog title={`Export ${table}`} onClose={cancel}>
      <p>
        {filter ? (
          <>
            Exports what matches <code>{filter}</code>.
          </>
        ) : (
          "Exports the whole table."
        )}
      </p>
      <FormatField format={format} choose={choose} />
      {state && <Bar label="Export" value={state.rows} of={estimate} text={`${plural(state.rows, "entity", "entities")}, ${bytes(state.bytes)}`} />}
      {error !== undefined && <Notice>{words(error)}</Notice>}
      <div class="actions">
        <Button onClick={cancel}>Cancel</Button>
        <Button kind="primary" icon="download" busy={!!state} onClick={() => void run()}>
          Export
        </Button>
      </div>
    </Dialog>
  );
}

const MODES: [Mode, string][] = [
  ["upsert", "is replaced by the one in the file"],
  ["merge", "gets the file's properties and keeps its others"],
  ["insert", "stays as it is; the file's one is rejected"],
];

export function ImportDialog({ table, done }: { table: string; done: () => void }) {
  const [file, take] = useState<File | undefined>();
  const [format, choose] = useState<Format>("jsonl");
  const [mode, behave] = useState<Mode>("upsert");
  const [progress, report] = useState<Progress | undefined>();
  const [isRunning, running] = useState(false);
  const [isDone, finish] = useState(false);
  const [error, fail] = useState<unknown>();
  const abort = useRef<AbortController | undefined>(undefined);
  const shown = useRef(0);
  const run = async (): Promise<void> => {
    if (!file) return;
    abort.current = new AbortController();
    running(true);
    fail(undefined);
    try {
      const last = await importFile(table, file, format, mode, abort.current.signal, (now) => {
        if (performance.now() - shown.current < 60) return;
        shown.current = performance.now();
        report(now);
      });
      report(last);
      finish(true);
      if (last.rejected === 0 && !abort.current.signal.aborted) {
        toast(`${plural(last.entities, "entity", "entities")} imported into ${table}.`);
        closeDialog();
      }
    } catch (wrong) {
      fail(wrong);
    } finally {
      running(false);
      done();
    }
  };
  const close = (): void => {
    abort.current?.abort();
    closeDialog();
  };
  return (
    <Dialog title={`Import into ${table}`} onClose={close}>
      <Field label="File" hint="Files of partita export and of Azure Storage Explorer fit.">
        {(ids) => (
          <input
            {...ids}
            type="file"
            accept=".jsonl,.ndjson,.json,.csv,.txt"
            disabled={isRunning}
            onChange={(event) => {
              const chosen = event.currentTarget.files?.[0];
              take(chosen);
              finish(false);
              report(undefined);
              if (chosen) choose(/\.csv$/i.test(chosen.name) ? "csv" : "jsonl");
            }}
          />
        )}
      </Field>
      <FormatField format={format} choose={choose} />
      <Field label="An entity that exists already">
        {(ids) => (
          <select {...ids} value={mode} onChange={(event) => behave(event.currentTarget.value as Mode)}>
            {MODES.map(([name, label]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      {progress && <Bar label="Import" value={progress.done} of={progress.total} text={`${plural(progress.entities, "entity", "entities")}, ${bytes(progress.done)} of ${bytes(progress.total)}`} />}
      {!!progress?.rejected && (
        <Notice kind="warning">
          <strong>{plural(progress.rejected, "line was", "lines were")} rejected.</strong>
          <ul class="rejects">
            {progress.rejects.map(({ line, text }) => (
              <li key={line}>
                line {count(line)}: {text}
              </li>
            ))}
          </ul>
        </Notice>
      )}
      {error !== undefined && <Notice>{words(error)}</Notice>}
      <div class="actions">
        <Button onClick={close}>{isDone ? "Close" : "Cancel"}</Button>
        <Button kind="primary" icon="upload" busy={isRunning} disabled={!file || isDone} onClick={() => void run()}>
          Import
        </Button>
      </div>
    </Dialog>
  );
}

function Bar({ label, value, of, text }: { label: string; value: number; of: number; text: string }) {
  const share = of > 0 ? Math.min(1, value / of) : undefined;
  return (
    <div class="progress">
      <progress aria-label={label} value={share} max={1} />
      <span class="mono">{text}</span>
    </div>
  );
}
