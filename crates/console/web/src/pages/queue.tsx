// One queue: peek, put, clear; a poison queue's messages go back where they came from.

import { useState } from "preact/hooks";
import { ApiError, words } from "../api/http.ts";
import { clearQueue, countMessages, type Message, moveAll, peek, POISON, put } from "../api/queues.ts";
import { count, moment, plural } from "../lib/format.ts";
import { go, href } from "../lib/router.ts";
import { closeDialog, ConfirmByName, copyText, Dialog, openDialog, toast } from "../ui/dialog.tsx";
import { Button, Empty, Failure, Field, Menu, Notice, useLoaded } from "../ui/parts.tsx";
import { DeleteQueue } from "./queues.tsx";

export function QueuePage({ name }: { name: string }) {
  const { value, error, isLoading, again } = useLoaded(async () => ({ messages: await peek(name), total: await countMessages(name) }), [name]);
  const isPoison = name.endsWith(POISON);
  const poison = useLoaded(() => (isPoison ? Promise.resolve(0) : countMessages(name + POISON).catch(() => 0)), [name]).value ?? 0;
  const origin = name.slice(0, -POISON.length);
  const isMissing = error instanceof ApiError && error.status === 404;
  const clear = (): void =>
    openDialog(() => (
      <ConfirmByName
        title={`Clear ${name}?`}
        name={name}
        verb="Clear the queue"
        what="All its messages are deleted, also those that are invisible now. This can't be undone."
        act={async () => {
          await clearQueue(name);
          toast(`${name} was cleared.`);
          again();
        }}
      />
    ));
  const moveBack = async (): Promise<void> => {
    try {
      const moved = await moveAll(name, origin);
      toast(`${plural(moved, "message", "messages")} moved to ${origin}.`);
    } catch (wrong) {
      toast(words(wrong), "error");
    }
    again();
  };
  return (
    <div class="page">
      <header class="page-head">
        <div>
          <p class="crumbs">
            <a href={href(["queues"])}>Queues</a>
          </p>
          <h1 class="mono">{name}</h1>
          <p class="lead">{value ? `about ${plural(value.total, "message")}, ${count(value.messages.length)} shown without taking them` : " "}</p>
        </div>
        <div class="actions">
          <Button kind="quiet" icon="refresh" label="Peek again" busy={isLoading} onClick={again} />
          {isPoison && (
            <Button icon="undo" disabled={!value?.total} onClick={() => void moveBack()}>
              Move all to {origin}
            </Button>
          )}
          <Menu
            label="More"
            icon="more"
            kind="quiet"
            end
            items={[
              { label: "Clear the queue", icon: "trash", isDanger: true, act: clear },
              { label: "Delete the queue", icon: "trash", isDanger: true, act: () => openDialog(() => <DeleteQueue name={name} done={() => go(["queues"])} />) },
            ]}
          />
          <Button kind="primary" icon="plus" onClick={() => openDialog(() => <PutMessage name={name} done={again} />)}>
            Put a message
          </Button>
        </div>
      </header>
      {poison > 0 && (
        <Notice kind="warning">
          {plural(poison, "message")} failed too often and went to <a href={href(["queues", name + POISON])}>{name + POISON}</a>.
        </Notice>
      )}
      {isMissing ? (
        <Empty icon="queue" title={`There is no queue ${name}`}>
          <p>
            <a href={href(["queues"])}>See the queues that there are.</a>
          </p>
        </Empty>
      ) : (
        <Failure error={error} retry={again} />
      )}
      {value?.messages.length === 0 && (
        <Empty icon="queue" title="No visible messages">
          <p>{value.total ? `${plural(value.total, "message is", "messages are")} invisible: a worker has taken them, or they are delayed.` : "Put one here, or with any Azure SDK."}</p>
        </Empty>
      )}
      <ol class="messages">
        {value?.messages.map((message) => (
          <MessageCard key={message.id} message={message} />
        ))}
      </ol>
    </div>
  );
}

/** Azure Functions and older SDKs put texts in Base64. */
function unpacked(text: string): string | undefined {
  if (text.length < 8 || text.length % 4 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

/** Long JSON is indented; what fits in a line stays in one. */
function pretty(text: string): string {
  if (text.length < 110) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function MessageCard({ message }: { message: Message }) {
  const inside = unpacked(message.text);
  const [isRaw, raw] = useState(false);
  const shown = isRaw || inside === undefined ? message.text : inside;
  return (
    <li class="card message">
      <header>
        <span class="mono faint">{message.id}</span>
        <span class="faint">put {moment(message.inserted)}</span>
        <span class="faint">expires {moment(message.expires)}</span>
        <span class={`chip${message.dequeued > 1 ? " bad" : ""}`}>taken {plural(message.dequeued, "time")}</span>
        <span class="spring" />
        {inside !== undefined && (
          <Button kind="quiet" pressed={isRaw} onClick={() => raw(!isRaw)}>
            Base64
          </Button>
        )}
        <Button kind="quiet" icon="copy" label="Copy the text" onClick={() => void copyText(shown, "The message")} />
      </header>
      <pre class="code" tabIndex={0}>
        {pretty(shown) || "(an empty text)"}
      </pre>
    </li>
  );
}

function PutMessage({ name, done }: { name: string; done: () => void }) {
  const [text, write] = useState("");
  const [isPacked, pack] = useState(false);
  const [isForever, last] = useState(false);
  const [delay, wait] = useState("0");
  const [error, fail] = useState<unknown>();
  const [isBusy, busy] = useState(false);
  const seconds = Number(delay);
  const wrongDelay = Number.isInteger(seconds) && seconds >= 0 && seconds <= 604_800 ? undefined : "0 to 604,800 seconds (seven days).";
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (wrongDelay) return;
    busy(true);
    try {
      const bytes = new TextEncoder().encode(text);
      const packed = isPacked ? btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")) : text;
      await put(name, { text: packed, ...(isForever && { ttl: -1 }), ...(seconds && { delay: seconds }) });
      closeDialog();
      toast(`The message is in ${name}.`);
      done();
    } catch (wrong) {
      fail(wrong);
      busy(false);
    }
  };
  return (
    <Dialog title={`Put a message into ${name}`}>
      <form onSubmit={send}>
        <Field label="Text">{(ids) => <textarea {...ids} class="mono" rows={6} autofocus spellcheck={false} value={text} onInput={(event) => write(event.currentTarget.value)} />}</Field>
        <label class="option">
          <input type="checkbox" checked={isPacked} onChange={(event) => pack(event.currentTarget.checked)} /> As Base64, which Azure Functions expects
        </label>
        <label class="option">
          <input type="checkbox" checked={isForever} onChange={(event) => last(event.currentTarget.checked)} /> Never expires (otherwise after seven days)
        </label>
        <Field label="Visible after, in seconds" fault={wrongDelay}>
          {(ids) => <input {...ids} inputMode="numeric" value={delay} onInput={(event) => wait(event.currentTarget.value)} />}
        </Field>
        {error !== undefined && <Notice>{words(error)}</Notice>}
        <div class="actions">
          <Button onClick={closeDialog}>Cancel</Button>
          <Button kind="primary" submit busy={isBusy}>
            Put
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
