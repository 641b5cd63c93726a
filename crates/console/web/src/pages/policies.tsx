// Stored access policies of a table or a queue: up to five, replaced together.

import { useEffect, useState } from "preact/hooks";
import { type Policy, policies, type Service, setPolicies } from "../api/access.ts";
import { words } from "../api/http.ts";
import { listQueues } from "../api/queues.ts";
import { session } from "../api/session.ts";
import { listTables } from "../api/tables.ts";
import { replace, route } from "../lib/router.ts";
import { joined, LETTERS } from "../model/permissions.ts";
import { toast } from "../ui/dialog.tsx";
import { Button, Field, Notice, useLoaded } from "../ui/parts.tsx";

const POLICIES_MAX = 5;

export function Policies() {
  const names = useLoaded(async () => {
    const tables = (await listTables()).map(({ name }) => `table/${name}`);
    const queues = session.peek()?.endpoints.queue ? (await listQueues().catch(() => [])).map(({ name }) => `queue/${name}`) : [];
    return [...tables, ...queues];
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
                {name.replace("/", " ")}
              </option>
            ))}
          </select>
        )}
      </Field>
      {names.value?.length === 0 && <p class="faint">There are no tables or queues yet.</p>}
      {chosen && <Editor key={chosen} service={chosen.slice(0, 5) as Service} resource={chosen.slice(6)} />}
    </div>
  );
}

function Editor({ service, resource }: { service: Service; resource: string }) {
  const loaded = useLoaded(() => policies(service, resource), [service, resource]);
  const [list, set] = useState<Policy[]>([]);
  const [error, fail] = useState<unknown>();
  const [isBusy, busy] = useState(false);
  useEffect(() => void (loaded.value && set(loaded.value)), [loaded.value]);
  const change = (index: number, part: Partial<Policy>): void => set(list.map((policy, at) => (at === index ? { ...policy, ...part } : policy)));
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    busy(true);
    fail(undefined);
    try {
      await setPolicies(service, resource, list);
      toast(`The policies of ${resource} were saved.`);
    } catch (wrong) {
      fail(wrong);
    }
    busy(false);
  };
  if (loaded.error) return <Notice>{words(loaded.error)}</Notice>;
  return (
    <form onSubmit={save}>
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
            {LETTERS[service].map(({ letter, words: text }) => (
              <label key={letter}>
                <input
                  type="checkbox"
                  checked={policy.permissions.includes(letter)}
                  onChange={() => {
                    const chosen = new Set(policy.permissions);
                    if (!chosen.delete(letter)) chosen.add(letter);
                    change(index, { permissions: joined(LETTERS[service], chosen) });
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
