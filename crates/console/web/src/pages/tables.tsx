// The account's tables: list, create, drop.

import { useState } from "preact/hooks";
import { words } from "../api/http.ts";
import { createTable, dropTable, listTables, type TableInfo } from "../api/tables.ts";
import { bytes, count, plural } from "../lib/format.ts";
import { go, href } from "../lib/router.ts";
import { closeDialog, ConfirmByName, Dialog, openDialog, toast } from "../ui/dialog.tsx";
import { Button, Empty, Failure, Field, Notice, useLoaded } from "../ui/parts.tsx";

export function Tables() {
  const { value: tables, error, isLoading, again } = useLoaded(listTables, []);
  const [wanted, want] = useState("");
  const shown = tables?.filter(({ name }) => name.toLowerCase().includes(wanted.toLowerCase()));
  const create = (): void => openDialog(() => <CreateTable />);
  return (
    <div class="page">
      <header class="page-head">
        <div>
          <h1>Tables</h1>
          <p class="lead">{tables ? plural(tables.length, "table") : " "}</p>
        </div>
        <div class="actions">
          <Button kind="quiet" icon="refresh" label="Read again" busy={isLoading} onClick={again} />
          <Button kind="primary" icon="plus" onClick={create}>
            New table
          </Button>
        </div>
      </header>
      <Failure error={error} retry={again} />
      {tables?.length === 0 && (
        <Empty icon="table" title="No tables yet">
          <p>Create one here, or let any Azure SDK create it.</p>
          <Button kind="primary" icon="plus" onClick={create}>
            New table
          </Button>
        </Empty>
      )}
      {!!tables?.length && (
        <>
          {tables.length > 8 && (
            <input class="search" type="search" placeholder="Find a table" aria-label="Find a table" value={wanted} onInput={(e) => want(e.currentTarget.value)} />
          )}
          <div class="card">
            <table class="list">
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col" class="number">
                    Entities, about
                  </th>
                  <th scope="col" class="number">
                    Size, about
                  </th>
                  <th scope="col">
                    <span class="hidden">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>{shown?.map((table) => <TableRow key={table.name} table={table} again={again} />)}</tbody>
            </table>
            {shown?.length === 0 && <p class="none">No table is called like “{wanted}”.</p>}
          </div>
        </>
      )}
    </div>
  );
}

function TableRow({ table: { name, estimated_rows, estimated_bytes }, again }: { table: TableInfo; again: () => void }) {
  return (
    <tr>
      <td>
        <a class="mono strong" href={href(["tables", name])}>
          {name}
        </a>
      </td>
      <td class="number mono">{estimated_rows === undefined || estimated_rows === null ? "–" : count(estimated_rows)}</td>
      <td class="number mono">{estimated_bytes === undefined || estimated_bytes === null ? "–" : bytes(estimated_bytes)}</td>
      <td class="end">
        <Button kind="quiet" icon="trash" label={`Drop ${name}`} onClick={() => openDialog(() => <DropTable name={name} done={again} />)} />
      </td>
    </tr>
  );
}

export function DropTable({ name, done }: { name: string; done: () => void }) {
  return (
    <ConfirmByName
      title={`Drop ${name}?`}
      name={name}
      verb="Drop the table"
      what={
        <>
          All entities of <strong class="mono">{name}</strong> go with it. This can't be undone.
        </>
      }
      act={async () => {
        await dropTable(name);
        toast(`${name} was dropped.`);
        done();
      }}
    />
  );
}

function nameFault(name: string): string | undefined {
  if (!name) return undefined;
  if (!/^[A-Za-z]/.test(name)) return "The first character is a letter.";
  if (!/^[A-Za-z0-9]*$/.test(name)) return `Letters and digits only: ${/[^A-Za-z0-9]/.exec(name)?.[0]} is neither.`;
  if (name.length < 3 || name.length > 63) return "A name has 3 to 63 characters.";
  return name.toLowerCase() === "tables" ? "The service keeps this name for itself." : undefined;
}

function CreateTable() {
  const [name, set] = useState("");
  const [error, fail] = useState<unknown>();
  const [isBusy, busy] = useState(false);
  const wrong = nameFault(name);
  const create = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (wrong || !name) return;
    busy(true);
    try {
      await createTable(name);
      closeDialog();
      toast(`${name} was created.`);
      go(["tables", name]);
    } catch (refused) {
      fail(refused);
      busy(false);
    }
  };
  return (
    <Dialog title="New table">
      <form onSubmit={create}>
        <Field label="Name" hint="3 to 63 letters and digits, for example Books." fault={name.length > 2 ? wrong : undefined}>
          {(ids) => <input {...ids} class="mono" value={name} autofocus spellcheck={false} autocomplete="off" onInput={(e) => set(e.currentTarget.value)} />}
        </Field>
        {error !== undefined && <Notice>{words(error)}</Notice>}
        <div class="actions">
          <Button onClick={closeDialog}>Cancel</Button>
          <Button kind="primary" submit busy={isBusy} disabled={!name || !!wrong}>
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
