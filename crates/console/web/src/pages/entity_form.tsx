// The form of an entity: keys, then a line for each property with its name, its type and the type's editor.

import type { JSX, TargetedEvent } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Seen } from "../filter/complete.ts";
import { bytes } from "../lib/format.ts";
import { type Draft, EDM_TYPES, type EdmType, fault, keyFault, nameFault, type Value } from "../model/edm.ts";
import { Button, Field } from "../ui/parts.tsx";

const BINARY_BYTES_MAX = 64 * 1024;

interface FormProps {
  draft: Draft;
  isNew: boolean;
  isTried: boolean;
  seen: Seen;
  change: (draft: Draft) => void;
}

export function EntityForm({ draft, isNew, isTried, seen, change }: FormProps) {
  const list = useRef<HTMLDivElement>(null);
  const set = (index: number, name: string, value: Value): void =>
    change({ ...draft, properties: draft.properties.map((pair, at) => (at === index ? [name, value] : pair)) });
  const remove = (index: number): void => change({ ...draft, properties: draft.properties.filter((_, at) => at !== index) });
  const add = (): void => {
    const free = [...seen.keys()].find((name) => !["PartitionKey", "RowKey", "Timestamp"].includes(name) && !draft.properties.some(([used]) => used === name));
    const type = (free && [...(seen.get(free) ?? [])][0]) || "String";
    change({ ...draft, properties: [...draft.properties, [free ?? "", empty(type)]] });
    requestAnimationFrame(() => list.current?.querySelector<HTMLInputElement>(".property:last-of-type .property-name")?.select());
  };
  const key = (name: "partitionKey" | "rowKey", label: string): JSX.Element => (
    <Field label={label} fault={isNew ? keyFault(draft[name]) : undefined}>
      {(ids) => <input {...ids} class="mono" value={draft[name]} readOnly={!isNew} spellcheck={false} autocomplete="off" onInput={(event) => change({ ...draft, [name]: event.currentTarget.value })} />}
    </Field>
  );
  return (
    <div class="entity-form">
      <div class="keys-of">
        {key("partitionKey", "PartitionKey")}
        {key("rowKey", "RowKey")}
      </div>
      <div ref={list}>
        {draft.properties.map(([name, value], index) => (
          <Property key={index} name={name} value={value} isTried={isTried} isTwice={draft.properties.findIndex(([other]) => other === name) < index} set={(newName, newValue) => set(index, newName, newValue)} remove={() => remove(index)} />
        ))}
      </div>
      {draft.properties.length === 0 && <p class="faint">No properties yet. An entity may have up to 252, each with its own type.</p>}
      <Button icon="plus" onClick={add}>
        Add property
      </Button>
      <datalist id="seen-names">{[...seen.keys()].map((name) => <option key={name} value={name} />)}</datalist>
    </div>
  );
}

const empty = (type: EdmType): Value => ({ type, text: BEGIN[type] });
const BEGIN: Record<EdmType, string> = {
  String: "",
  Int32: "0",
  Int64: "0",
  Double: "0",
  Boolean: "false",
  DateTime: "2026-01-01T00:00:00Z",
  Guid: "00000000-0000-0000-0000-000000000000",
  Binary: "",
};

/** The same value in another type where that is possible. */
function converted(value: Value, type: EdmType): Value {
  const kept = { type, text: value.text };
  if (!fault(kept)) return kept;
  if ((type === "Int32" || type === "Int64") && value.type === "Double") {
    const whole = { type, text: value.text.replace(/\..*$/, "") };
    if (!fault(whole)) return whole;
  }
  return empty(type);
}

interface PropertyProps {
  name: string;
  value: Value;
  isTried: boolean;
  isTwice: boolean;
  set: (name: string, value: Value) => void;
  remove: () => void;
}

function Property({ name, value, isTried, isTwice, set, remove }: PropertyProps) {
  const wrongName = isTwice ? "This name is there already." : name || isTried ? nameFault(name) : undefined;
  const wrong = fault(value);
  const label = name || "new property";
  return (
    <div class="property" role="group" aria-label={label}>
        <input class="mono property-name" aria-label="Name" aria-invalid={!!wrongName} list="seen-names" value={name} placeholder="Name" spellcheck={false} autocomplete="off" onInput={(event) => set(event.currentTarget.value, value)} />
        <select aria-label={`Type of ${label}`} value={value.type} onChange={(event) => set(name, converted(value, event.currentTarget.value as EdmType))}>
          {EDM_TYPES.map((type) => (
            <option key={type} value={type}>
              {type}
            </option>
          ))}
        </select>
        <div class="property-value">
          <Editor label={label} value={value} isWrong={!!wrong} set={(text) => set(name, { ...value, text })} />
        </div>
        <Button kind="quiet" icon="close" label={`Remove ${label}`} onClick={remove} />
      {(wrongName || wrong) && <p class="fault">{wrongName ?? wrong}</p>}
    </div>
  );
}

function Editor({ label, value, isWrong, set }: { label: string; value: Value; isWrong: boolean; set: (text: string) => void }) {
  const common = { class: "mono", "aria-label": `Value of ${label}`, "aria-invalid": isWrong, value: value.text, spellcheck: false };
  const onInput = (event: TargetedEvent<HTMLInputElement>): void => set(event.currentTarget.value);
  switch (value.type) {
    case "String":
      return <textarea {...common} rows={Math.min(8, value.text.split("\n").length + Math.floor(value.text.length / 34))} onInput={(event) => set(event.currentTarget.value)} />;
    case "Boolean":
      return (
        <label class="switch">
          <input type="checkbox" checked={value.text === "true"} aria-label={`Value of ${label}`} onChange={(event) => set(String(event.currentTarget.checked))} />
          <span class="mono">{value.text}</span>
        </label>
      );
    case "Int32":
    case "Int64":
      return <input {...common} inputMode="numeric" onInput={onInput} />;
    case "Double":
      return <input {...common} inputMode="decimal" onInput={onInput} />;
    case "DateTime":
      return (
        <div class="with-button">
          <input {...common} placeholder="2026-01-31T18:30:00Z" onInput={onInput} />
          <Button kind="quiet" onClick={() => set(new Date().toISOString())}>
            Now
          </Button>
        </div>
      );
    case "Guid":
      return (
        <div class="with-button">
          <input {...common} onInput={onInput} />
          <Button kind="quiet" onClick={() => set(crypto.randomUUID?.() ?? "")}>
            New
          </Button>
        </div>
      );
    case "Binary":
      return <BinaryEditor common={common} text={value.text} set={set} />;
  }
}

function BinaryEditor({ common, text, set }: { common: Record<string, unknown>; text: string; set: (text: string) => void }) {
  const [isTooLarge, refuse] = useState(false);
  const take = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    refuse(file.size > BINARY_BYTES_MAX);
    if (file.size > BINARY_BYTES_MAX) return;
    const read = new Uint8Array(await file.arrayBuffer());
    let packed = "";
    for (const byte of read) packed += String.fromCharCode(byte);
    set(btoa(packed));
  };
  const size = Math.floor((text.length * 3) / 4) - (/=*$/.exec(text)?.[0].length ?? 0);
  return (
    <div>
      <textarea {...common} rows={2} placeholder="Base64" onInput={(event) => set(event.currentTarget.value.replace(/\s/g, ""))} />
      <div class="binary">
        <span class="faint">{bytes(Math.max(0, size))}</span>
        <input type="file" aria-label="Take the bytes from a file of up to 64 KiB" onChange={(event) => void take(event.currentTarget.files?.[0])} />
      </div>
      {isTooLarge && <p class="fault">The file is larger than 64 KiB, which is the most that a property holds.</p>}
    </div>
  );
}
