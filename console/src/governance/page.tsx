// Governance: policies, budgets, agents and gateways.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { request } from "../api/client";
import type { Event } from "../api/follow";
import { useRefreshOnEvents } from "../connection";
import { Confirm } from "../parts/confirm";
import { Empty } from "../parts/feedback";
import { useTitle } from "../parts/format";
import { GOVERNANCE, type GovernancePart, Link } from "../route";
import { usePermission } from "../session";
import { Agents } from "./agents";
import { Budgets } from "./budgets";
import { Gateways } from "./gateways";
import { Policies } from "./policies";

const TITLES: Readonly<Record<GovernancePart, string>> = {
  policies: "Policies",
  budgets: "Budgets",
  agents: "Agents",
  gateways: "Gateways",
};

/** Events that change a figure on these pages. */
const isRelevant = (event: Event) =>
  /^(node\.(started|completed|failed|timed_out)|budget\.|run\.(completed|failed))/.test(event.type);
/** Shortest time between two reloads of the figures. */
const REFRESH_INTERVAL_MS = 4_000;

export default function Governance({ part }: { part: GovernancePart }) {
  const may = usePermission("governance:read");
  const queries = useQueryClient();
  useTitle(TITLES[part]);
  useRefreshOnEvents(
    isRelevant,
    useCallback(() => {
      for (const key of ["budgets", "burn", "month", "health", "agents", "gateways", "switches"])
        void queries.invalidateQueries({ queryKey: [key] });
    }, [queries]),
    REFRESH_INTERVAL_MS,
  );
  if (!may) return <Empty title="Your role cannot view governance" />;
  return (
    <div className="page">
      <div className="bar">
        <h1 className="grow">Governance</h1>
        <HoldSwitch />
      </div>
      <nav className="parts" aria-label="Governance">
        {GOVERNANCE.map((one) => (
          <Link
            key={one}
            href={`/governance/${one}`}
            {...(one === part ? { "aria-current": "page" as const } : {})}
          >
            {TITLES[one]}
          </Link>
        ))}
      </nav>
      {part === "policies" && <Policies />}
      {part === "budgets" && <Budgets />}
      {part === "agents" && <Agents />}
      {part === "gateways" && <Gateways />}
    </div>
  );
}

/** The switch that stops every dispatch. */
function HoldSwitch() {
  const queries = useQueryClient();
  const may = usePermission("governance:write");
  const [confirming, setConfirming] = useState(false);
  const switches = useQuery({
    queryKey: ["switches"],
    queryFn: async ({ signal }) =>
      (await request("get", "/api/v1/switches", { signal })).data as unknown as {
        id: string;
        held: boolean;
      }[],
  });
  if (!switches.data) return null;
  const held = switches.data.some((one) => one.id === "all" && one.held);
  const toggle = async () => {
    await request("put", "/api/v1/switches/{name}", {
      path: { name: "all" },
      body: { held: !held },
    });
    await queries.invalidateQueries({ queryKey: ["switches"] });
  };
  return (
    <>
      {held && <span className="note">Everything is on hold: no step is dispatched.</span>}
      {may && (
        <button type="button" className={held ? "primary" : ""} onClick={() => setConfirming(true)}>
          {held ? "Release the hold…" : "Hold everything…"}
        </button>
      )}
      {confirming && (
        <Confirm
          title={held ? "Release the hold?" : "Hold everything?"}
          act={held ? "Release the hold" : "Hold everything"}
          danger={!held}
          onClose={() => setConfirming(false)}
          onAct={toggle}
        >
          <p>
            {held
              ? "Waiting steps are evaluated again and dispatched if the gates allow it."
              : "No step of any run is dispatched until the hold is released. Running steps continue."}
          </p>
        </Confirm>
      )}
    </>
  );
}
