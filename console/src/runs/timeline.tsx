// When each step ran, and when it requested an approval.
import { useMemo, useState } from "react";
import { Empty } from "../parts/feedback";
import { duration, useNow } from "../parts/format";
import { tone, words } from "../parts/status";
import { VirtualList } from "../parts/virtual-list";
import { countOf } from "./feed";
import { shownStatus } from "./gate-waits";
import type { Node, RunState } from "./live-run";

interface Props {
  state: RunState;
  chosen: string | null;
  onChoose: (step: string) => void;
}

/** Number of steps from which filters are shown. */
const FILTERED_FROM = 30;
const GROUPS = [
  ["in_flight_count", "In flight"],
  ["failed_count", "Failed"],
  ["waiting_count", "Waiting"],
  ["executed_count", "Done"],
] as const;

/** Short texts for steps that have not started. */
const SHORT: Readonly<Record<string, string>> = {
  awaiting_dependency: "waits",
  awaiting_approval: "approval",
  waits_at_a_gate: "at a gate",
};

export function Timeline({ state, chosen, onChoose }: Props) {
  const now = useNow(state.completed_at ? 3_600_000 : 500);
  const from = Date.parse(state.started_at);
  const until = Math.max(from + 1, state.completed_at ? Date.parse(state.completed_at) : now);
  const [typed, setTyped] = useState("");
  const [group, setGroup] = useState("");
  const all = state.node_results;
  const nodes = useMemo(() => {
    const fits = (node: Node) =>
      node.node_id.includes(typed) && (group === "" || countOf(node.status) === group);
    return typed === "" && group === "" ? all : all.filter(fits);
  }, [all, typed, group]);
  if (all.length === 0) return <Empty title="No steps" />;
  const row = (at: number) => {
    const node = nodes[at];
    if (!node) return null;
    const began = node.started_at ? Date.parse(node.started_at) : null;
    const ended = node.completed_at ? Date.parse(node.completed_at) : until;
    const took = node.duration_ms ?? (began === null ? null : ended - began);
    return (
      <button
        type="button"
        className={node.node_id === chosen ? "line chosen" : "line"}
        onClick={() => onChoose(node.node_id)}
      >
        <span className="cut">{node.node_id}</span>
        {took !== null && <span className="sr">{words(shownStatus(node))}</span>}
        <Track node={node} state={state} from={from} until={until} />
        <span className="right small muted cut" title={words(shownStatus(node))}>
          {took === null ? (SHORT[shownStatus(node)] ?? words(node.status)) : duration(took)}
        </span>
      </button>
    );
  };
  return (
    <div className="journal">
      {all.length >= FILTERED_FROM && (
        <search className="bar small">
          <input
            type="search"
            aria-label="Find a step"
            placeholder="Step name"
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
          <select
            aria-label="Which steps"
            value={group}
            onChange={(event) => setGroup(event.target.value)}
          >
            <option value="">All steps</option>
            {GROUPS.map(([count, label]) => (
              <option key={count} value={count}>
                {label} ({state[count]})
              </option>
            ))}
          </select>
        </search>
      )}
      {nodes.length === 0 && <Empty title="No step matches" />}
      <VirtualList
        count={nodes.length}
        row={row}
        id={(at) => nodes[at]?.node_id ?? at}
        label="Steps over time"
      />
    </div>
  );
}

interface TrackProps {
  node: Node;
  state: RunState;
  /** Start and end of the time axis. */
  from: number;
  until: number;
}

/** The bar of a step on the time axis, with a mark for each approval request. */
function Track({ node, state, from, until }: TrackProps) {
  const share = (at: number) =>
    `${Math.min(100, Math.max(0, ((at - from) / (until - from)) * 100))}%`;
  const began = node.started_at ? Date.parse(node.started_at) : null;
  const ended = node.completed_at ? Date.parse(node.completed_at) : until;
  const approvals = state.approvals.filter((one) => one.node_id === node.node_id);
  return (
    <span className={`track ink-${tone(shownStatus(node))}`}>
      {began !== null && (
        <i
          style={{
            left: share(began),
            width: `calc(${share(from + Math.max(0, ended - began))})`,
          }}
        />
      )}
      {approvals.map((one) => (
        <i
          key={one.approval_id}
          className="diamond ink-wait"
          style={{ left: share(Date.parse(one.requested_at)) }}
        />
      ))}
    </span>
  );
}
