// One table: the filter, what the query cost, the grid, and what can be done with rows.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { ApiError, words } from "../api/http.ts";
import { session } from "../api/session.ts";
import { getEntity, listTables } from "../api/tables.ts";
import { FilterBox } from "../filter/box.tsx";
import { Grid } from "../grid/grid.tsx";
import { Rows } from "../grid/rows.ts";
import { bytes, count, plural } from "../lib/format.ts";
import { go, href, replace, route } from "../lib/router.ts";
import { keyOf, type Raw } from "../model/edm.ts";
import { LANGUAGES, querySnippet } from "../model/snippets.ts";
import { Cost } from "./cost.tsx";
import { EntityPanel } from "./entity.tsx";
import { DropTable } from "./tables.tsx";
import { ExportDialog, ImportDialog } from "./transfer.tsx";
import { deleteWithUndo, lastDelete, undo, undone } from "./undo.ts";
import { copyText, openDialog } from "../ui/dialog.tsx";
import { Button, Empty, Failure, Menu, useLoaded } from "../ui/parts.tsx";

export function TablePage({ name }: { name: string }) {
  const asked = route.value.query.get("filter") ?? "";
  const text = useSignal(asked);
  const round = useSignal(0);
  const rows = useMemo(() => new Rows({ table: name, filter: asked }), [name, asked, round.value, undone.value]);
  const seen = useRef(rows.seen);
  const selection = useSignal(new Map<string, Raw>());
  const widths = useSignal<Record<string, number>>({});
  const hidden = useSignal<Set<string>>(new Set());
  const info = useLoaded(async () => (await listTables()).find((table) => table.name.toLowerCase() === name.toLowerCase()), [name, round.value]).value;
  // Names that earlier queries showed are still completed.
  for (const [property, types] of seen.current) if (!rows.seen.has(property)) rows.seen.set(property, types);
  seen.current = rows.seen;

  useEffect(() => {
    text.value = asked;
    selection.value = new Map();
    return () => rows.stop();
  }, [rows]);
  const again = (): void => void (round.value += 1);
  const run = (): void => {
    const filter = text.value.trim();
    if (filter === asked) again();
    else replace(["tables", name], { filter });
  };
  const openRow = (raw: Raw): void => openDialog(() => <EntityPanel table={name} seen={rows.seen} raw={raw} saved={saved} deleted={removed} />);
  const saved = (pk: string, rk: string, isNew: boolean): void => {
    if (isNew) return again();
    void getEntity(name, pk, rk).then((raw) => rows.put(raw), again);
  };
  const removed = (gone: Raw[]): void => {
    rows.remove(new Set(gone.map(keyOf)));
    const left = new Map(selection.value);
    for (const raw of gone) left.delete(keyOf(raw));
    selection.value = left;
  };
  const remove = (): void => {
    if (selection.value.size) void deleteWithUndo(name, [...selection.value.values()]).then(removed);
  };
  const add = (): void => openDialog(() => <EntityPanel table={name} seen={rows.seen} saved={saved} deleted={removed} />);
  const endpoint = (session.value?.endpoints.table ?? "").replace(/\/$/, "");
  const columns = useComputed(() => rows.columns.value.filter((column) => !hidden.value.has(column)));
  const failure = rows.error.value;
  const isRefusedFilter = failure instanceof ApiError && failure.status === 400 && !!asked;
  const isEmpty = rows.isComplete.value && rows.known.value === 0;
  const undoable = lastDelete.value?.table === name ? lastDelete.value.rows.length : 0;

  return (
    <div class="page fill">
      <header class="page-head">
        <div>
          <p class="crumbs">
            <a href={href(["tables"])}>Tables</a>
          </p>
          <h1 class="mono">{name}</h1>
        </div>
        <div class="actions">
          {undoable > 0 && (
            <Button kind="quiet" icon="undo" onClick={() => void undo()}>
              Undo delete of {count(undoable)}
            </Button>
          )}
          <Menu
            label="Copy this query as code"
            icon="code"
            text="Copy as"
            kind="quiet"
            items={LANGUAGES.map((language) => ({ label: language, act: () => void copyText(querySnippet(language, { endpoint, table: name, filter: asked }), `The query as ${language}`) }))}
          />
          <Menu
            label="More"
            icon="more"
            kind="quiet"
            end
            items={[
              { label: "Import a file", icon: "upload", act: () => openDialog(() => <ImportDialog table={name} done={again} />) },
              { label: "Export to a file", icon: "download", act: () => openDialog(() => <ExportDialog table={name} filter={asked} estimate={asked ? 0 : (info?.estimated_rows ?? 0)} />) },
              ...(hidden.value.size ? [{ label: `Show ${plural(hidden.value.size, "hidden column")}`, icon: "table" as const, act: () => void (hidden.value = new Set()) }] : []),
              ...(hidden.value.has("Timestamp") ? [] : [{ label: "Hide Timestamp", icon: "table" as const, act: () => void (hidden.value = new Set([...hidden.value, "Timestamp"])) }]),
              { label: "Stored access policies", icon: "key", act: () => go(["access"], { tab: "policies", of: `table/${name}` }) },
              { label: "Drop the table", icon: "trash", isDanger: true, act: () => openDialog(() => <DropTable name={name} done={() => go(["tables"])} />) },
            ]}
          />
          <Button kind="primary" icon="plus" onClick={add}>
            Add entity
          </Button>
        </div>
      </header>
      <div class="query">
        <FilterBox text={text} seen={() => rows.seen} run={run} refused={isRefusedFilter ? words(failure) : undefined} />
        <Button kind={text.value.trim() === asked ? "plain" : "primary"} icon="play" busy={rows.isLoading.value && rows.known.value === 0} onClick={run}>
          Run
        </Button>
      </div>
      <Cost table={name} filter={asked} rows={rows} />
      {failure !== undefined && !isRefusedFilter && <Failure error={failure} retry={() => rows.resume()} />}
      {isEmpty ? (
        asked ? (
          <Empty icon="search" title="Nothing matches">
            <p>
              No entity of {name} matches <code>{asked}</code>. Names and texts are compared exactly, with case.
            </p>
            <Button onClick={() => replace(["tables", name])}>Show all entities</Button>
          </Empty>
        ) : (
          <Empty icon="table" title={`${name} is empty`}>
            <p>Add an entity, import a file, or write with any Azure SDK.</p>
            <Button kind="primary" icon="plus" onClick={add}>
              Add entity
            </Button>
            <Button icon="upload" onClick={() => openDialog(() => <ImportDialog table={name} done={again} />)}>
              Import a file
            </Button>
          </Empty>
        )
      ) : (
        <>
          <Grid rows={rows} label={`Entities of ${name}`} estimate={asked ? 0 : (info?.estimated_rows ?? 0)} columns={columns.value} widths={widths} selection={selection} open={openRow} remove={remove} />
          <Foot rows={rows} total={asked ? undefined : info?.estimated_rows} size={info?.estimated_bytes} chosen={selection.value} remove={remove} clear={() => void (selection.value = new Map())} open={openRow} />
        </>
      )}
    </div>
  );
}

interface FootProps {
  rows: Rows;
  total: number | undefined;
  size: number | undefined;
  chosen: Map<string, Raw>;
  remove: () => void;
  clear: () => void;
  open: (raw: Raw) => void;
}

function Foot({ rows, total, size, chosen, remove, clear, open }: FootProps) {
  const goal = rows.goal.value;
  const only = chosen.size === 1 ? [...chosen.values()][0] : undefined;
  return (
    <footer class={`grid-foot${chosen.size ? " has-chosen" : ""}`}>
      {chosen.size > 0 ? (
        <>
          <strong>{plural(chosen.size, "entity", "entities")} selected</strong>
          {only && (
            <Button kind="quiet" icon="arrow" onClick={() => open(only)}>
              Open
            </Button>
          )}
          <Button kind="danger" icon="trash" onClick={remove}>
            Delete {chosen.size === 1 ? "it" : "them"}
          </Button>
          <Button kind="quiet" onClick={clear}>
            Clear
          </Button>
        </>
      ) : (
        <>
          <span role="status">
            {rows.isComplete.value ? plural(rows.known.value, "entity", "entities") : `${count(rows.known.value)} read`}
            {!rows.isComplete.value && total ? ` of about ${count(total)}` : ""}
            {goal !== undefined && `, on the way to row ${count(goal)}`}
          </span>
          {size ? <span class="faint">a table of about {bytes(size)}</span> : null}
          {rows.isLoading.value && (
            <Button kind="quiet" icon="pause" onClick={() => rows.pause()}>
              Stop
            </Button>
          )}
          <span class="faint keys">Enter opens, Space selects, Delete deletes</span>
        </>
      )}
    </footer>
  );
}

