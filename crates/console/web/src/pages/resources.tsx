// What the lists of tables, of queues and of containers have in common: all of a kind, a new one, one removed after its name was typed.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { words } from "../api/http.ts";
import { plural } from "../lib/format.ts";
import { go, href } from "../lib/router.ts";
import { closeDialog, ConfirmByName, Dialog, openDialog, toast } from "../ui/dialog.tsx";
import type { IconName } from "../ui/icons.tsx";
import { Button, Empty, Failure, Field, Notice, useLoaded } from "../ui/parts.tsx";

/** Tables, queues or containers. */
export interface ResourceKind<Info extends { name: string }> {
  noun: string;
  title: string;
  /** The first part of their pages' addresses. */
  path: string;
  icon: IconName;
  list: () => Promise<Info[]>;
  /** What stands beside the name: numbers, unless it is called text. */
  columns: [title: string, text: (info: Info) => string, kind?: "text"][];
  /** Something beside the name. */
  mark?: (info: Info) => ComponentChildren;
  create: (name: string) => Promise<void>;
  /** What names look like, and what is wrong with one that is not empty. */
  hint: string;
  fault: (name: string) => string | undefined;
  remove: (name: string) => Promise<void>;
  /** "Drop", "dropped", and what goes with it. */
  verb: string;
  removed: string;
  holds: string;
}

/** A search is worth its place above so many. */
const SEARCHED = 8;

export function ResourceList<Info extends { name: string }>({ kind }: { kind: ResourceKind<Info> }) {
  const { noun, title, icon } = kind;
  const { value: all, error, isLoading, again } = useLoaded(kind.list, []);
  const [wanted, want] = useState("");
  const shown = all?.filter(({ name }) => name.toLowerCase().includes(wanted.toLowerCase()));
  const create = (): void => openDialog(() => <NewResource kind={kind} />);
  const button = (
    <Button kind="primary" icon="plus" onClick={create}>
      New {noun}
    </Button>
  );
  return (
    <div class="page">
      <header class="page-head">
        <div>
          <h1>{title}</h1>
          <p class="lead">{all ? plural(all.length, noun) : " "}</p>
        </div>
        <div class="actions">
          <Button kind="quiet" icon="refresh" label="Read again" busy={isLoading} onClick={again} />
          {button}
        </div>
      </header>
      <Failure error={error} retry={again} />
      {all?.length === 0 && (
        <Empty icon={icon} title={`No ${noun}s yet`}>
          <p>Create one here, or let any Azure SDK create it.</p>
          {button}
        </Empty>
      )}
      {!!all?.length && (
        <>
          {all.length > SEARCHED && (
            <input class="search" type="search" placeholder={`Find a ${noun}`} aria-label={`Find a ${noun}`} value={wanted} onInput={(e) => want(e.currentTarget.value)} />
          )}
          <div class="card">
            <table class="list">
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  {kind.columns.map(([name, , of]) => (
                    <th key={name} scope="col" class={of ?? "number"}>
                      {name}
                    </th>
                  ))}
                  <th scope="col">
                    <span class="hidden">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {shown?.map((info) => (
                  <ResourceRow key={info.name} kind={kind} info={info} again={again} />
                ))}
              </tbody>
            </table>
            {shown?.length === 0 && (
              <p class="none">
                No {noun} is called like “{wanted}”.
              </p>
            )}
          </div>
        </>
      )}
    </div>
  );
}

function ResourceRow<Info extends { name: string }>({ kind, info, again }: { kind: ResourceKind<Info>; info: Info; again: () => void }) {
  const { name } = info;
  return (
    <tr>
      <td>
        <a class="mono strong" href={href([kind.path, name])}>
          {name}
        </a>
        {kind.mark?.(info)}
      </td>
      {kind.columns.map(([title, text, of]) => (
        <td key={title} class={of ?? "number mono"}>
          {text(info)}
        </td>
      ))}
      <td class="end">
        <Button kind="quiet" icon="trash" label={`${kind.verb} ${name}`} onClick={() => openDialog(() => <RemoveResource kind={kind} name={name} done={again} />)} />
      </td>
    </tr>
  );
}

export function RemoveResource<Info extends { name: string }>({ kind, name, done }: { kind: ResourceKind<Info>; name: string; done: () => void }) {
  return (
    <ConfirmByName
      title={`${kind.verb} ${name}?`}
      name={name}
      verb={`${kind.verb} the ${kind.noun}`}
      what={
        <>
          All {kind.holds} of <strong class="mono">{name}</strong> go with it. This can't be undone.
        </>
      }
      act={async () => {
        await kind.remove(name);
        toast(`${name} was ${kind.removed}.`);
        done();
      }}
    />
  );
}

function NewResource<Info extends { name: string }>({ kind }: { kind: ResourceKind<Info> }) {
  const [name, set] = useState("");
  const [error, fail] = useState<unknown>();
  const [isBusy, busy] = useState(false);
  const wrong = name ? kind.fault(name) : undefined;
  const create = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (wrong || !name) return;
    busy(true);
    try {
      await kind.create(name);
      closeDialog();
      toast(`${name} was created.`);
      go([kind.path, name]);
    } catch (refused) {
      fail(refused);
      busy(false);
    }
  };
  return (
    <Dialog title={`New ${kind.noun}`}>
      <form onSubmit={create}>
        <Field label="Name" hint={kind.hint} fault={name.length > 2 ? wrong : undefined}>
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
