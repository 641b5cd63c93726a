// Small parts that all pages share: buttons, badges, empty states, notices, menus, fields.

import type { ComponentChildren, TargetedMouseEvent } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { words } from "../api/http.ts";
import type { EdmType } from "../model/edm.ts";
import { Icon, type IconName } from "./icons.tsx";

interface ButtonProps {
  children?: ComponentChildren;
  icon?: IconName;
  kind?: "plain" | "primary" | "danger" | "quiet";
  label?: string;
  disabled?: boolean;
  pressed?: boolean;
  expanded?: boolean;
  busy?: boolean;
  submit?: boolean;
  onClick?: (event: TargetedMouseEvent<HTMLButtonElement>) => void;
}

/** `label` names a button that shows only an icon. */
export function Button({ children, icon, kind = "plain", label, disabled, pressed, expanded, busy, submit, onClick }: ButtonProps) {
  return (
    <button
      type={submit ? "submit" : "button"}
      class={`button ${kind}${children ? "" : " only-icon"}`}
      aria-label={label}
      title={label}
      disabled={disabled || busy}
      aria-pressed={pressed}
      aria-expanded={expanded}
      aria-busy={busy}
      onClick={onClick}
    >
      {busy ? <span class="spinner" aria-hidden="true" /> : icon && <Icon name={icon} />}
      {children && <span>{children}</span>}
    </button>
  );
}

const SHORT: Record<EdmType, string> = { String: "str", Int32: "i32", Int64: "i64", Double: "dbl", Boolean: "bool", DateTime: "date", Guid: "guid", Binary: "bin" };

export function TypeBadge({ type, full }: { type: EdmType; full?: boolean }) {
  return (
    <span class={`type type-${type}`} title={`Edm.${type}`}>
      {full ? type : SHORT[type]}
    </span>
  );
}

export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children && <div class="empty-text">{children}</div>}
    </div>
  );
}

export function Notice({ kind = "error", children }: { kind?: "error" | "info" | "good" | "warning"; children: ComponentChildren }) {
  return (
    <div class={`notice ${kind}`} role={kind === "error" ? "alert" : "status"}>
      <Icon name={kind === "good" ? "check" : kind === "info" ? "bulb" : "warning"} />
      <div>{children}</div>
    </div>
  );
}

export const Failure = ({ error, retry }: { error: unknown; retry?: () => void }) =>
  error ? (
    <Notice>
      {words(error)} {retry && <Button kind="quiet" icon="refresh" onClick={retry}>Try again</Button>}
    </Notice>
  ) : null;

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  fault?: string | undefined;
  children: (ids: { id: string; "aria-describedby"?: string; "aria-invalid"?: boolean }) => ComponentChildren;
}

/** A label, its input, and below it what is wrong or what to write. */
export function Field({ label, hint, fault, children }: FieldProps) {
  const id = useId();
  const says = fault || hint;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, ...(says && { "aria-describedby": `${id}-says` }), ...(fault && { "aria-invalid": true }) })}
      {says && (
        <p id={`${id}-says`} class={fault ? "fault" : "hint"}>
          {says}
        </p>
      )}
    </div>
  );
}

interface MenuItem {
  label: string;
  icon?: IconName;
  act: () => void;
  isDanger?: boolean;
}

/** A button that opens a list of actions; arrows move, Escape closes. */
export function Menu({ label, icon, items, kind = "plain", text, end }: { label: string; icon?: IconName; items: MenuItem[]; kind?: "plain" | "quiet"; text?: string; end?: boolean }) {
  const [isOpen, open] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    list.current?.querySelector("button")?.focus();
    const away = (event: Event): void => void (root.current?.contains(event.target as Node) || open(false));
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [isOpen]);
  const move = (event: KeyboardEvent): void => {
    const buttons = [...(list.current?.querySelectorAll("button") ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      buttons[(at + step + buttons.length) % buttons.length]?.focus();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      open(false);
      root.current?.querySelector("button")?.focus();
    }
  };
  return (
    <div class="menu" ref={root} onKeyDown={move}>
      <button type="button" class={`button ${kind}${text ? "" : " only-icon"}`} aria-haspopup="menu" aria-expanded={isOpen} aria-label={text ? undefined : label} title={label} onClick={() => open(!isOpen)}>
        {icon && <Icon name={icon} />}
        {text && <span>{text}</span>}
        {text && <Icon name="down" />}
      </button>
      {isOpen && (
        <div class={`menu-list${end ? " end" : ""}`} role="menu" aria-label={label} ref={list}>
          {items.map((item) => (
            <button
              type="button"
              role="menuitem"
              key={item.label}
              class={item.isDanger ? "danger" : ""}
              onClick={() => {
                open(false);
                root.current?.querySelector("button")?.focus();
                item.act();
              }}
            >
              {item.icon && <Icon name={item.icon} />}
              {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

interface TabsProps<T extends string> {
  label: string;
  tabs: readonly (readonly [T, string])[];
  chosen: T;
  choose: (tab: T) => void;
}

export function Tabs<T extends string>({ label, tabs, chosen, choose }: TabsProps<T>) {
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = tabs.findIndex(([tab]) => tab === chosen);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (next) choose(next[0]);
    const list = event.currentTarget as HTMLElement;
    requestAnimationFrame(() => list.querySelector<HTMLElement>("[aria-selected=true]")?.focus());
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
      {tabs.map(([tab, text]) => (
        <button key={tab} type="button" role="tab" aria-selected={tab === chosen} tabIndex={tab === chosen ? 0 : -1} onClick={() => choose(tab)}>
          {text}
        </button>
      ))}
    </div>
  );
}

/** A promise as three states, run again when `keys` change. */
export function useLoaded<T>(load: () => Promise<T>, keys: unknown[]): { value?: T; error?: unknown; isLoading: boolean; again: () => void } {
  const [state, set] = useState<{ value?: T; error?: unknown; isLoading: boolean }>({ isLoading: true });
  const [round, again] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    set((before) => ({ ...before, isLoading: true }));
    load().then(
      (value) => isCurrent && set({ value, isLoading: false }),
      (error) => isCurrent && set({ error, isLoading: false }),
    );
    return () => void (isCurrent = false);
  }, [...keys, round]);
  return { ...state, again: () => again((n) => n + 1) };
}

export function Meter({ value, of, label }: { value: number; of: number; label: string }) {
  const share = of > 0 ? Math.min(1, value / of) : 0;
  return (
    <div class="meter" role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={of} aria-valuenow={value}>
      <div style={{ width: `${share * 100}%` }} class={share > 0.9 ? "high" : ""} />
    </div>
  );
}
