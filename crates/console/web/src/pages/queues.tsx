// The account's queues: list, create, delete.

import { useState } from "preact/hooks";
import { words } from "../api/http.ts";
import { createQueue, deleteQueue, listQueues, POISON, type QueueInfo } from "../api/queues.ts";
import { count, plural } from "../lib/format.ts";
import { go, href } from "../lib/router.ts";
import { closeDialog, ConfirmByName, Dialog, openDialog, toast } from "../ui/dialog.tsx";
import { Button, Empty, Failure, Field, Notice, useLoaded } from "../ui/parts.tsx";

export function Queues() {
  const { value: queues, error, isLoading, again } = useLoaded(listQueues, []);
  const create = (): void => openDialog(() => <CreateQueue />);
  return (
    <div class="page">
      <header class="page-head">
        <div>
          <h1>Queues</h1>
          <p class="lead">{queues ? plural(queues.length, "queue") : " "}</p>
        </div>
        <div class="actions">
          <Button kind="quiet" icon="refresh" label="Read again" busy={isLoading} onClick={again} />
          <Button kind="primary" icon="plus" onClick={create}>
            New queue
          </Button>
        </div>
      </header>
      <Failure error={error} retry={again} />
      {queues?.length === 0 && (
        <Empty icon="queue" title="No queues yet">
          <p>Create one here, or let any Azure SDK create it.</p>
          <Button kind="primary" icon="plus" onClick={create}>
            New queue
          </Button>
        </Empty>
      )}
      {!!queues?.length && (
        <div class="card">
          <table class="list">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col" class="number">
                  Messages, about
                </th>
                <th scope="col">
                  <span class="hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {queues.map((queue) => (
                <QueueRow key={queue.name} queue={queue} again={again} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

function QueueRow({ queue: { name, approximate_messages }, again }: { queue: QueueInfo; again: () => void }) {
  const isPoison = name.endsWith(POISON);
  return (
    <tr>
      <td>
        <a class="mono strong" href={href(["queues", name])}>
          {name}
        </a>{" "}
        {isPoison && <span class={`chip${approximate_messages ? " bad" : ""}`}>poison</span>}
      </td>
      <td class="number mono">{approximate_messages === undefined || approximate_messages === null ? "–" : count(approximate_messages)}</td>
      <td class="end">
        <Button kind="quiet" icon="trash" label={`Delete ${name}`} onClick={() => openDialog(() => <DeleteQueue name={name} done={again} />)} />
      </td>
    </tr>
  );
}

export function DeleteQueue({ name, done }: { name: string; done: () => void }) {
  return (
    <ConfirmByName
      title={`Delete ${name}?`}
      name={name}
      verb="Delete the queue"
      what={
        <>
          All messages of <strong class="mono">{name}</strong> go with it. This can't be undone.
        </>
      }
      act={async () => {
        await deleteQueue(name);
        toast(`${name} was deleted.`);
        done();
      }}
    />
  );
}

function nameFault(name: string): string | undefined {
  if (!name) return undefined;
  if (/[A-Z]/.test(name)) return "Small letters only.";
  if (!/^[a-z0-9-]*$/.test(name)) return `Letters, digits and dashes only: ${/[^a-z0-9-]/.exec(name)?.[0]} is none of them.`;
  if (/^-|-$|--/.test(name)) return "Dashes stand alone, between letters or digits.";
  return name.length < 3 || name.length > 63 ? "A name has 3 to 63 characters." : undefined;
}

function CreateQueue() {
  const [name, set] = useState("");
  const [error, fail] = useState<unknown>();
  const [isBusy, busy] = useState(false);
  const wrong = nameFault(name);
  const create = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (wrong || !name) return;
    busy(true);
    try {
      await createQueue(name);
      closeDialog();
      toast(`${name} was created.`);
      go(["queues", name]);
    } catch (refused) {
      fail(refused);
      busy(false);
    }
  };
  return (
    <Dialog title="New queue">
      <form onSubmit={create}>
        <Field label="Name" hint="3 to 63 small letters, digits and dashes, for example jobs." fault={name.length > 2 ? wrong : undefined}>
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
