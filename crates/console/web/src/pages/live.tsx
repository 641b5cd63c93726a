// What the server does now: throughput, latency, hot partitions, requests as they end, the store's health.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { connection, follow, HEAT_COLUMNS, hot, type HotPartition, isPaused, placeOf, PULSES, pulses, skipped, tail, type TailRequest } from "../api/events.ts";
import { status } from "../api/server.ts";
import { session } from "../api/session.ts";
import { bytes, clock, count, duration, milliseconds, plural, short } from "../lib/format.ts";
import { href } from "../lib/router.ts";
import { literal } from "../model/edm.ts";
import { Chart } from "../ui/chart.tsx";
import { Button, Empty, Meter, Notice, useLoaded } from "../ui/parts.tsx";

export function Live() {
  useEffect(follow, []);
  const list = pulses.value;
  const now = list.at(-1);
  const isServer = !now || now.commits !== undefined;
  return (
    <div class="page">
      <header class="page-head">
        <div>
          <h1>Live</h1>
          <p class="lead">{isServer ? "The whole server, second by second" : "Your account, second by second"}</p>
        </div>
        <span class={`pulse ${connection.value}`} role="status">
          {connection.value === "open" ? "connected" : connection.value === "lost" ? "connection lost, trying again" : "connecting"}
        </span>
      </header>
      {session.value?.admin && <Health />}
      <div class="tiles">
        <Tile name="requests a second" value={now ? short(now.requests) : "–"} />
        <Tile name="errors a second" value={now ? short(now.errors) : "–"} isBad={(now?.errors ?? 0) > 0} />
        <Tile name="median" value={now?.requests ? milliseconds(now.p50_ms) : "–"} />
        <Tile name="99 of 100 take less" value={now?.requests ? milliseconds(now.p99_ms) : "–"} />
        {isServer && <Tile name="examined for one returned" value={now?.entities_returned ? short((now.entities_examined ?? 0) / now.entities_returned) : "–"} />}
        {isServer && <Tile name="to make a commit durable" value={now?.commits ? milliseconds((now.sync_ms ?? 0) / now.commits) : "–"} />}
      </div>
      <div class="charts">
        <div class="card">
          <Chart
            title="Throughput"
            width={PULSES}
            unit="/s"
            series={[
              { name: "requests", kind: "one", values: list.map(({ requests }) => requests) },
              { name: "errors", kind: "bad", values: list.map(({ errors }) => errors) },
            ]}
          />
        </div>
        <div class="card">
          <Chart
            title="Latency"
            width={PULSES}
            unit="ms"
            series={[
              { name: "p50", kind: "one", values: list.map(({ p50_ms }) => p50_ms) },
              { name: "p99", kind: "two", values: list.map(({ p99_ms }) => p99_ms) },
            ]}
          />
        </div>
        {isServer && <div class="card">
          <Chart
            title="Entities"
            width={PULSES}
            unit="/s"
            series={[
              { name: "examined", kind: "two", values: list.map(({ entities_examined = 0 }) => entities_examined) },
              { name: "returned", kind: "one", values: list.map(({ entities_returned = 0 }) => entities_returned) },
            ]}
          />
        </div>}
        {isServer && <div class="card">
          <Chart
            title="Commits"
            width={PULSES}
            unit="/s"
            series={[
              { name: "commits", kind: "one", values: list.map(({ commits = 0 }) => commits) },
            ]}
          />
        </div>}
      </div>
      <HeatMap />
      <Tail />
    </div>
  );
}

const Tile = ({ name, value, isBad }: { name: string; value: string; isBad?: boolean }) => (
  <div class={`tile${isBad ? " bad" : ""}`}>
    <strong class="mono">{value}</strong>
    <span>{name}</span>
  </div>
);

function Health() {
  const { value, error, again } = useLoaded(status, []);
  useEffect(() => {
    const timer = setInterval(again, 5000);
    return () => clearInterval(timer);
  }, []);
  if (!value) return error ? <Notice>The server's status can't be read.</Notice> : null;
  const { health, store, memory, disk, connections, uptime_seconds, version } = value;
  return (
    <section class="card health" aria-label="Health">
      <div class={`health-state ${!health.ready ? "bad" : health.reasons.length ? "fair" : "good"}`}>
        <strong>{health.ready ? (health.reasons.length ? "Ready, with remarks" : "Healthy") : "Not ready"}</strong>
        <span>
          Partita {version}, {store.kind === "memory" ? "in memory" : store.kind}, up {duration(uptime_seconds)}
        </span>
        {health.reasons.map((reason) => (
          <p key={reason} class="fault">
            {reason}
          </p>
        ))}
      </div>
      <dl class="gauges">
        <div>
          <dt>Memory</dt>
          <dd class="mono">{memory.resident_bytes ? bytes(memory.resident_bytes) : "–"}</dd>
        </div>
        <div>
          <dt>Held for requests</dt>
          <dd class="mono">
            {bytes(memory.request_bytes_held)} of {bytes(memory.request_bytes_max)}
            <Meter label="Memory held for requests" value={memory.request_bytes_held} of={memory.request_bytes_max} />
          </dd>
        </div>
        <div>
          <dt>Connections</dt>
          <dd class="mono">
            {count(connections.open)} of {count(connections.max)}
            <Meter label="Connections" value={connections.open} of={connections.max} />
          </dd>
        </div>
        {typeof disk?.used_bytes === "number" && (
          <div>
            <dt>Disk</dt>
            <dd class="mono">
              {bytes(disk.used_bytes)}
              {typeof disk.free_bytes === "number" && `, ${bytes(disk.free_bytes)} free`}
            </dd>
          </div>
        )}
      </dl>
    </section>
  );
}

const HEAT_ROWS = 14;

/** What a hot place is called, and the page that shows it. */
function shownAs({ service, name, partition }: HotPartition): { label: string; target: string } {
  switch (service) {
    case "queue":
      return { label: "queue", target: href(["queues", name]) };
    case "blob":
      return partition ? { label: partition, target: href(["blobs", name], { blob: partition }) } : { label: "container", target: href(["blobs", name]) };
    default:
      return partition == null ? { label: "several partitions", target: href(["tables", name]) } : { label: partition || "(empty key)", target: href(["tables", name], { filter: `PartitionKey eq ${literal({ type: "String", text: partition })}` }) };
  }
}

function HeatMap() {
  const { columns, places, minute } = hot.value;
  const totals = new Map<string, number>();
  for (const column of columns) for (const [place, requests] of column) totals.set(place, (totals.get(place) ?? 0) + requests);
  for (const place of minute.partitions) if (!totals.has(placeOf(place))) totals.set(placeOf(place), 0);
  const shown = [...totals].sort((a, b) => b[1] - a[1]).slice(0, HEAT_ROWS).map(([place]) => place);
  const most = Math.max(1, ...columns.flatMap((column) => [...column.values()]));
  return (
    <section class="card">
      <header class="card-head">
        <h2>Hot partitions</h2>
        <span class="faint">
          two minutes, each square two seconds{minute.sampled ? "; sampled" : ""}
        </span>
      </header>
      {shown.length === 0 ? (
        <p class="none">{session.value?.rights === "owner" ? "No requests yet. The partitions that get most of them appear here." : "Keys are data, so only the owner of an account sees its partitions: sign in with the account's key."}</p>
      ) : (
        <div class="heat-scroll" tabIndex={0} role="region" aria-label="Hot partitions">
          <table class="heat">
            <thead>
              <tr>
                <th scope="col">Partition</th>
                <th scope="col" class="number">
                  this minute
                </th>
                <th scope="col" class="number">
                  entities
                </th>
                <th scope="col" class="number">
                  refused
                </th>
                <th scope="col" class="heat-cells">
                  <span class="hidden">Requests over the last two minutes</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((key) => {
                const place = places.get(key);
                const current = minute.partitions.find((one) => placeOf(one) === key);
                if (!place) return null;
                const { label, target } = shownAs(place);
                return (
                  <tr key={key}>
                    <th scope="row">
                      <a class="mono" href={target} title={`${place.name} ${label}`}>
                        <span class="faint">{place.name}</span> {label}
                      </a>
                    </th>
                    <td class="number mono">{count(current?.requests ?? 0)}</td>
                    <td class="number mono">{count(current?.entities ?? 0)}</td>
                    <td class={`number mono${current?.refusals ? " bad" : ""}`}>{count(current?.refusals ?? 0)}</td>
                    <td class="heat-cells">
                      <Squares values={columns.map((column) => column.get(key) ?? 0)} most={most} />
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

/** Five levels on a logarithmic scale, so that a quiet partition beside a hot one is still seen. */
const level = (value: number, most: number): number => (value <= 0 ? 0 : 1 + Math.min(4, Math.floor((4.999 * Math.log1p(value)) / Math.log1p(most))));

function Squares({ values, most }: { values: number[]; most: number }) {
  const empty = HEAT_COLUMNS - values.length;
  return (
    <svg class="squares" viewBox={`0 0 ${HEAT_COLUMNS * 10} 14`} preserveAspectRatio="none" aria-hidden="true">
      {values.map((value, index) => (
        <rect key={index} x={(empty + index) * 10} width="9" height="14" class={`heat-${level(value, most)}`} />
      ))}
    </svg>
  );
}

const KINDS = [
  ["", "All"],
  ["ok", "Done"],
  ["refused", "Refused (4xx)"],
  ["failed", "Failed (5xx)"],
  ["slow", "Slow (≥ 100 ms)"],
] as const;

const KIND_TESTS: Record<string, (request: TailRequest) => boolean> = {
  ok: ({ status }) => status < 400,
  refused: ({ status }) => status >= 400 && status < 500,
  failed: ({ status }) => status >= 500,
  slow: ({ ms }) => ms >= 100,
};

function Tail() {
  const text = useSignal("");
  const service = useSignal("");
  const kind = useSignal("");
  const wanted = text.value.toLowerCase();
  const shown = tail.value.filter(
    (request) =>
      (!service.value || request.service === service.value) &&
      (!kind.value || KIND_TESTS[kind.value]?.(request)) &&
      (!wanted || `${request.operation} ${request.method} ${request.path} ${request.status} ${request.code ?? ""} ${request.account ?? ""}`.toLowerCase().includes(wanted)),
  );
  return (
    <section class="card">
      <header class="card-head">
        <h2>Requests</h2>
        <div class="tail-filters">
          <input type="search" aria-label="Find requests" placeholder="Operation, path, code" value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} />
          <select aria-label="Service" value={service.value} onChange={(event) => (service.value = event.currentTarget.value)}>
            <option value="">All services</option>
            <option value="table">Table</option>
            <option value="queue">Queue</option>
            <option value="blob">Blob</option>
          </select>
          <select aria-label="Outcome" value={kind.value} onChange={(event) => (kind.value = event.currentTarget.value)}>
            {KINDS.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
          <Button kind="quiet" icon={isPaused.value ? "play" : "pause"} pressed={isPaused.value} onClick={() => (isPaused.value = !isPaused.value)}>
            {isPaused.value ? "Resume" : "Pause"}
          </Button>
        </div>
      </header>
      {shown.length === 0 ? (
        <Empty icon="live" title={tail.value.length ? "Nothing matches" : "No requests yet"}>
          <p>{tail.value.length ? "Change the filters above." : session.value?.rights === "sas" && !session.value.admin ? "Paths name keys, which are data, so only the owner of an account sees its requests: sign in with the account's key." : "Requests appear here as they end."}</p>
        </Empty>
      ) : (
        <div class="tail" tabIndex={0} role="region" aria-label="Requests as they end">
          <table class="list dense">
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">Status</th>
                <th scope="col">Operation</th>
                <th scope="col">Path</th>
                <th scope="col" class="number">
                  Took
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.slice(0, 200).map((request) => (
                <tr key={request.id}>
                  <td class="mono">{clock(request.at)}</td>
                  <td class="mono">
                    <span class={`status s${Math.floor(request.status / 100)}`}>{request.status}</span> {request.code && <span class="faint">{request.code}</span>}
                  </td>
                  <td>
                    {request.operation} <span class="faint">{request.service}</span>
                  </td>
                  <td class="mono path">
                    {request.method} {request.path}
                  </td>
                  <td class={`number mono${request.ms >= 100 ? " bad" : ""}`}>{milliseconds(request.ms)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {skipped.value > 0 && <p class="none">{plural(skipped.value, "request was", "requests were")} left out: at most 50 a second are shown.</p>}
    </section>
  );
}
