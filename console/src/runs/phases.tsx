// The phases of a run and their progress.
import { visible } from "../parts/value";
import { countOf } from "./feed";
import type { RunState } from "./live-run";

export interface Progress {
  id: string;
  name: string;
  done: number;
  of: number;
  /** Whether one of its steps failed. */
  failed: boolean;
  /** Whether one of its steps is running. */
  busy: boolean;
}

/** Progress of each phase. Instances of a fan-out are not counted besides their step. */
export function progressOf(state: Pick<RunState, "phases" | "node_results">): Progress[] {
  const all = new Map<string, Progress>();
  for (const { id, name } of state.phases ?? [])
    all.set(id, { id, name, done: 0, of: 0, failed: false, busy: false });
  for (const node of state.node_results) {
    const phase =
      node.phase === undefined || node.node_id.endsWith("]") ? undefined : all.get(node.phase);
    if (!phase) continue;
    const count = countOf(node.status);
    phase.of += 1;
    if (count === "executed_count") phase.done += 1;
    if (count === "failed_count") phase.failed = true;
    if (count === "in_flight_count") phase.busy = true;
  }
  return [...all.values()].filter((one) => one.of > 0);
}

export function Phases({ state }: { state: RunState }) {
  const phases = progressOf(state);
  if (phases.length === 0) return null;
  return (
    <ol className="phases" aria-label="Phases">
      {phases.map((one) => {
        const tone = one.failed ? "bad" : one.done === one.of ? "good" : one.busy ? "busy" : "calm";
        return (
          <li key={one.id} className={`edge-${tone}`}>
            <b className="cut">{visible(one.name)}</b>{" "}
            <span>
              {one.done} of {one.of}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
