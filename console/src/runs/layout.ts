// The layout of a graph.
//
// For up to `DAGRE_MAX` steps dagre finds a layout with few crossings. For more it takes seconds, so
// the server's waves become columns instead. Both go from left to right.
import dagre from "@dagrejs/dagre";

export interface Step {
  node_id: string;
  wave: number;
  depends_on: readonly string[];
}

export type Positions = Record<string, { x: number; y: number }>;

export const WIDTH = 190;
export const HEIGHT = 54;
/** Most steps laid out by dagre. */
export const DAGRE_MAX = 200;
const GAP_X = 70;
const GAP_Y = 18;
/** Most steps of a wave in one column. */
const COLUMN_MAX = 60;

/** Positions and edges by step index, in typed arrays: cheap to transfer and to scan. */
export interface GraphLayout {
  xs: Float64Array<ArrayBuffer>;
  ys: Float64Array<ArrayBuffer>;
  /** Source and target step of each edge. */
  from: Int32Array<ArrayBuffer>;
  to: Int32Array<ArrayBuffer>;
  /** Computation time in milliseconds. */
  took: number;
}

export function computeLayout(steps: readonly Step[]): GraphLayout {
  const began = performance.now();
  const positions = positionsOf(steps);
  const number = new Map(steps.map((step, at) => [step.node_id, at]));
  const [xs, ys] = [new Float64Array(steps.length), new Float64Array(steps.length)];
  const [from, to]: [number[], number[]] = [[], []];
  steps.forEach((step, at) => {
    const position = positions[step.node_id];
    xs[at] = position?.x ?? 0;
    ys[at] = position?.y ?? 0;
    for (const before of step.depends_on) {
      const source = number.get(before);
      if (source === undefined) continue;
      from.push(source);
      to.push(at);
    }
  });
  return {
    xs,
    ys,
    from: Int32Array.from(from),
    to: Int32Array.from(to),
    took: performance.now() - began,
  };
}

export function positionsOf(steps: readonly Step[]): Positions {
  return steps.length <= DAGRE_MAX ? dagrePositions(steps) : wavePositions(steps);
}

function dagrePositions(steps: readonly Step[]): Positions {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: GAP_Y, ranksep: GAP_X });
  graph.setDefaultEdgeLabel(() => ({}));
  const known = new Set(steps.map((step) => step.node_id));
  for (const step of steps) graph.setNode(step.node_id, { width: WIDTH, height: HEIGHT });
  for (const step of steps) {
    for (const before of step.depends_on)
      if (known.has(before)) graph.setEdge(before, step.node_id);
  }
  dagre.layout(graph);
  const positions: Positions = {};
  for (const step of steps) {
    const { x, y } = graph.node(step.node_id);
    positions[step.node_id] = { x: x - WIDTH / 2, y: y - HEIGHT / 2 };
  }
  return positions;
}

/** Waves from left to right; within a wave, steps are close to their dependencies. */
export function wavePositions(steps: readonly Step[]): Positions {
  const waves = new Map<number, Step[]>();
  for (const step of steps) {
    const wave = waves.get(step.wave);
    if (wave) wave.push(step);
    else waves.set(step.wave, [step]);
  }
  const positions: Positions = {};
  let x = 0;
  for (const [, wave] of [...waves].sort(([one], [other]) => one - other)) {
    const near = (step: Step) => {
      const above = step.depends_on.map((before) => positions[before]?.y ?? 0);
      return above.length === 0 ? 0 : above.reduce((sum, y) => sum + y, 0) / above.length;
    };
    // The sort is stable: equal steps keep the order of the document.
    const order = wave
      .map((step) => [near(step), step] as const)
      .sort(([one], [other]) => one - other);
    const columns = Math.ceil(order.length / COLUMN_MAX);
    const rows = Math.ceil(order.length / columns);
    order.forEach(([, step], at) => {
      const [column, row] = [Math.floor(at / rows), at % rows];
      const y = (row - (rows - 1) / 2) * (HEIGHT + GAP_Y);
      positions[step.node_id] = { x: x + column * (WIDTH + GAP_Y), y };
    });
    x += columns * (WIDTH + GAP_Y) - GAP_Y + GAP_X;
  }
  return positions;
}
