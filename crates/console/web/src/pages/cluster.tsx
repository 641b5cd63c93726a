// The cluster: servers and their slots, nodes, directory segments. On a single server: what that means.

import { type ClusterStatus, status } from "../api/server.ts";
import { count, milliseconds } from "../lib/format.ts";
import { Button, Empty, Failure, Notice, useLoaded } from "../ui/parts.tsx";

export function Cluster() {
  const { value, error, isLoading, again } = useLoaded(status, []);
  return (
    <div class="page">
      <header class="page-head">
        <div>
          <h1>Cluster</h1>
          <p class="lead">Servers, slots, nodes and directory segments</p>
        </div>
        {value?.cluster && (
          <div class="actions">
            <Button kind="quiet" icon="refresh" label="Read again" busy={isLoading} onClick={again} />
          </div>
        )}
      </header>
      <Failure error={error} retry={again} />
      {value && !value.cluster && (
        <Empty icon="cluster" title="A single server">
          <p>
            This server keeps its data {value.store.kind === "memory" ? "in memory" : "itself, on one machine"}, so there is no cluster. With a store on Apache Cassandra (<code>--store cassandra://HOST/KEYSPACE</code>), this page shows every
            server with its slot, the nodes, and how the directory of partitions is divided.
          </p>
        </Empty>
      )}
      {value?.cluster?.error && <Notice>The cluster can't be asked: {value.cluster.error}</Notice>}
      {value?.cluster && !value.cluster.error && <Parts cluster={value.cluster} />}
    </div>
  );
}

function Parts({ cluster }: { cluster: ClusterStatus }) {
  return (
    <div class="stack">
      {cluster.keyspace && (
        <p class="faint">
          Keyspace <code>{cluster.keyspace}</code>. A server writes only while it holds a slot.
        </p>
      )}
      <List
        title="Servers"
        empty="No server has a slot."
        rows={cluster.front_ends ?? []}
        columns={[
          ["Slot", (row) => (row.this ? `${row.slot} (this one)` : String(row.slot))],
          ["Writes", (row) => (row.frozen ? "frozen" : "accepted")],
          ["Table lease", (row) => (row.table_lease_ms ? milliseconds(row.table_lease_ms) : "–")],
        ]}
      />
      <List
        title="Nodes"
        empty="No node is known."
        rows={cluster.nodes ?? []}
        columns={[
          ["Address", (row) => row.address],
          ["State", (row) => (row.up ? "up" : "down")],
          ["Data centre", (row) => row.datacenter ?? "–"],
          ["Rack", (row) => row.rack ?? "–"],
        ]}
      />
      <List
        title="Directory segments"
        empty="No table has a directory yet."
        rows={cluster.segments ?? []}
        columns={[
          ["Table", (row) => (row.account ? `${row.account}/${row.table}` : row.table)],
          ["Segments", (row) => count(row.segments)],
        ]}
      />
    </div>
  );
}

function List<Row>({ title, empty, rows, columns }: { title: string; empty: string; rows: Row[]; columns: [string, (row: Row) => string][] }) {
  return (
    <section class="card">
      <header class="card-head">
        <h2>{title}</h2>
        <span class="faint">{count(rows.length)}</span>
      </header>
      {rows.length === 0 ? (
        <p class="none">{empty}</p>
      ) : (
        <table class="list">
          <thead>
            <tr>
              {columns.map(([name]) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}>
                {columns.map(([name, text]) => {
                  const shown = text(row);
                  return (
                    <td key={name} class={`mono${shown === "down" || shown === "frozen" ? " bad" : ""}`}>
                      {shown}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
