// One entity: a form with an editor for each type, its JSON, the same as code; save, clone, delete.

import { useState } from "preact/hooks";
import { ApiError, words } from "../api/http.ts";
import { session } from "../api/session.ts";
import { getEntity, insertEntity, updateEntity } from "../api/tables.ts";
import type { Seen } from "../filter/complete.ts";
import { type Draft, draftOf, etagOf, fault, keyFault, nameFault, prettyEntity, type Raw, readEntity, valueOf, writeEntity } from "../model/edm.ts";
import { entitySnippet, LANGUAGES, type Language } from "../model/snippets.ts";
import { closeDialog, copyText, Dialog, openDialog, toast } from "../ui/dialog.tsx";
import { Button, Notice, Tabs } from "../ui/parts.tsx";
import { EntityForm } from "./entity_form.tsx";
import { deleteWithUndo } from "./undo.ts";

interface PanelProps {
  table: string;
  seen: Seen;
  /** The entity as it was read; none for a new one. */
  raw?: Raw;
  /** What a new one begins with. */
  copy?: Draft;
  saved: (pk: string, rk: string, isNew: boolean) => void;
  deleted: (rows: Raw[]) => void;
}

const VIEWS = [
  ["form", "Form"],
  ["json", "JSON"],
  ["code", "Code"],
] as const;
type View = (typeof VIEWS)[number][0];

export function EntityPanel({ table, seen, raw, copy, saved, deleted }: PanelProps) {
  const [base, setBase] = useState(raw);
  const [draft, setDraft] = useState<Draft>(() => (raw ? draftOf(raw) : (copy ?? { partitionKey: "", rowKey: "", properties: [] })));
  const [json, setJson] = useState("");
  const [view, setView] = useState<View>("form");
  const [error, fail] = useState<unknown>();
  const [isBusy, busy] = useState(false);
  const [language, speak] = useState<Language>("curl");
  const [isTried, tried] = useState(false);
  const isNew = !base;
  const isStale = error instanceof ApiError && error.status === 412;

  /** The draft as the view that is shown has it; undefined if it can't be read. */
  const current = (): Draft | undefined => {
    if (view !== "json") return draft;
    try {
      const read = readEntity(json);
      if (base && (read.partitionKey !== draft.partitionKey || read.rowKey !== draft.rowKey)) throw new Error("The keys of an entity can't change. Clone it to get one with other keys.");
      setDraft(read);
      fail(undefined);
      return read;
    } catch (wrong) {
      fail(wrong);
      return undefined;
    }
  };
  const show = (next: View): void => {
    const now = current();
    if (!now) return;
    if (next === "json") setJson(prettyEntity(now));
    fail(undefined);
    setView(next);
  };
  const save = async (etag: string): Promise<void> => {
    const now = current();
    tried(true);
    if (!now || (view === "form" && draftFault(now, isNew))) return;
    busy(true);
    fail(undefined);
    try {
      if (isNew) await insertEntity(table, writeEntity(now));
      else await updateEntity(table, now.partitionKey, now.rowKey, etag, writeEntity(now));
      toast(isNew ? "The entity was added." : "The entity was saved.");
      closeDialog();
      saved(now.partitionKey, now.rowKey, isNew);
    } catch (wrong) {
      fail(wrong);
      busy(false);
    }
  };
  const reload = async (): Promise<void> => {
    try {
      const fresh = await getEntity(table, draft.partitionKey, draft.rowKey);
      setBase(fresh);
      setDraft(draftOf(fresh));
      setJson(prettyEntity(draftOf(fresh)));
      fail(undefined);
    } catch (wrong) {
      fail(wrong);
    }
  };
  const clone = (): void => {
    const now = current();
    if (now) openDialog(() => <EntityPanel key="clone" table={table} seen={seen} copy={{ ...now, rowKey: `${now.rowKey}-copy` }} saved={saved} deleted={deleted} />);
  };
  const remove = async (): Promise<void> => {
    if (!base) return;
    const gone = await deleteWithUndo(table, [base]);
    if (gone.length) closeDialog();
    deleted(gone);
  };
  const endpoint = (session.value?.endpoints.table ?? "").replace(/\/$/, "");
  const snippet = view === "code" ? entitySnippet(language, { endpoint, table, draft }) : "";
  const stamp = base && valueOf(base, "Timestamp")?.text;
  return (
    <Dialog
      title={isNew ? (copy ? `Clone into ${table}` : `New entity in ${table}`) : `Entity of ${table}`}
      side
      footer={
        <>
          {!isNew && (
            <>
              <Button kind="quiet" icon="trash" label="Delete this entity" onClick={() => void remove()} />
              <Button kind="quiet" icon="copy" onClick={clone}>
                Clone
              </Button>
            </>
          )}
          <span class="spring" />
          <Button onClick={closeDialog}>Cancel</Button>
          <Button kind="primary" busy={isBusy} onClick={() => void save(base ? etagOf(base) : "*")}>
            {isNew ? "Add" : "Save"}
          </Button>
        </>
      }
    >
      <Tabs label="View" tabs={VIEWS} chosen={view} choose={show} />
      {error !== undefined && (
        <Notice>
          {isStale ? "Someone changed this entity after you opened it." : words(error)}
          {isStale && (
            <div class="actions start">
              <Button onClick={() => void reload()}>Show theirs</Button>
              <Button kind="danger" onClick={() => void save("*")}>
                Overwrite with mine
              </Button>
            </div>
          )}
        </Notice>
      )}
      {view === "form" && <EntityForm draft={draft} isNew={isNew} isTried={isTried} seen={seen} change={setDraft} />}
      {view === "json" && (
        <textarea class="mono json" aria-label="The entity as JSON" spellcheck={false} value={json} onInput={(event) => setJson(event.currentTarget.value)} />
      )}
      {view === "code" && (
        <>
          <div class="segments" role="group" aria-label="Language">
            {LANGUAGES.map((name) => (
              <Button key={name} kind="quiet" pressed={name === language} onClick={() => speak(name)}>
                {name}
              </Button>
            ))}
          </div>
          <pre class="code" tabIndex={0} aria-label={`The entity as ${language}`}>
            {snippet}
          </pre>
          <Button icon="copy" onClick={() => void copyText(snippet, `The entity as ${language}`)}>
            Copy
          </Button>
        </>
      )}
      {stamp && view === "form" && (
        <p class="faint mono stamp">
          Timestamp {stamp}
          <br />
          ETag {base ? etagOf(base) : ""}
        </p>
      )}
    </Dialog>
  );
}

export function draftFault(draft: Draft, isNew: boolean): string | undefined {
  const keys = isNew ? (keyFault(draft.partitionKey) ?? keyFault(draft.rowKey)) : undefined;
  if (keys) return keys;
  const names = new Set<string>();
  for (const [name, value] of draft.properties) {
    const wrong = nameFault(name) ?? fault(value) ?? (names.has(name) ? `${name} is there twice.` : undefined);
    if (wrong) return wrong;
    names.add(name);
  }
  return undefined;
}
