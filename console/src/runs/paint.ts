// Paints thousands of steps and their edges on a canvas.
//
// INVARIANT: a paint visits every step and edge once, and draws at most `EDGES_MAX` edges.
import { type GraphLayout, HEIGHT, WIDTH } from "./layout";

/** The viewport: a point of the graph is at `point * zoom + (x, y)` on the canvas. */
export interface Look {
  x: number;
  y: number;
  zoom: number;
  width: number;
  height: number;
}

/** A rectangle of the graph. */
export interface Bounds {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** Tones by number. */
export const TONES = ["calm", "good", "bad", "wait", "busy"] as const;

export interface Scene {
  layout: GraphLayout;
  /** The tone of each step. */
  tones: Uint8Array;
  /** Index of the chosen step, or -1. */
  chosen: number;
  /** Value flows as pairs of step indices. */
  flows: readonly (readonly [number, number])[];
}

/** Colours by purpose. */
export interface Ink {
  line: string;
  accent: string;
  focus: string;
  tones: readonly string[];
}

/** Most edges drawn at once: more cannot be distinguished. */
const EDGES_MAX = 6_000;
/** Zoom below which edges are drawn straight. */
const CURVED_FROM = 0.25;

/** Bounds of the whole graph. */
export function extent({ xs, ys }: GraphLayout): Bounds {
  const bounds = { left: 0, top: 0, right: WIDTH, bottom: HEIGHT };
  for (let at = 0; at < xs.length; at += 1) {
    const [x, y] = [xs[at] ?? 0, ys[at] ?? 0];
    bounds.left = Math.min(bounds.left, x);
    bounds.top = Math.min(bounds.top, y);
    bounds.right = Math.max(bounds.right, x + WIDTH);
    bounds.bottom = Math.max(bounds.bottom, y + HEIGHT);
  }
  return bounds;
}

/** The visible part of the graph, with a margin in pixels. */
export function sight(look: Look, around: number): Bounds {
  return {
    left: (-look.x - around) / look.zoom,
    top: (-look.y - around) / look.zoom,
    right: (look.width - look.x + around) / look.zoom,
    bottom: (look.height - look.y + around) / look.zoom,
  };
}

/** Indices of the first `most` steps within bounds. */
export function within({ xs, ys }: GraphLayout, bounds: Bounds, most: number): number[] {
  const found: number[] = [];
  for (let at = 0; at < xs.length && found.length < most; at += 1) {
    const [x, y] = [xs[at] ?? 0, ys[at] ?? 0];
    if (
      x + WIDTH >= bounds.left &&
      x <= bounds.right &&
      y + HEIGHT >= bounds.top &&
      y <= bounds.bottom
    )
      found.push(at);
  }
  return found;
}

/** Index of the step at a point, or -1. */
export function stepAt({ xs, ys }: GraphLayout, x: number, y: number): number {
  for (let at = 0; at < xs.length; at += 1) {
    const [left, top] = [xs[at] ?? 0, ys[at] ?? 0];
    if (x >= left && x <= left + WIDTH && y >= top && y <= top + HEIGHT) return at;
  }
  return -1;
}

/** The colours of the current theme. */
export function ink(element: Element): Ink {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    line: colour("line-strong"),
    accent: colour("accent"),
    focus: colour("focus"),
    // Pending steps are less prominent than active ones.
    tones: TONES.map((tone) => colour(tone === "calm" ? "line-strong" : tone)),
  };
}

function edge(
  to: CanvasRenderingContext2D,
  layout: GraphLayout,
  source: number,
  target: number,
  curved: boolean,
): void {
  const [x, y] = [(layout.xs[source] ?? 0) + WIDTH, (layout.ys[source] ?? 0) + HEIGHT / 2];
  const [endX, endY] = [layout.xs[target] ?? 0, (layout.ys[target] ?? 0) + HEIGHT / 2];
  to.moveTo(x, y);
  const bend = Math.max(30, (endX - x) / 2);
  if (curved) to.bezierCurveTo(x + bend, y, endX - bend, endY, endX, endY);
  else to.lineTo(endX, endY);
}

function edges(
  to: CanvasRenderingContext2D,
  { layout, flows }: Scene,
  look: Look,
  colours: Ink,
): void {
  const seen = sight(look, 0);
  const { xs, ys, from, to: ends } = layout;
  to.lineWidth = 1 / Math.max(look.zoom, 0.3);
  to.strokeStyle = colours.line;
  to.beginPath();
  let drawn = 0;
  for (let at = 0; at < from.length && drawn < EDGES_MAX; at += 1) {
    const [source, target] = [from[at] ?? 0, ends[at] ?? 0];
    const [x, endX] = [xs[source] ?? 0, xs[target] ?? 0];
    const [y, endY] = [ys[source] ?? 0, ys[target] ?? 0];
    if (endX < seen.left || x + WIDTH > seen.right) continue;
    if (Math.max(y, endY) + HEIGHT < seen.top || Math.min(y, endY) > seen.bottom) continue;
    edge(to, layout, source, target, look.zoom >= CURVED_FROM);
    drawn += 1;
  }
  to.stroke();
  if (flows.length > 0) paintFlows(to, { layout, flows }, look, colours);
}

/** Paints value flows as arrows above the edges. */
function paintFlows(
  to: CanvasRenderingContext2D,
  { layout, flows }: Pick<Scene, "layout" | "flows">,
  look: Look,
  colours: Ink,
): void {
  const { xs, ys } = layout;
  to.lineWidth = 2.5 / Math.max(look.zoom, 0.3);
  to.strokeStyle = colours.accent;
  to.fillStyle = colours.accent;
  to.beginPath();
  for (const [source, target] of flows) edge(to, layout, source, target, true);
  to.stroke();
  for (const [, target] of flows) {
    const [x, y] = [xs[target] ?? 0, (ys[target] ?? 0) + HEIGHT / 2];
    to.beginPath();
    to.moveTo(x, y);
    to.lineTo(x - 12, y - 6);
    to.lineTo(x - 12, y + 6);
    to.fill();
  }
}

/** Paints the visible part of the graph. */
export function paint(
  to: CanvasRenderingContext2D,
  scene: Scene,
  look: Look,
  colours: Ink,
  scale: number,
): void {
  to.setTransform(1, 0, 0, 1, 0, 0);
  to.clearRect(0, 0, look.width * scale, look.height * scale);
  to.setTransform(look.zoom * scale, 0, 0, look.zoom * scale, look.x * scale, look.y * scale);
  edges(to, scene, look, colours);
  const { xs, ys } = scene.layout;
  for (const at of within(scene.layout, sight(look, 0), xs.length)) {
    to.fillStyle = colours.tones[scene.tones[at] ?? 0] ?? colours.line;
    // Smaller than the element that may cover it, because that has round corners.
    to.fillRect((xs[at] ?? 0) + 2, (ys[at] ?? 0) + 2, WIDTH - 4, HEIGHT - 4);
  }
  if (scene.chosen < 0) return;
  to.strokeStyle = colours.focus;
  to.lineWidth = 3 / look.zoom;
  to.strokeRect(xs[scene.chosen] ?? 0, ys[scene.chosen] ?? 0, WIDTH, HEIGHT);
}

/** The viewport that fits the whole graph into a size in pixels. */
export function overview(bounds: Bounds, width: number, height: number): Look {
  const [wide, high] = [bounds.right - bounds.left, bounds.bottom - bounds.top];
  const zoom = Math.min(width / wide, height / high);
  return {
    zoom,
    width,
    height,
    x: (width - wide * zoom) / 2 - bounds.left * zoom,
    y: (height - high * zoom) / 2 - bounds.top * zoom,
  };
}

/** Paints the minimap: every step as a dot, and a frame around the visible part. */
export function paintMap(
  to: CanvasRenderingContext2D,
  scene: Scene,
  map: Look,
  look: Look,
  colours: Ink,
  scale: number,
): void {
  to.setTransform(1, 0, 0, 1, 0, 0);
  to.clearRect(0, 0, map.width * scale, map.height * scale);
  to.setTransform(map.zoom * scale, 0, 0, map.zoom * scale, map.x * scale, map.y * scale);
  const least = 1 / map.zoom;
  const { xs, ys } = scene.layout;
  for (let at = 0; at < xs.length; at += 1) {
    to.fillStyle = colours.tones[scene.tones[at] ?? 0] ?? colours.line;
    to.fillRect(xs[at] ?? 0, ys[at] ?? 0, Math.max(WIDTH, least), Math.max(HEIGHT, least));
  }
  const seen = sight(look, 0);
  to.strokeStyle = colours.focus;
  to.lineWidth = 1.5 / map.zoom;
  to.strokeRect(seen.left, seen.top, seen.right - seen.left, seen.bottom - seen.top);
}
