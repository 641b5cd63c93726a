// Dialogs and toasts. One dialog at a time; it is the browser's own <dialog>, so focus stays inside and Escape closes it.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { words } from "../api/http.ts";
import { Button, Field, Notice } from "./parts.tsx";

const shown = signal<(() => ComponentChildren) | null>(null);

export const openDialog = (content: () => ComponentChildren): void => void (shown.value = content);
export const closeDialog = (): void => void (shown.value = null);

export function DialogHost() {
  const content = shown.value;
  return content ? <>{content()}</> : null;
}

interface DialogProps {
  title: string;
  wide?: boolean;
  /** A panel at the side instead of a box in the middle. */
  side?: boolean;
  children: ComponentChildren;
  footer?: ComponentChildren;
  onClose?: () => void;
}

export function Dialog({ title, wide, side, children, footer, onClose = closeDialog }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      class={`${side ? "side" : "box"}${wide ? " wide" : ""}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === element.current && side && onClose()}
    >
      <div class="dialog">
        <header>
          <h2>{title}</h2>
          <Button kind="quiet" icon="close" label="Close" onClick={onClose} />
        </header>
        {/* Focusable, so that a long one can be scrolled with the keyboard. */}
        <div class="dialog-body" tabIndex={side ? 0 : undefined}>
          {children}
        </div>
        {footer && <footer>{footer}</footer>}
      </div>
    </dialog>
  );
}

interface TypedName {
  title: string;
  name: string;
  what: ComponentChildren;
  verb: string;
  act: () => Promise<void>;
}

/** Something that can't be undone happens only after its name was typed. */
export function ConfirmByName({ title, name, what, verb, act }: TypedName) {
  const [typed, type] = useState("");
  const [error, fail] = useState<unknown>();
  const [isBusy, busy] = useState(false);
  const run = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (typed !== name) return;
    busy(true);
    try {
      await act();
      closeDialog();
    } catch (wrong) {
      fail(wrong);
      busy(false);
    }
  };
  return (
    <Dialog title={title}>
      <form onSubmit={run}>
        <p>{what}</p>
        <Field label={`Type ${name} to confirm`}>
          {(ids) => <input {...ids} class="mono" value={typed} autocomplete="off" spellcheck={false} autofocus onInput={(e) => type(e.currentTarget.value)} />}
        </Field>
        {error !== undefined && <Notice>{words(error)}</Notice>}
        <div class="actions">
          <Button onClick={closeDialog}>Cancel</Button>
          <Button kind="danger" submit busy={isBusy} disabled={typed !== name}>
            {verb}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Something that is not done by a single click. */
export function Confirm({ title, what, verb, act }: Omit<TypedName, "name">) {
  const [error, fail] = useState<unknown>();
  const [isBusy, busy] = useState(false);
  const run = async (): Promise<void> => {
    busy(true);
    try {
      await act();
      closeDialog();
    } catch (wrong) {
      fail(wrong);
      busy(false);
    }
  };
  return (
    <Dialog title={title}>
      <p>{what}</p>
      {error !== undefined && <Notice>{words(error)}</Notice>}
      <div class="actions">
        <Button onClick={closeDialog}>Cancel</Button>
        <Button kind="danger" busy={isBusy} onClick={() => void run()}>
          {verb}
        </Button>
      </div>
    </Dialog>
  );
}

interface Toast {
  id: number;
  text: string;
  kind: "good" | "error";
  action?: { label: string; act: () => void };
}

const toasts = signal<Toast[]>([]);
let nextToast = 1;

/** Says something at the bottom for a while; one with an action stays until it is dismissed. */
export function toast(text: string, kind: Toast["kind"] = "good", action?: Toast["action"]): void {
  const id = nextToast++;
  toasts.value = [...toasts.value.filter((other) => !action || !other.action).slice(-3), { id, text, kind, ...(action && { action }) }];
  if (!action) setTimeout(() => dismiss(id), kind === "error" ? 9000 : 4000);
}

const dismiss = (id: number): void => void (toasts.value = toasts.value.filter((other) => other.id !== id));

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, kind, action }) => (
        <div key={id} class={`toast ${kind}`}>
          <span>{text}</span>
          {action && (
            <Button
              kind="quiet"
              icon="undo"
              onClick={() => {
                dismiss(id);
                action.act();
              }}
            >
              {action.label}
            </Button>
          )}
          <Button kind="quiet" icon="close" label="Dismiss" onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}

export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} copied.`);
  } catch {
    openDialog(() => (
      <Dialog title={what}>
        <p>The browser did not allow copying. Select the text and copy it by hand.</p>
        <pre class="code" tabIndex={0}>
          {text}
        </pre>
      </Dialog>
    ));
  }
}
