// What became different between two states of a run, so that a page takes over only that.
//
// What must hold: whoever lays all the changes over what they had has the newest state. Steps that did
// not change stay the same objects there, and are not drawn again.
import type { Schemas } from "../api/client";

type Whole = Schemas["RunState"];
type WholeNode = Whole["node_results"][number];

/** What a page shows of each step without being asked: the rest comes with the step itself. */
export type Node = Omit<
  WholeNode,
  "inputs" | "prompt" | "stdout" | "output" | "outputs" | "prompt_layers" | "media" | "metadata"
>;
export type RunState = Omit<Whole, "node_results"> & { node_results: readonly Node[] };

/** Some steps that changed, by their places. */
export interface StatePart {
  nodes: [number, Node][];
}

/** The last word about a state. */
export interface StateHead {
  head: Omit<RunState, "node_results">;
  count: number;
}

/** Steps that are handed over at once: more would be felt. */
const PART_MAX = 400;

function summaryOf(node: WholeNode): Node {
  const { inputs: _i, prompt: _p, stdout: _s, output: _o, outputs: _u, ...more } = node;
  const { prompt_layers: _l, media: _m, metadata: _d, ...rest } = more;
  return rest;
}

/** Remembers what it told, and tells what is new. */
export class StateDiff {
  #sent: string[] = [];

  /** Parts, and what belongs to all of them. */
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

/** A state with changes laid over it. */
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
