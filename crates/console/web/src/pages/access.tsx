// Access: the SAS maker and stored access policies.

import { route, replace } from "../lib/router.ts";
import { Tabs } from "../ui/parts.tsx";
import { Policies } from "./policies.tsx";
import { SasMaker } from "./sas_maker.tsx";

const TABS = [
  ["sas", "Make a SAS"],
  ["policies", "Stored policies"],
] as const;

export function Access() {
  const asked = route.value.query.get("tab");
  const tab = asked === "policies" ? "policies" : "sas";
  return (
    <div class="page">
      <header class="page-head">
        <div>
          <h1>Access</h1>
          <p class="lead">Tokens that grant a part of this account for a time</p>
        </div>
      </header>
      <Tabs label="Access" tabs={TABS} chosen={tab} choose={(next) => replace(["access"], { tab: next })} />
      <div role="tabpanel" aria-label={TABS.find(([name]) => name === tab)?.[1]}>
        {tab === "sas" ? <SasMaker /> : <Policies />}
      </div>
    </div>
  );
}
