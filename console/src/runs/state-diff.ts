// The difference between two states of a run, so that a page replaces only changed steps.
//
// INVARIANT: applying every diff in order gives the newest state. Unchanged steps stay the same
// objects and are not rendered again.
import type { Schemas } from "../api/client";

type Whole = Schemas["RunState"];
type WholeNode = Whole["node_results"][number];

/** A step without its large fields; the inspector loads those. */
export type Node = Omit<
  WholeNode,
  "inputs" | "prompt" | "stdout" | "output" | "outputs" | "prompt_layers" | "media" | "metadata"
>;
export type RunState = Omit<Whole, "node_results"> & { node_results: readonly Node[] };

/** Changed steps by index. */
export interface StatePart {
  nodes: [number, Node][];
}

/** The fields of a state besides its steps. */
export interface StateHead {
  head: Omit<RunState, "node_results">;
  count: number;
}

/** Most steps per message: larger messages block the page. */
const PART_MAX = 400;

function summaryOf(node: WholeNode): Node {
  const { inputs: _i, prompt: _p, stdout: _s, output: _o, outputs: _u, ...more } = node;
  const { prompt_layers: _l, media: _m, metadata: _d, ...rest } = more;
  return rest;
}

/** Remembers the steps it returned, and returns only those that changed. */
export class StateDiff {
  #sent: string[] = [];

  diff(state: Whole): { parts: StatePart[]; rest: StateHead } {
    const { node_results: whole, ...head } = state;
    const parts: StatePart[] = [];
    let part: [number, Node][] = [];
    whole.forEach((one, at) => {
      const node = summaryOf(one);
      const text = JSON.stringify(node);
      if (this.#sent[at] === text) return;
      this.#sent[at] = text;
      part.push([at, node]);
      if (part.length === PART_MAX) {
        parts.push({ nodes: part });
        part = [];
      }
    });
    this.#sent.length = whole.length;
    if (part.length > 0) parts.push({ nodes: part });
    return { parts, rest: { head, count: whole.length } };
  }
}

export function applyDiff(
  before: readonly Node[],
  changed: readonly [number, Node][],
  rest: StateHead,
): RunState {
  if (changed.length === 0 && before.length === rest.count)
    return { ...rest.head, node_results: before };
  const nodes = before.slice(0, rest.count);
  for (const [at, node] of changed) nodes[at] = node;
  return { ...rest.head, node_results: nodes };
}
