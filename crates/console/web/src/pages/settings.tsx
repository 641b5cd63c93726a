// Service properties: CORS rules, request logs, metrics of one service.

import { useEffect, useState } from "preact/hooks";
import { type CorsRule, type Metrics, type Properties, properties, type Retention, type Service, setProperties, writeProperties } from "../api/access.ts";
import { words } from "../api/http.ts";
import { session } from "../api/session.ts";
import { replace, route } from "../lib/router.ts";
import { toast } from "../ui/dialog.tsx";
import { Button, Field, Notice, Tabs, useLoaded } from "../ui/parts.tsx";

const RULES_MAX = 5;
const SERVICES = [
  ["table", "Tables"],
  ["queue", "Queues"],
  ["blob", "Blobs"],
] as const;
const METHODS = ["GET", "HEAD", "POST", "PUT", "MERGE", "PATCH", "DELETE", "OPTIONS"];

export function Settings() {
  const asked: Service = SERVICES.find(([service]) => service === route.value.query.get("of"))?.[0] ?? "table";
  const served = SERVICES.filter(([service]) => session.value?.endpoints[service]);
  return (
    <div class="page">
      <header class="page-head">
        <div>
          <h1>Settings</h1>
          <p class="lead">The service properties of {session.value?.account}</p>
        </div>
      </header>
      <Tabs label="Service" tabs={served} chosen={asked} choose={(of) => replace(["settings"], { of })} />
      <div role="tabpanel" aria-label={SERVICES.find(([service]) => service === asked)?.[1]}>
        <Editor key={asked} service={asked} />
      </div>
    </div>
  );
}

function Editor({ service }: { service: Service }) {
  const loaded = useLoaded(() => properties(service), [service]);
  const [value, set] = useState<Properties | undefined>();
  const [error, fail] = useState<unknown>();
  const [isBusy, busy] = useState(false);
  useEffect(() => void (loaded.value && set(loaded.value)), [loaded.value]);
  if (loaded.error) return <Notice>{words(loaded.error)}</Notice>;
  if (!value) return <p role="status">Reading…</p>;
  const isChanged = !!loaded.value && writeProperties(loaded.value) !== writeProperties(value);
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    busy(true);
    fail(undefined);
    try {
      await setProperties(service, value);
      toast("The service properties were saved. They take effect within half a minute.");
      loaded.again();
    } catch (wrong) {
      fail(wrong);
    }
    busy(false);
  };
  const setRule = (index: number, rule: CorsRule): void => set({ ...value, cors: value.cors.map((old, at) => (at === index ? rule : old)) });
  return (
    <form onSubmit={save} class="stack">
      <section class="card form">
        <header class="card-head flat">
          <div>
            <h2>CORS</h2>
            <p class="faint">Which web pages of other origins may send requests. Without a rule, none.</p>
          </div>
          <Button icon="plus" disabled={value.cors.length >= RULES_MAX} onClick={() => set({ ...value, cors: [...value.cors, { origins: "https://", methods: "GET", allowed: "*", exposed: "*", seconds: "3600" }] })}>
            Add a rule
          </Button>
        </header>
        {value.cors.map((rule, index) => (
          <Rule key={index} index={index} rule={rule} set={(next) => setRule(index, next)} remove={() => set({ ...value, cors: value.cors.filter((_, at) => at !== index) })} />
        ))}
      </section>
      <section class="card form">
        <h2>Request logs</h2>
        <div class="choices row-wise" role="group" aria-label="Logged requests">
          {(["read", "write", "delete"] as const).map((kind) => (
            <label key={kind}>
              <input type="checkbox" checked={value.logging[kind]} onChange={(event) => set({ ...value, logging: { ...value.logging, [kind]: event.currentTarget.checked } })} /> {kind}
            </label>
          ))}
        </div>
        <RetentionField name="logs" value={value.logging.retention} set={(retention) => set({ ...value, logging: { ...value.logging, retention } })} />
      </section>
      {value.deleted && (
        <section class="card form">
          <h2>Soft delete</h2>
          <p class="faint">Deleted blobs can be restored until then.</p>
          <RetentionField name="deleted blobs" value={value.deleted} set={(deleted) => set({ ...value, deleted })} />
        </section>
      )}
      <section class="card form">
        <h2>Metrics</h2>
        <div class="pairs">
          <MetricsField name="Every hour" value={value.hour} set={(hour) => set({ ...value, hour })} />
          <MetricsField name="Every minute" value={value.minute} set={(minute) => set({ ...value, minute })} />
        </div>
      </section>
      <details class="card form">
        <summary>As XML, as it is sent</summary>
        <pre class="code wrap" tabIndex={0}>
          {writeProperties(value).replace(/></g, ">\n<")}
        </pre>
      </details>
      {error !== undefined && <Notice>{words(error)}</Notice>}
      <div class={`actions${isChanged ? " sticky" : ""}`}>
        <Button disabled={!isChanged} onClick={() => set(loaded.value)}>
          Discard
        </Button>
        <Button kind="primary" submit busy={isBusy} disabled={!isChanged}>
          Save
        </Button>
      </div>
    </form>
  );
}

function Rule({ index, rule, set, remove }: { index: number; rule: CorsRule; set: (rule: CorsRule) => void; remove: () => void }) {
  const chosen = new Set(rule.methods.split(",").map((method) => method.trim()).filter(Boolean));
  const toggle = (method: string): void => {
    if (!chosen.delete(method)) chosen.add(method);
    set({ ...rule, methods: METHODS.filter((one) => chosen.has(one)).join(",") });
  };
  return (
    <fieldset class="policy">
      <legend>Rule {index + 1}</legend>
      <Field label="Origins" hint="With commas between them, or * for all.">
        {(ids) => <input {...ids} class="mono" value={rule.origins} required spellcheck={false} onInput={(event) => set({ ...rule, origins: event.currentTarget.value })} />}
      </Field>
      <div class="choices row-wise" role="group" aria-label={`Methods of rule ${index + 1}`}>
        {METHODS.map((method) => (
          <label key={method}>
            <input type="checkbox" checked={chosen.has(method)} onChange={() => toggle(method)} /> <code>{method}</code>
          </label>
        ))}
      </div>
      <div class="pairs">
        <Field label="Headers a page may send">{(ids) => <input {...ids} class="mono" value={rule.allowed} spellcheck={false} onInput={(event) => set({ ...rule, allowed: event.currentTarget.value })} />}</Field>
        <Field label="Headers a page may read">{(ids) => <input {...ids} class="mono" value={rule.exposed} spellcheck={false} onInput={(event) => set({ ...rule, exposed: event.currentTarget.value })} />}</Field>
        <Field label="Browsers remember it, seconds">{(ids) => <input {...ids} class="mono" value={rule.seconds} inputMode="numeric" onInput={(event) => set({ ...rule, seconds: event.currentTarget.value })} />}</Field>
      </div>
      <Button kind="quiet" icon="trash" onClick={remove}>
        Remove the rule
      </Button>
    </fieldset>
  );
}

function RetentionField({ name, value, set }: { name: string; value: Retention; set: (value: Retention) => void }) {
  return (
    <div class="retention">
      <label class="option">
        <input type="checkbox" checked={value.isOn} onChange={(event) => set({ ...value, isOn: event.currentTarget.checked })} /> Delete {name} after
      </label>
      <input class="mono days" aria-label={`Days that ${name} are kept`} inputMode="numeric" disabled={!value.isOn} value={value.days} onInput={(event) => set({ ...value, days: event.currentTarget.value })} /> days
    </div>
  );
}

function MetricsField({ name, value, set }: { name: string; value: Metrics; set: (value: Metrics) => void }) {
  return (
    <fieldset class="policy">
      <legend>{name}</legend>
      <label class="option">
        <input type="checkbox" checked={value.isOn} onChange={(event) => set({ ...value, isOn: event.currentTarget.checked })} /> On
      </label>
      <label class="option">
        <input type="checkbox" checked={value.apis} disabled={!value.isOn} onChange={(event) => set({ ...value, apis: event.currentTarget.checked })} /> For each operation too
      </label>
      <RetentionField name="metrics" value={value.retention} set={(retention) => set({ ...value, retention })} />
    </fieldset>
  );
}
