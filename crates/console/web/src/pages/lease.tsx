// The lease of a container or a blob: acquire, renew, release, break. Ids that this page has acquired are remembered until it is
// closed, and sent with what it writes.

import { useEffect, useState } from "preact/hooks";
import { blobProperties } from "../api/blob.ts";
import { containerState, heldLease, lease, type LeaseAction } from "../api/blobs.ts";
import { words } from "../api/http.ts";
import { copyText, toast } from "../ui/dialog.tsx";
import { Button, Failure, Field, Notice, useLoaded } from "../ui/parts.tsx";
import { leaseWords } from "./containers.tsx";

const TIMES: [number, string][] = [
  [15, "15 seconds"],
  [60, "60 seconds"],
  [-1, "for ever"],
];

export function LeaseCard({ container, blob, changed }: { container: string; blob?: string; changed?: () => void }) {
  const loaded = useLoaded(async () => (blob === undefined ? await containerState(container) : await blobProperties({ container, name: blob })).lease, [container, blob]);
  const [seconds, last] = useState(15);
  const [id, name] = useState(heldLease(container, blob));
  const [period, wait] = useState("0");
  const [error, fail] = useState<unknown>();
  const [isBusy, busy] = useState(false);
  useEffect(() => name(heldLease(container, blob)), [container, blob]);
  const act = async (action: LeaseAction, said: string): Promise<void> => {
    busy(true);
    fail(undefined);
    try {
      await lease(action, container, blob);
      name(heldLease(container, blob));
      toast(said);
    } catch (wrong) {
      fail(wrong);
    }
    busy(false);
    loaded.again();
    changed?.();
  };
  const state = loaded.value?.state ?? "";
  const wrongPeriod = /^([0-9]|[1-5][0-9]|60)?$/.test(period) ? undefined : "0 to 60 seconds.";
  return (
    <div class="lease">
      <Failure error={loaded.error} retry={loaded.again} />
      {loaded.value && (
        <p>
          State: <strong data-lease={state}>{leaseWords(loaded.value)}</strong>
        </p>
      )}
      <div class="with-button">
        <Field label="Hold it">
          {(ids) => (
            <select {...ids} value={seconds} onChange={(event) => last(Number(event.currentTarget.value))}>
              {TIMES.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Button kind="primary" busy={isBusy} disabled={state === "leased" || state === "breaking"} onClick={() => void act({ do: "acquire", seconds }, "The lease is yours.")}>
          Acquire
        </Button>
      </div>
      <Field label="Lease id" hint="Of a lease that you hold; one that is acquired here stands here.">
        {(ids) => <input {...ids} class="mono" value={id} spellcheck={false} autocomplete="off" onInput={(event) => name(event.currentTarget.value.trim())} />}
      </Field>
      <div class="actions start">
        <Button disabled={!id || isBusy} onClick={() => void act({ do: "renew", id }, "The lease was renewed.")}>
          Renew
        </Button>
        <Button disabled={!id || isBusy} onClick={() => void act({ do: "release", id }, "The lease was released.")}>
          Release
        </Button>
        <Button kind="quiet" icon="copy" label="Copy the lease id" disabled={!id} onClick={() => void copyText(id, "The lease id")} />
      </div>
      <div class="with-button">
        <Field label="Break it after, in seconds" fault={wrongPeriod}>
          {(ids) => <input {...ids} inputMode="numeric" value={period} onInput={(event) => wait(event.currentTarget.value.trim())} />}
        </Field>
        <Button kind="danger" disabled={isBusy || !!wrongPeriod || (state !== "leased" && state !== "breaking")} onClick={() => void act({ do: "break", seconds: period }, "The lease was broken.")}>
          Break
        </Button>
      </div>
      {error !== undefined && <Notice>{words(error)}</Notice>}
    </div>
  );
}
