// Stored access policies of a table, a queue or a container: up to five, replaced together. With those of a container goes who
// may read it without a key.

import { useEffect, useState } from "preact/hooks";
import { type Policies as Stored, type Policy, policies, type Service, setPolicies } from "../api/access.ts";
import { listContainers } from "../api/blobs.ts";
import { words } from "../api/http.ts";
import { listQueues } from "../api/queues.ts";
import { session } from "../api/session.ts";
import { listTables } from "../api/tables.ts";
import { replace, route } from "../lib/router.ts";
import { LETTERS, POLICY_ORDER } from "../model/permissions.ts";
import { toast } from "../ui/dialog.tsx";
import { Button, Field, Notice, useLoaded } from "../ui/parts.tsx";

const POLICIES_MAX = 5;
const PUBLIC_ACCESS = [
  ["", "None: every request needs a key or a token"],
  ["blob", "Blobs: anyone can read a blob whose name they know"],
  ["container", "Container: anyone can list and read the blobs"],
];

export function Policies() {
  const names = useLoaded(async () => {
    const tables = (await listTables()).map(({ name }) => `table/${name}`);
    const queues = session.peek()?.endpoints.queue ? (await listQueues().catch(() => [])).map(({ name }) => `queue/${name}`) : [];
    const containers = session.peek()?.endpoints.blob ? (await listContainers().catch(() => [])).map(({ name }) => `blob/${name}`) : [];
    return [...tables, ...queues, ...containers];
  }, []);
  const asked = route.value.query.get("of") ?? "";
  const list = names.value ?? [];
  const chosen = list.find((name) => name === asked) ?? list[0] ?? "";
  return (
    <div class="card form">
      <Field label="Of" hint="A token that names a policy loses its power when the policy is changed or removed.">
        {(ids) => (
          <select {...ids} value={chosen} onChange={(event) => replace(["access"], { tab: "policies", of: event.currentTarget.value })}>
            {list.map((name) => (
              <option key={name} value={name}>
                {name.replace("blob/", "container/").replace("/", " ")}
              </option>
            ))}
          </select>
        )}
      </Field>
      {names.value?.length === 0 && <p class="faint">There are no tables, queues or containers yet.</p>}
      {chosen && <Editor key={chosen} service={chosen.slice(0, chosen.indexOf("/")) as Service} resource={chosen.slice(chosen.indexOf("/") + 1)} />}
    </div>
  );
}

function Editor({ service, resource }: { service: Service; resource: string }) {
  const loaded = useLoaded(() => policies(service, resource), [service, resource]);
  const [{ list, access }, store] = useState<Stored>({ list: [], access: "" });
  const letters = LETTERS[service === "blob" ? "container" : service];
  const set = (next: Policy[]): void => store({ list: next, access });
  const [error, fail] = useState<unknown>();
  const [isBusy, busy] = useState(false);
  useEffect(() => void (loaded.value && store(loaded.value)), [loaded.value]);
  const change = (index: number, part: Partial<Policy>): void => set(list.map((policy, at) => (at === index ? { ...policy, ...part } : policy)));
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    busy(true);
    fail(undefined);
    try {
      await setPolicies(service, resource, { list, access });
      toast(`The policies of ${resource} were saved.`);
    } catch (wrong) {
      fail(wrong);
    }
    busy(false);
  };
  if (loaded.error) return <Notice>{words(loaded.error)}</Notice>;
  return (
    <form onSubmit={save}>
      {service === "blob" && (
        <Field label="Public access" hint="Holds only if the server was started with public access allowed.">
          {(ids) => (
            <select {...ids} value={access} onChange={(event) => store({ list, access: event.currentTarget.value })}>
              {PUBLIC_ACCESS.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      {list.length === 0 && <p class="faint">{resource} has no stored policies.</p>}
      {list.map((policy, index) => (
        <fieldset key={index} class="policy">
          <legend>Policy {index + 1}</legend>
          <div class="pairs">
            <Field label="Name">{(ids) => <input {...ids} class="mono" value={policy.id} maxLength={64} required spellcheck={false} onInput={(event) => change(index, { id: event.currentTarget.value })} />}</Field>
            <Field label="Starts">{(ids) => <input {...ids} class="mono" value={policy.start} placeholder="2026-01-01T00:00:00Z" spellcheck={false} onInput={(event) => change(index, { start: event.currentTarget.value })} />}</Field>
            <Field label="Expires">{(ids) => <input {...ids} class="mono" value={policy.expiry} placeholder="2027-01-01T00:00:00Z" spellcheck={false} onInput={(event) => change(index, { expiry: event.currentTarget.value })} />}</Field>
          </div>
          <div class="choices row-wise" role="group" aria-label={`Permissions of policy ${index + 1}`}>
            {letters.map(({ letter, words: text }) => (
              <label key={letter}>
                <input
                  type="checkbox"
                  checked={policy.permissions.includes(letter)}
                  onChange={() => {
                    const chosen = new Set(policy.permissions);
                    if (!chosen.delete(letter)) chosen.add(letter);
                    change(index, { permissions: [...POLICY_ORDER[service]].filter((one) => chosen.has(one)).join("") });
                  }}
                />{" "}
                <code>{letter}</code> {text}
              </label>
            ))}
            <span class="spring" />
            <Button kind="quiet" icon="trash" label={`Remove policy ${index + 1}`} onClick={() => set(list.filter((_, at) => at !== index))} />
          </div>
        </fieldset>
      ))}
      {error !== undefined && <Notice>{words(error)}</Notice>}
      <div class="actions between">
        <Button icon="plus" disabled={list.length >= POLICIES_MAX} onClick={() => set([...list, { id: "", start: "", expiry: "", permissions: "r" }])}>
          Add a policy
        </Button>
        <Button kind="primary" submit busy={isBusy}>
          Save
        </Button>
      </div>
    </form>
  );
}
