// What the server says of itself: status, settings, commands.

import { getJson, postJson } from "./http.ts";

export interface Status {
  version: string;
  commit?: string;
  rocksdb?: string;
  format?: string;
  started: string;
  uptime_seconds: number;
  health: { ready: boolean; reasons: string[] };
  store: { kind: string; place?: string };
  engine: Record<string, number>;
  connections: { open: number; max: number };
  memory: { resident_bytes?: number | null; request_bytes_held: number; request_bytes_max: number; cache_bytes?: number | null };
  disk?: { used_bytes?: number | null; free_bytes?: number | null } | null;
  accounts: string[];
  jobs?: { kind: string; started: string; done?: number; total?: number }[];
  backups?: unknown[];
  cluster?: ClusterStatus | null;
}

export interface ClusterStatus {
  keyspace?: string;
  /** This server's own slot. */
  slot?: number;
  front_ends?: { slot: number; this?: boolean; table_lease_ms?: number | null; frozen?: boolean }[];
  nodes?: { address: string; datacenter?: string | null; rack?: string | null; up?: boolean }[];
  segments?: { table: string; account?: string; segments: number }[];
  /** Why the cluster could not be asked. */
  error?: string;
}

export interface Setting {
  name: string;
  value: unknown;
  from: string;
}

export const status = (): Promise<Status> => getJson("/api/status");

export async function settings(): Promise<Setting[]> {
  const answer = await getJson<Setting[] | { settings: Setting[] }>("/api/settings");
  return Array.isArray(answer) ? answer : answer.settings;
}

export type Command = "reload" | "checkpoint" | "freeze" | "thaw";
export const command = (name: Command): Promise<Record<string, unknown>> => postJson(`/api/commands/${name}`, {});
