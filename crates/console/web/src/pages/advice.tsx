// What the advisor says: shapes of filters that looked at many rows in vain, and a proposal for each.

import type { Proposal, Shape } from "../api/tables.ts";
import { count, milliseconds, plural } from "../lib/format.ts";
import { Icon } from "../ui/icons.tsx";

export function Advice({ shape: { shape, queries, examined, returned, ms, proposal } }: { shape: Shape }) {
  return (
    <article class="advice">
      <pre class="code">{shape || "without a filter"}</pre>
      <p class="faint">
        {plural(queries, "query", "queries")}, {count(examined)} examined for {count(returned)} returned, {milliseconds(ms)} in all
      </p>
      {proposal && <Proposed proposal={proposal} />}
    </article>
  );
}

export const Proposed = ({ proposal: { text, pattern } }: { proposal: Proposal }) => (
  <div class="proposed">
    <Icon name="bulb" />
    <div>
      <p>{text}</p>
      {pattern && <p class="faint">The pattern is described in {pattern}.</p>}
    </div>
  </div>
);
