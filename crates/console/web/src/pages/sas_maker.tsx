// The SAS maker: what the token grants is chosen in words, and the server says in words what it has made.

import type { TargetedEvent } from "preact";
import { useState } from "preact/hooks";
import { makeSas, type MadeSas, type SasRequest } from "../api/access.ts";
import { listContainers } from "../api/blobs.ts";
import { words } from "../api/http.ts";
import { listQueues } from "../api/queues.ts";
import { session } from "../api/session.ts";
import { listTables } from "../api/tables.ts";
import { joined, type Letter, LETTERS, RESOURCE_TYPES, SERVICES } from "../model/permissions.ts";
import { copyText } from "../ui/dialog.tsx";
import { Button, Field, Notice, useLoaded } from "../ui/parts.tsx";

type Kind = SasRequest["kind"];
const KINDS: [Kind, string][] = [
  ["table", "One table"],
  ["queue", "One queue"],
  ["container", "One container"],
  ["blob", "One blob"],
  ["account", "The account"],
];
const SPANS: [string, string, number][] = [
  ["1h", "1 hour", 3600],
  ["1d", "1 day", 86_400],
  ["7d", "7 days", 604_800],
  ["30d", "30 days", 2_592_000],
];
const inSeconds = (seconds: number): string => new Date(Date.now() + seconds * 1000).toISOString().replace(/\.\d+Z$/, "Z");

/** What a kind is of, if it has one; it is offered only if its service is there. */
const SERVICE_OF = { table: "table", queue: "queue", container: "blob", blob: "blob", account: undefined } as const;
const LABELS = { table: "Table", queue: "Queue", container: "Container", blob: "Container", account: "" };

async function namesOf(kind: Kind): Promise<string[]> {
  const list = kind === "table" ? listTables : kind === "queue" ? listQueues : kind === "account" ? undefined : listContainers;
  return list ? (await list()).map(({ name }) => name) : [];
}

/** `of` is the blob that the token is for; without it, what it is for is chosen. */
export function SasMaker({ of }: { of?: { container: string; name: string } }) {
  const [kind, choose] = useState<Kind>(of ? "blob" : "table");
  const [resource, name] = useState(of?.container ?? "");
  const [blob, call] = useState(of?.name ?? "");
  const [letters, allow] = useState(new Set(["r"]));
  const [services, serve] = useState(new Set(["t"]));
  const [types, include] = useState(new Set(["o"]));
  const [given, give] = useState({ start: "", expiry: inSeconds(3600), ip: "", policy: "", start_pk: "", start_rk: "", end_pk: "", end_rk: "" });
  const [isHttps, https] = useState(false);
  const [made, show] = useState<MadeSas | undefined>();
  const [error, fail] = useState<unknown>();
  const [isBusy, busy] = useState(false);
  const names = useLoaded(() => (of ? Promise.resolve([]) : namesOf(kind)), [kind]).value ?? [];
  const set = (key: keyof typeof given) => (event: TargetedEvent<HTMLInputElement>) => give({ ...given, [key]: event.currentTarget.value });
  const change = (next: Kind): void => {
    choose(next);
    name("");
    call("");
    allow(new Set(["r"]));
    show(undefined);
  };
  const make = async (event: Event): Promise<void> => {
    event.preventDefault();
    busy(true);
    fail(undefined);
    const filled = Object.fromEntries(Object.entries(given).filter(([key, text]) => text && (kind === "table" || !/_[pr]k$/.test(key)) && (kind !== "account" || key !== "policy")));
    try {
      show(
        await makeSas({
          kind,
          permissions: joined(LETTERS[kind], letters),
          ...filled,
          ...(isHttps && { protocol: "https" }),
          ...(kind === "account" ? { services: joined(SERVICES, services), resource_types: joined(RESOURCE_TYPES, types) } : { resource, ...(kind === "blob" && { blob }) }),
        }),
      );
    } catch (wrong) {
      show(undefined);
      fail(wrong);
    }
    busy(false);
  };
  const isReady = (kind === "account" ? services.size > 0 && types.size > 0 : !!resource && (kind !== "blob" || !!blob)) && (letters.size > 0 || !!given.policy);
  return (
    <div class="columns">
      <form class="card form" onSubmit={make}>
        {!of && (
          <fieldset class="choices row-wise">
            <legend>For</legend>
            {KINDS.filter(([value]) => !SERVICE_OF[value] || session.value?.endpoints[SERVICE_OF[value]]).map(([value, label]) => (
              <label key={value}>
                <input type="radio" name="kind" checked={kind === value} onChange={() => change(value)} /> {label}
              </label>
            ))}
          </fieldset>
        )}
        {kind !== "account" && !of && (
          <Field label={LABELS[kind]}>
            {(ids) => (
              <>
                <input {...ids} class="mono" list="sas-names" value={resource} spellcheck={false} autocomplete="off" placeholder={names[0] ?? ""} onInput={(event) => name(event.currentTarget.value)} />
                <datalist id="sas-names">{names.map((one) => <option key={one} value={one} />)}</datalist>
              </>
            )}
          </Field>
        )}
        {kind === "blob" && !of && (
          <Field label="Blob" hint="Its name, with its folders.">
            {(ids) => <input {...ids} class="mono" value={blob} spellcheck={false} autocomplete="off" maxLength={1024} onInput={(event) => call(event.currentTarget.value)} />}
          </Field>
        )}
        {kind === "account" && (
          <>
            <Checks legend="Services" letters={SERVICES} chosen={services} choose={serve} />
            <Checks legend="What in them" letters={RESOURCE_TYPES} chosen={types} choose={include} />
          </>
        )}
        <Checks legend="Permissions" letters={LETTERS[kind]} chosen={letters} choose={allow} />
        <Field label="Expires" hint="A time in UTC.">
          {(ids) => (
            <>
              <input {...ids} class="mono" value={given.expiry} spellcheck={false} onInput={set("expiry")} />
              <div class="quick" role="group" aria-label="Expires in">
                {SPANS.map(([id, label, seconds]) => (
                  <Button key={id} kind="quiet" onClick={() => give({ ...given, expiry: inSeconds(seconds) })}>
                    {label}
                  </Button>
                ))}
              </div>
            </>
          )}
        </Field>
        <details>
          <summary>Start, addresses, HTTPS, {kind === "table" ? "policy, range of keys" : kind === "account" ? "and so on" : "policy"}</summary>
          <Field label="Starts" hint="Empty: at once.">
            {(ids) => <input {...ids} class="mono" value={given.start} placeholder="2026-01-31T00:00:00Z" spellcheck={false} onInput={set("start")} />}
          </Field>
          <Field label="From these addresses only" hint="One address, or a range with a dash.">
            {(ids) => <input {...ids} class="mono" value={given.ip} placeholder="10.0.0.1-10.0.0.255" spellcheck={false} onInput={set("ip")} />}
          </Field>
          <label class="option">
            <input type="checkbox" checked={isHttps} onChange={(event) => https(event.currentTarget.checked)} /> HTTPS only
          </label>
          {kind !== "account" && (
            <Field label="Stored policy" hint="Its terms hold where the token has none. Leave permissions and expiry to one of them.">
              {(ids) => <input {...ids} class="mono" value={given.policy} spellcheck={false} onInput={set("policy")} />}
            </Field>
          )}
          {kind === "table" && (
            <div class="pairs">
              <Field label="First PartitionKey">{(ids) => <input {...ids} class="mono" value={given.start_pk} onInput={set("start_pk")} />}</Field>
              <Field label="First RowKey">{(ids) => <input {...ids} class="mono" value={given.start_rk} onInput={set("start_rk")} />}</Field>
              <Field label="Last PartitionKey">{(ids) => <input {...ids} class="mono" value={given.end_pk} onInput={set("end_pk")} />}</Field>
              <Field label="Last RowKey">{(ids) => <input {...ids} class="mono" value={given.end_rk} onInput={set("end_rk")} />}</Field>
            </div>
          )}
        </details>
        {error !== undefined && <Notice>{words(error)}</Notice>}
        <div class="actions">
          <Button kind="primary" icon="key" submit busy={isBusy} disabled={!isReady}>
            Make the token
          </Button>
        </div>
      </form>
      <section class="card form" aria-label="The token" aria-live="polite">
        {made ? (
          <>
            <h2>What it grants</h2>
            <ul class="explanation">
              {made.explanation.map((line) => (
                <li key={line} class="mono">
                  {line}
                </li>
              ))}
            </ul>
            <Secret label="URL" text={made.url} />
            <Secret label="Token" text={made.token} />
            <Notice kind="info">Who has it, has access. It can't be taken back before it expires, unless it refers to a stored policy or the account's key changes.</Notice>
          </>
        ) : (
          <div class="placeholder">
            <h2>What it grants</h2>
            <p class="faint">Choose on the left. The token appears here, with what it permits in words, read back by the server from the token itself.</p>
          </div>
        )}
      </section>
    </div>
  );
}

function Secret({ label, text }: { label: string; text: string }) {
  return (
    <div class="secret">
      <div class="secret-head">
        <h3>{label}</h3>
        <Button kind="quiet" icon="copy" onClick={() => void copyText(text, label)}>
          Copy
        </Button>
      </div>
      <pre class="code wrap" tabIndex={0} aria-label={label}>
        {text}
      </pre>
    </div>
  );
}

function Checks({ legend, letters, chosen, choose }: { legend: string; letters: Letter[]; chosen: Set<string>; choose: (chosen: Set<string>) => void }) {
  const toggle = (letter: string): void => {
    const next = new Set(chosen);
    if (!next.delete(letter)) next.add(letter);
    choose(next);
  };
  return (
    <fieldset class="choices">
      <legend>{legend}</legend>
      {letters.map(({ letter, words: text }) => (
        <label key={letter}>
          <input type="checkbox" checked={chosen.has(letter)} onChange={() => toggle(letter)} /> <code>{letter}</code> {text}
        </label>
      ))}
    </fieldset>
  );
}
