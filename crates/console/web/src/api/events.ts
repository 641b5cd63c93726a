// The server's events: a pulse each second, the tail of requests, hot partitions. All histories are bounded.

import { signal } from "@preact/signals";

export interface Pulse {
  at: string;
  requests: number;
  errors: number;
  p50_ms: number;
  p99_ms: number;
  /** The rest is the server's, for its administrator. */
  entities_examined?: number;
  entities_returned?: number;
  bytes_in?: number;
  bytes_out?: number;
  connections?: number;
  resident_bytes?: number | null;
  commits?: number;
  sync_ms?: number;
}

export interface TailRequest {
  at: string;
  service: string;
  operation: string;
  method: string;
  path: string;
  status: number;
  code?: string | null;
  ms: number;
  account?: string | null;
  /** Given here, for lists. */
  id: number;
}

export interface HotPartition {
  service: string;
  name: string;
  partition?: string | null;
  requests: number;
  entities: number;
  kib: number;
  refusals: number;
}

interface HotMinute {
  seconds: number;
  sampled?: boolean;
  partitions: HotPartition[];
}

interface Hot {
  this_minute: HotMinute;
  last_minute: HotMinute;
}

export const PULSES = 120;
const TAIL = 400;
export const HEAT_COLUMNS = 60;

export const pulses = signal<Pulse[]>([]);
export const tail = signal<TailRequest[]>([]);
export const skipped = signal(0);
export const isPaused = signal(false);
export const connection = signal<"waiting" | "open" | "lost">("waiting");
/** The latest answer, and what each partition got in each of the last intervals. */
export const hot = signal<{ minute: HotMinute; columns: Map<string, number>[]; places: Map<string, HotPartition> }>({ minute: { seconds: 1, partitions: [] }, columns: [], places: new Map() });

export const placeOf = ({ service, name, partition }: HotPartition): string => JSON.stringify([service, name, partition ?? null]);

let before: { minute: HotMinute; counts: Map<string, number> } | undefined;
let nextId = 1;
let lastSeen = 0;

/** Requests since the last event: counts of this minute begin anew with the minute. */
function difference(now: Hot): Map<string, number> {
  const counts = new Map(now.this_minute.partitions.map((place) => [placeOf(place), place.requests]));
  const isSameMinute = !!before && now.this_minute.seconds >= before.minute.seconds;
  const rest = isSameMinute ? undefined : new Map(now.last_minute.partitions.map((place) => [placeOf(place), place.requests]));
  const found = new Map<string, number>();
  for (const [place, requests] of counts) {
    const earlier = before?.counts.get(place) ?? 0;
    const since = !before ? 0 : isSameMinute ? requests - earlier : requests + Math.max(0, (rest?.get(place) ?? earlier) - earlier);
    if (since > 0) found.set(place, since);
  }
  before = { minute: now.this_minute, counts };
  return found;
}

function onHot(now: Hot): void {
  const columns = [...hot.peek().columns, difference(now)].slice(-HEAT_COLUMNS);
  const places = new Map(hot.peek().places);
  for (const place of now.this_minute.partitions) places.set(placeOf(place), place);
  const shown = new Set(columns.flatMap((column) => [...column.keys()]).concat(now.this_minute.partitions.map(placeOf)));
  for (const place of places.keys()) if (!shown.has(place)) places.delete(place);
  hot.value = { minute: now.this_minute, columns, places };
}

function read<T>(event: Event, then: (value: T) => void): void {
  try {
    then(JSON.parse((event as MessageEvent<string>).data) as T);
  } catch {
    // An event that can't be read is left out; the next one follows in a second.
  }
}

/** Follows the events until the returned function is called. */
export function follow(): () => void {
  const source = new EventSource("/api/events");
  connection.value = "waiting";
  // What was seen before a pause would be drawn as if no time had passed.
  before = undefined;
  if (Date.now() - lastSeen > 5000) {
    pulses.value = [];
    hot.value = { ...hot.peek(), columns: [] };
  }
  let waiting: TailRequest[] = [];
  // Fifty requests a second are one change of the page, not fifty.
  const timer = setInterval(() => {
    if (!waiting.length || isPaused.peek()) return;
    tail.value = [...waiting.reverse(), ...tail.peek()].slice(0, TAIL);
    waiting = [];
  }, 250);
  source.onopen = () => (connection.value = "open");
  source.onerror = () => (connection.value = "lost");
  source.addEventListener("pulse", (event) =>
    read<Pulse>(event, (pulse) => {
      lastSeen = Date.now();
      pulses.value = [...pulses.peek(), pulse].slice(-PULSES);
    }),
  );
  source.addEventListener("request", (event) =>
    read<TailRequest>(event, (request) => {
      if (waiting.length < TAIL) waiting.push({ ...request, id: nextId++ });
    }),
  );
  source.addEventListener("skipped", (event) => read<number | { count: number }>(event, (count) => (skipped.value += typeof count === "number" ? count : count.count)));
  source.addEventListener("hot", (event) => read<Hot>(event, onHot));
  return () => {
    clearInterval(timer);
    source.close();
  };
}
