// The last delete, kept in this tab so that it can be undone: what was deleted is inserted again.

import { signal } from "@preact/signals";
import { ApiError, words } from "../api/http.ts";
import { batches, BatchError, deleteRows, sendBatch } from "../api/tables.ts";
import { plural } from "../lib/format.ts";
import { draftOf, partitionKey, type Raw, rowKey, writeEntity } from "../model/edm.ts";
import { toast } from "../ui/dialog.tsx";

export const lastDelete = signal<{ table: string; rows: Raw[] } | null>(null);
/** Grows when an undo has changed a table, so that its page reads again. */
export const undone = signal(0);

/** Deletes, and offers the way back. Returns what was deleted, also if a later batch failed. */
export async function deleteWithUndo(table: string, rows: Raw[]): Promise<Raw[]> {
  const deleted: Raw[] = [];
  try {
    await deleteRows(table, rows, (group) => deleted.push(...group));
  } catch (error) {
    toast(`${plural(rows.length - deleted.length, "entity", "entities")} not deleted. ${words(error)}`, "error");
  }
  if (deleted.length) {
    lastDelete.value = { table, rows: deleted };
    toast(`${plural(deleted.length, "entity", "entities")} deleted from ${table}.`, "good", { label: "Undo", act: () => void undo() });
  }
  return deleted;
}

/** What somebody has written again meanwhile stays as it is. Returns how many were inserted. */
async function restore(table: string, group: Raw[]): Promise<number> {
  const rows = [...group];
  while (rows.length) {
    try {
      await sendBatch(table, rows.map((raw) => ({ do: "insert", pk: partitionKey(raw), rk: rowKey(raw), body: writeEntity(draftOf(raw)) })));
      break;
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "EntityAlreadyExists") throw error;
      rows.splice(error instanceof BatchError ? error.index : 0, 1);
    }
  }
  return rows.length;
}

export async function undo(): Promise<void> {
  const last = lastDelete.value;
  if (!last) return;
  lastDelete.value = null;
  let restored = 0;
  const left = batches(last.rows);
  try {
    for (let group = left[0]; group; group = left[0]) {
      restored += await restore(last.table, group);
      left.shift();
    }
    toast(`${plural(restored, "entity is", "entities are")} back in ${last.table}.`);
  } catch (error) {
    // Those of the groups that are not done; one of them that is back after all is skipped the next time.
    lastDelete.value = { ...last, rows: left.flat() };
    toast(`${restored} of ${last.rows.length} are back. ${words(error)}`, "error");
  }
  undone.value += 1;
}
