// When each step worked, and when people were asked.
import { duration, useNow } from "../parts/figures";
import { Rows } from "../parts/rows";
import { Empty } from "../parts/states";
import { tone, words } from "../parts/status";
import type { RunState } from "./live";

interface Wish {
  state: RunState;
  chosen: string | null;
  onChoose: (step: string) => void;
}

/** Statuses of steps that have not begun, as short as they fit. */
const SHORT: Readonly<Record<string, string>> = { awaiting_dependency: "waits", awaiting_approval: "is asked" };

export function Timeline({ state, chosen, onChoose }: Wish) {
  const now = useNow(state.completed_at ? 3_600_000 : 500);
  const from = Date.parse(state.started_at);
  const until = Math.max(from + 1, state.completed_at ? Date.parse(state.completed_at) : now);
  const share = (at: number) => `${Math.min(100, Math.max(0, ((at - from) / (until - from)) * 100))}%`;
  const nodes = state.node_results;
  if (nodes.length === 0) return <Empty title="There are no steps" />;
  const row = (at: number) => {
    const node = nodes[at];
    if (!node) return null;
    const began = node.started_at ? Date.parse(node.started_at) : null;
    const ended = node.completed_at ? Date.parse(node.completed_at) : until;
    const asked = state.approvals.filter((one) => one.node_id === node.node_id);
    const took = node.duration_ms ?? (began === null ? null : ended - began);
    return (
      <button
        type="button"
        className={node.node_id === chosen ? "line chosen" : "line"}
        onClick={() => onChoose(node.node_id)}
      >
        <span className="cut">{node.node_id}</span>
        {took !== null && <span className="sr">{words(node.status)}</span>}
        <span className={`track ink-${tone(node.status)}`}>
          {began !== null && (
            <i style={{ left: share(began), width: `calc(${share(from + Math.max(0, ended - began))})` }} />
          )}
          {asked.map((one) => (
            <i key={one.approval_id} className="diamond ink-wait" style={{ left: share(Date.parse(one.requested_at)) }} />
          ))}
        </span>
        <span className="right small muted cut" title={words(node.status)}>
          {took === null ? SHORT[node.status] ?? words(node.status) : duration(took)}
        </span>
      </button>
    );
  };
  return <Rows count={nodes.length} row={row} id={(at) => nodes[at]?.node_id ?? at} label="Steps over time" />;
}
