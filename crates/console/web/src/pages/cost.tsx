// What a query cost: its class, ranges, examined against returned, time, what Azure would charge; and why it is slow.

import { words } from "../api/http.ts";
import { session } from "../api/session.ts";
import { advice, explain, type Explained } from "../api/tables.ts";
import type { Rows, Totals } from "../grid/rows.ts";
import { count, duration, milliseconds, plural } from "../lib/format.ts";
import { Advice, Proposed } from "./advice.tsx";
import { Dialog, openDialog } from "../ui/dialog.tsx";
import { Button, Notice, useLoaded } from "../ui/parts.tsx";

const GOOD = ["point", "range", "empty"];
/** A scan is no fault if what it reads is what was asked for. */
const classKind = (name: string, examined: number, returned: number): string =>
  GOOD.includes(name) ? "good" : examined <= 2 * returned ? "plain" : name.startsWith("partition") ? "fair" : "poor";
const title = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);

export function Cost({ table, filter, rows }: { table: string; filter: string; rows: Rows }) {
  const totals = rows.totals.value;
  const last = totals.last;
  if (!totals.pages) return <div class="cost" />;
  return (
    <div class="cost" role="group" aria-label="What this query cost">
      {last && (
        <span class={`class ${classKind(last.class, totals.examined, totals.returned)}`} title={MEANING[last.class]}>
          {title(last.class)}
        </span>
      )}
      {last && <Fact name={last.key_ranges === 1 ? "key range" : "key ranges"} value={count(last.key_ranges)} />}
      {last && <Fact name="examined" value={count(totals.examined)} />}
      <Fact name="returned" value={count(totals.returned)} />
      {last && totals.examined > 0 && <Share totals={totals} />}
      <Fact name={last ? "in the server" : "in all"} value={milliseconds(last ? totals.serverMs : totals.ms)} />
      <Fact name={totals.pages === 1 ? "page" : "pages"} value={count(totals.pages)} />
      {last?.azure && <Fact name={totals.azureRequests === 1 ? "Azure transaction" : "Azure transactions"} value={count(totals.azureRequests)} hint={azureHint(totals)} />}
      {session.value?.extensions && (
        <Button kind="quiet" icon="bulb" onClick={() => openDialog(() => <WhySlow table={table} filter={filter} totals={totals} />)}>
          Why is this slow?
        </Button>
      )}
    </div>
  );
}

const Fact = ({ name, value, hint }: { name: string; value: string; hint?: string }) => (
  <span class="fact" title={hint}>
    <strong class="mono">{value}</strong> {name}
  </span>
);

/** How much of what was read was wanted. */
function Share({ totals: { examined, returned } }: { totals: Totals }) {
  const share = Math.min(1, returned / Math.max(1, examined));
  return (
    <span class="share" role="img" aria-label={`${Math.round(share * 100)} % of what was examined was returned`} title={`${Math.round(share * 100)} % of what was examined was returned`}>
      <span style={{ width: `${Math.max(3, share * 100)}%` }} />
    </span>
  );
}

const azureHint = ({ azureSeconds }: Totals): string => `An estimate from Azure's scalability targets: about ${duration(azureSeconds)} for these pages.`;

const MEANING: Record<string, string> = {
  point: "Both keys are given: one look-up, as fast as it gets.",
  range: "The keys bound what is read: only rows that can match are looked at.",
  "partition scan": "One partition is given, but the rest of the filter is not about RowKey: every row of the partition is looked at.",
  "table scan": "No partition is given: every row of the table is looked at.",
  empty: "The filter contradicts itself, so nothing is read.",
};

function WhySlow({ table, filter, totals }: { table: string; filter: string; totals: Totals }) {
  const plan = useLoaded(() => explain(table, filter, true), [table, filter]);
  const advised = useLoaded(advice, [table]);
  const explained = plan.value ?? totals.last;
  const found = advised.value?.filter((shape) => shape.table.toLowerCase() === table.toLowerCase()) ?? [];
  return (
    <Dialog title="Why is this slow?" side>
      {explained ? <Reasons explained={explained} totals={totals} filter={filter} table={table} /> : plan.error ? <Notice>{words(plan.error)}</Notice> : <p role="status">Asking the server…</p>}
      <h3>What the advisor proposes for {table}</h3>
      {advised.error !== undefined && <Notice>{words(advised.error)}</Notice>}
      {advised.value !== undefined && found.length === 0 && <p class="faint">Nothing: no query of this table has looked at many rows in vain since the server started.</p>}
      {found.map((shape) => (
        <Advice key={shape.shape} shape={explained?.proposal && shape.shape === explained.shape ? { ...shape, proposal: null } : shape} />
      ))}
    </Dialog>
  );
}

function Reasons({ explained, totals, filter, table }: { explained: Explained; totals: Totals; filter: string; table: string }) {
  const name = explained.class;
  const [examined, returned] = [explained.examined ?? 0, explained.returned ?? 0];
  const inVain = Math.max(0, examined - returned);
  const azure = explained.azure;
  return (
    <div class="reasons">
      <p>
        <span class={`class ${classKind(explained.class, examined, returned)}`}>{title(explained.class)}</span> {MEANING[name] ?? ""}
      </p>
      {filter ? <pre class="code">{filter}</pre> : <p>Without a filter every row of {table} is an answer, so every row is read, page by page.</p>}
      <dl class="facts">
        <dt>Key ranges read</dt>
        <dd>
          {count(explained.key_ranges)}
          {explained.ranges?.map((range) => (
            <div key={range} class="mono faint">
              {range}
            </div>
          ))}
        </dd>
        <dt>Looked at for one page</dt>
        <dd>{plural(examined, "entity", "entities")}</dd>
        <dt>Returned</dt>
        <dd>{plural(returned, "entity", "entities")}</dd>
        <dt>In vain</dt>
        <dd>{inVain === 0 ? "none" : `${plural(inVain, "entity", "entities")}, ${percent(inVain / Math.max(1, examined))}`}</dd>
        {explained.ms !== undefined && (
          <>
            <dt>Time in the server</dt>
            <dd>{milliseconds(explained.ms)}</dd>
          </>
        )}
        <dt>All pages so far</dt>
        <dd>
          {plural(totals.pages, "page")}, {milliseconds(totals.ms)}
        </dd>
        {azure && (
          <>
            <dt>The same in Azure</dt>
            <dd>
              {azure.class ? `${azure.class}, ` : ""}
              {azure.at_least ? "for this page alone " : ""}
              {azure.entities !== undefined ? `${plural(azure.entities, "entity", "entities")} to read, ` : ""}
              {azure.seconds_at_targets !== undefined ? `about ${duration(azure.seconds_at_targets)} at its targets, ` : ""}
              {plural(azure.requests ?? 0, "transaction")}
            </dd>
          </>
        )}
      </dl>
      <h3>What helps</h3>
      {explained.proposal ? <Proposed proposal={explained.proposal} /> : <ul class="help">{helps(name, filter).map((line) => <li key={line}>{line}</li>)}</ul>}
    </div>
  );
}

/** Never rounded up to 100. */
const percent = (share: number): string => `${share < 1 ? Math.floor(share * 1000) / 10 : 100} %`;

function helps(name: string, filter: string): string[] {
  if (name === "point" || name === "empty") return ["Nothing to improve: it is one look-up."];
  if (name === "range") return ["The keys already bound what is read. Select fewer properties, or fewer rows, if answers are large."];
  if (name === "partition scan") return ["Bound RowKey as well, for example RowKey ge 'a' and RowKey lt 'b'.", "If you search by this property often, make it part of RowKey in a second copy of the entity."];
  if (!filter) return ["Add a filter on PartitionKey.", "To count or copy a whole table, this is what it takes."];
  return ["Add PartitionKey eq '…' to the filter if you know it: then one partition is read instead of all.", "If you do not know it, keep a second copy of the entity, with the property that you search for as its PartitionKey."];
}
