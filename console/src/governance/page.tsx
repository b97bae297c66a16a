// Governance: what decides, what it may cost, who works and where.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { request } from "../api/client";
import type { Event } from "../api/follow";
import { useWhatHappens } from "../connection";
import { Confirm } from "../parts/confirm";
import { Empty } from "../parts/feedback";
import { useTitle } from "../parts/format";
import { GOVERNANCE, type GovernancePart, Link } from "../route";
import { useMay } from "../session";
import { Agents } from "./agents";
import { Budgets } from "./budgets";
import { Gateways } from "./gateways";
import { Policies } from "./policies";

const WORDS: Readonly<Record<GovernancePart, string>> = {
  policies: "Policies",
  budgets: "Budgets",
  agents: "Agents",
  gateways: "Gateways",
};

/** What changes what is counted. */
const matters = (event: Event) =>
  /^(node\.(started|completed|failed|timed_out)|budget\.|run\.(completed|failed))/.test(event.type);
/** How often figures are looked up while much happens. */
const BEAT_MS = 4_000;

export default function Governance({ part }: { part: GovernancePart }) {
  const may = useMay("governance:read");
  const queries = useQueryClient();
  useTitle(WORDS[part]);
  useWhatHappens(
    matters,
    useCallback(() => {
      for (const key of ["budgets", "burn", "month", "health", "agents", "gateways", "switches"])
        void queries.invalidateQueries({ queryKey: [key] });
    }, [queries]),
    BEAT_MS,
  );
  if (!may) return <Empty title="Your role does not look at governance" />;
  return (
    <div className="page">
      <div className="bar">
        <h1 className="grow">Governance</h1>
        <Everything />
      </div>
      <nav className="parts" aria-label="Governance">
        {GOVERNANCE.map((one) => (
          <Link
            key={one}
            href={`/governance/${one}`}
            {...(one === part ? { "aria-current": "page" as const } : {})}
          >
            {WORDS[one]}
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

/** The switch for everything. */
function Everything() {
  const queries = useQueryClient();
  const may = useMay("governance:write");
  const [asked, setAsked] = useState(false);
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
  const turn = async () => {
    await request("put", "/api/v1/switches/{name}", {
      path: { name: "all" },
      body: { held: !held },
    });
    await queries.invalidateQueries({ queryKey: ["switches"] });
  };
  return (
    <>
      {held && <span className="note">Everything is held: nothing is dispatched.</span>}
      {may && (
        <button type="button" className={held ? "primary" : ""} onClick={() => setAsked(true)}>
          {held ? "Let everything go on…" : "Hold everything…"}
        </button>
      )}
      {asked && (
        <Confirm
          title={held ? "Let everything go on?" : "Hold everything?"}
          act={held ? "Let it go on" : "Hold everything"}
          danger={!held}
          onClose={() => setAsked(false)}
          onAct={turn}
        >
          <p>
            {held
              ? "Steps that wait are decided anew, and dispatched where the gates allow it."
              : "No step of any run is dispatched until somebody turns this back. What is under way goes on to its end."}
          </p>
        </Confirm>
      )}
    </>
  );
}
