// The server itself: version, settings in force, engine counters, commands.

import { useState } from "preact/hooks";
import { words } from "../api/http.ts";
import { type Command, command, settings, status } from "../api/server.ts";
import { bytes, count, duration, moment, plural, short } from "../lib/format.ts";
import { Dialog, closeDialog, openDialog, toast } from "../ui/dialog.tsx";
import { Button, Failure, Notice, useLoaded } from "../ui/parts.tsx";

const COMMANDS: [Command, string, string][] = [
  ["reload", "Reload accounts", "Reads accounts and keys again."],
  ["checkpoint", "Checkpoint", "Makes a consistent copy of the store beside its data, of hard links."],
  ["freeze", "Freeze writes", "Refuses every write with 503 until you thaw. Reads go on."],
  ["thaw", "Thaw writes", "Accepts writes again."],
];

export function ServerPage() {
  const { value, error, again } = useLoaded(status, []);
  const inForce = useLoaded(settings, []);
  const [wanted, want] = useState("");
  const shown = inForce.value?.filter(({ name, value: text }) => `${name} ${String(text)}`.toLowerCase().includes(wanted.toLowerCase()));
  return (
    <div class="page">
      <header class="page-head">
        <div>
          <h1>Server</h1>
          <p class="lead">{value ? `Partita ${value.version}${value.commit && value.commit !== "unknown" ? ` (${value.commit})` : ""}` : " "}</p>
        </div>
        <div class="actions">
          {COMMANDS.map(([name, label, what]) => (
            <Button key={name} onClick={() => openDialog(() => <Confirm name={name} label={label} what={what} done={again} />)}>
              {label}
            </Button>
          ))}
        </div>
      </header>
      <Failure error={error} retry={again} />
      {value && (
        <>
          {value.health.reasons.map((reason) => (
            <Notice key={reason} kind={value.health.ready ? "warning" : "error"}>
              {reason}
            </Notice>
          ))}
          <div class="tiles">
            <Fact name="state" value={value.health.ready ? "ready" : "not ready"} />
            <Fact name="up" value={duration(value.uptime_seconds)} />
            <Fact name="store" value={value.store.kind} />
            <Fact name="memory" value={value.memory.resident_bytes ? bytes(value.memory.resident_bytes) : "–"} />
            <Fact name="connections" value={`${count(value.connections.open)} of ${short(value.connections.max)}`} />
          </div>
          <section class="card">
            <dl class="facts padded">
              <dt>Accounts</dt>
              <dd class="mono">{value.accounts.join(", ")}</dd>
              <dt>Started</dt>
              <dd class="mono">{moment(value.started)}</dd>
              {value.store.place && (
                <>
                  <dt>Data</dt>
                  <dd class="mono">{value.store.place}</dd>
                </>
              )}
              {typeof value.disk?.used_bytes === "number" && (
                <>
                  <dt>Disk</dt>
                  <dd class="mono">
                    {bytes(value.disk.used_bytes)} used{typeof value.disk.free_bytes === "number" && `, ${bytes(value.disk.free_bytes)} free`}
                  </dd>
                </>
              )}
              {value.rocksdb && (
                <>
                  <dt>RocksDB</dt>
                  <dd class="mono">
                    {value.rocksdb}, format {value.format}
                  </dd>
                </>
              )}
              <dt>Jobs</dt>
              <dd>{value.jobs?.length ? value.jobs.map((job) => `${job.kind}${job.total ? ` ${short(job.done ?? 0)} of ${short(job.total)}` : ""}`).join(", ") : "none"}</dd>
              <dt>Backups</dt>
              <dd>{value.backups?.length ? plural(value.backups.length, "backup") : "none since the start"}</dd>
            </dl>
          </section>
          {Object.keys(value.engine).length > 0 && (
            <section class="card">
              <header class="card-head">
                <h2>Engine</h2>
              </header>
              <dl class="counters">
                {Object.entries(value.engine).map(([name, number]) => (
                  <div key={name}>
                    <dt>{name.replaceAll("_", " ")}</dt>
                    <dd class="mono">{/bytes/.test(name) ? bytes(number) : Number.isInteger(number) ? count(number) : number.toFixed(3)}</dd>
                  </div>
                ))}
              </dl>
            </section>
          )}
        </>
      )}
      <section class="card">
        <header class="card-head">
          <h2>Settings in force</h2>
          <input type="search" aria-label="Find a setting" placeholder="Find a setting" value={wanted} onInput={(event) => want(event.currentTarget.value)} />
        </header>
        {inForce.error !== undefined && <Notice>{words(inForce.error)}</Notice>}
        <table class="list dense">
          <thead>
            <tr>
              <th scope="col">Setting</th>
              <th scope="col">Value</th>
              <th scope="col">From</th>
            </tr>
          </thead>
          <tbody>
            {shown?.map(({ name, value: text, from }) => (
              <tr key={name}>
                <td class="mono">{name}</td>
                <td class="mono">{text === null || text === undefined || text === "" ? <span class="faint">not set</span> : Array.isArray(text) ? text.join(", ") : String(text)}</td>
                <td class={from === "default" ? "faint" : ""}>{from}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <p class="faint">
        <a href="licences.txt">Licences of the console's libraries</a>
      </p>
    </div>
  );
}

const Fact = ({ name, value }: { name: string; value: string }) => (
  <div class="tile">
    <strong class="mono">{value}</strong>
    <span>{name}</span>
  </div>
);

function Confirm({ name, label, what, done }: { name: Command; label: string; what: string; done: () => void }) {
  const [error, fail] = useState<unknown>();
  const [isBusy, busy] = useState(false);
  const run = async (): Promise<void> => {
    busy(true);
    try {
      const answer = await command(name);
      toast(typeof answer.text === "string" ? answer.text : `${label}: done.`);
      closeDialog();
      done();
    } catch (wrong) {
      fail(wrong);
      busy(false);
    }
  };
  return (
    <Dialog title={`${label}?`}>
      <p>{what}</p>
      {error !== undefined && <Notice>{words(error)}</Notice>}
      <div class="actions">
        <Button onClick={closeDialog}>Cancel</Button>
        <Button kind={name === "freeze" ? "danger" : "primary"} busy={isBusy} onClick={() => void run()}>
          {label}
        </Button>
      </div>
    </Dialog>
  );
}
