// A graph of thousands of steps: nearby steps are elements, the rest is painted on a canvas.
//
// INVARIANT: at most `NEAR_MAX` steps are elements. Panning and status changes repaint the canvas at
// most once per frame.
import {
  Background,
  Controls,
  Panel,
  ReactFlow,
  type ReactFlowInstance,
  type Viewport,
} from "@xyflow/react";
import {
  type MouseEvent,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { tone } from "../parts/status";
import { type GraphLayout, HEIGHT, WIDTH } from "./layout";
import {
  type Bounds,
  extent,
  ink,
  type Look,
  overview,
  paint,
  paintMap,
  type Scene,
  sight,
  stepAt,
  TONES,
  within,
} from "./paint";
import { type Box, type GraphProps, type GraphStep, makeBox, NODE_TYPES } from "./step-box";
import type { LaidOut } from "./use-layout";

/** Most steps rendered as elements. */
const NEAR_MAX = 200;
/** Most new elements per frame: more would make the page stutter. */
const NEW_MAX = 24;
/** Zoom below which a step cannot be read. */
const LEGIBLE = 0.5;
/** The nearby area moves in strides of this many pixels. */
const STRIDE = 240;
const MAP = { width: 200, height: 130 };
const NO_EDGES: never[] = [];
/** Buttons that jump to the first step of a tone. */
const JUMPS = [
  ["bad", "Go to failed steps"],
  ["busy", "Go to running steps"],
] as const;

interface Props extends GraphProps {
  placed: LaidOut<GraphStep>;
}

interface Size {
  width: number;
  height: number;
}

function useSize() {
  const element = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState<Size | null>(null);
  useLayoutEffect(() => {
    const box = element.current;
    if (!box) return;
    const look = () => setSize({ width: box.clientWidth, height: box.clientHeight });
    look();
    const resized = new ResizeObserver(look);
    resized.observe(box);
    return () => resized.disconnect();
  }, []);
  return [element, size] as const;
}

/** The contents of the canvas. */
function useScene({ placed, status, chosen, flows }: Props): Scene {
  const { steps, layout } = placed;
  const numbers = useMemo(() => new Map(steps.map((step, at) => [step.node_id, at])), [steps]);
  const tones = useMemo(() => {
    const all = new Uint8Array(steps.length);
    if (status) {
      for (const [at, step] of steps.entries()) {
        all[at] = TONES.indexOf(tone(status.get(step.node_id) ?? ""));
      }
    }
    return all;
  }, [steps, status]);
  return useMemo(() => {
    const pairs = flows.map(
      (flow) => [numbers.get(flow.from) ?? -1, numbers.get(flow.to) ?? -1] as const,
    );
    const known = pairs.filter(([from, to]) => from >= 0 && to >= 0);
    return {
      layout,
      tones,
      chosen: chosen === null ? -1 : (numbers.get(chosen) ?? -1),
      flows: known,
    };
  }, [layout, tones, chosen, flows, numbers]);
}

/** Paints the graph and the minimap after a change, at most once per frame. */
function usePaint(scene: Scene, map: Look, look: { current: Look | null }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const small = useRef<HTMLCanvasElement>(null);
  const newest = useRef({ scene, map });
  newest.current = { scene, map };
  const frame = useRef(0);
  const soon = useCallback(() => {
    if (frame.current !== 0) return;
    frame.current = requestAnimationFrame(() => {
      frame.current = 0;
      const [big, little] = [canvas.current?.getContext("2d"), small.current?.getContext("2d")];
      if (!big || !little || !look.current) return;
      const colours = ink(big.canvas);
      paint(big, newest.current.scene, look.current, colours, devicePixelRatio);
      paintMap(
        little,
        newest.current.scene,
        newest.current.map,
        look.current,
        colours,
        devicePixelRatio,
      );
    });
  }, [look]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new scene or map needs a new paint
  useEffect(soon, [soon, scene, map]);
  useEffect(() => {
    // Repaint with the colours of a new theme.
    const themed = new MutationObserver(soon);
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => {
      themed.disconnect();
      cancelAnimationFrame(frame.current);
      frame.current = 0;
    };
  }, [soon]);
  return { canvas, small, soon };
}

/** The area whose steps are elements, rounded to strides so that small movements do not change it. */
function nearby(look: Look): Bounds | null {
  if (look.zoom < LEGIBLE) return null;
  const { left, top, right, bottom } = sight(look, STRIDE / 2);
  const stride = STRIDE / look.zoom;
  const [down, up] = [
    (at: number) => Math.floor(at / stride) * stride,
    (at: number) => Math.ceil(at / stride) * stride,
  ];
  return { left: down(left), top: down(top), right: up(right), bottom: up(bottom) };
}

const same = (one: Bounds | null, other: Bounds | null) =>
  one === other ||
  (one !== null &&
    other !== null &&
    one.left === other.left &&
    one.top === other.top &&
    one.right === other.right &&
    one.bottom === other.bottom);

/** Indices of the steps that are elements. New ones are added a few per frame. */
function useNear({ layout }: LaidOut<GraphStep>, near: Bounds | null): readonly number[] {
  const wanted = useMemo(() => (near ? within(layout, near, NEAR_MAX) : []), [layout, near]);
  const [rendered, setRendered] = useState<{ layout: GraphLayout; numbers: readonly number[] }>({
    layout,
    numbers: [],
  });
  useEffect(() => {
    const now = new Set(rendered.layout === layout ? rendered.numbers : []);
    let room = NEW_MAX;
    const next = wanted.filter((at) => now.has(at) || room-- > 0);
    if (next.length === now.size && next.every((at) => now.has(at))) return;
    const frame = requestAnimationFrame(() => setRendered({ layout, numbers: next }));
    return () => cancelAnimationFrame(frame);
  }, [wanted, rendered, layout]);
  return rendered.layout === layout ? rendered.numbers : [];
}

function useBoxes({ placed, status, chosen }: Props, near: Bounds | null): Box[] {
  const { steps, layout } = placed;
  const before = useRef(new Map<string, Box>());
  const numbers = useNear(placed, near);
  return useMemo(() => {
    const boxes = numbers.flatMap((at) => {
      const step = steps[at];
      if (!step) return [];
      const [x, y] = [layout.xs[at] ?? 0, layout.ys[at] ?? 0];
      const now = status?.get(step.node_id) ?? null;
      return [
        makeBox(before.current.get(step.node_id), {
          step,
          x,
          y,
          status: now,
          selected: step.node_id === chosen,
        }),
      ];
    });
    before.current = new Map(boxes.map((one) => [one.id, one]));
    return boxes;
  }, [numbers, steps, layout, status, chosen]);
}

/** A readable view of a step that avoids empty space at the edges of the graph. */
function lookAt(
  { layout }: LaidOut<GraphStep>,
  all: Bounds,
  at: number,
  { width, height }: Size,
): Viewport {
  const [zoom, rim] = [0.8, 24];
  const [x, y] = [(layout.xs[at] ?? 0) + WIDTH / 2, (layout.ys[at] ?? 0) + HEIGHT / 2];
  return {
    zoom,
    x: Math.min(rim - all.left * zoom, width * 0.4 - x * zoom),
    y: Math.min(rim - all.top * zoom, height / 2 - y * zoom),
  };
}

/** Index of the first step of a tone, or -1. */
const firstOf = (scene: Scene, wanted: (typeof TONES)[number]): number =>
  scene.tones.indexOf(TONES.indexOf(wanted));

export function LargeGraph(props: Props) {
  const [element, size] = useSize();
  return (
    <div className="graph" ref={element}>
      {size && size.width > 0 && <Pane {...props} size={size} />}
    </div>
  );
}

function Pane(props: Props & { size: Size }) {
  const { placed, chosen, onChoose, size } = props;
  const scene = useScene(props);
  const all = useMemo(() => extent(placed.layout), [placed.layout]);
  const map = useMemo(() => overview(all, MAP.width, MAP.height), [all]);
  const whole = useMemo(() => overview(all, size.width, size.height), [all, size]);
  const flow = useRef<ReactFlowInstance<Box> | null>(null);
  const number = chosen === null ? -1 : placed.steps.findIndex((step) => step.node_id === chosen);
  const first = useRef<Viewport | null>(null);
  first.current ??= lookAt(
    placed,
    all,
    Math.max(0, number >= 0 ? number : firstOf(scene, "busy")),
    size,
  );
  const look = useRef<Look | null>(null);
  look.current = { ...(look.current ?? first.current), ...size };
  const [near, setNear] = useState<Bounds | null>(() =>
    look.current ? nearby(look.current) : null,
  );
  const { canvas, small, soon } = usePaint(scene, map, look);
  const boxes = useBoxes(props, near);
  const moved = useCallback(
    (view: Viewport) => {
      look.current = { ...view, ...size };
      const next = nearby(look.current);
      setNear((before) => (same(before, next) ? before : next));
      soon();
    },
    [size, soon],
  );
  useEffect(() => {
    if (look.current) moved(look.current);
  }, [moved]);
  const choose = (event: MouseEvent) => {
    const point = flow.current?.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    const step = point && placed.steps[stepAt(placed.layout, point.x, point.y)];
    if (step) onChoose?.(step.node_id);
  };
  const jump = (event: MouseEvent<HTMLCanvasElement>) => {
    const { left, top } = event.currentTarget.getBoundingClientRect();
    const [x, y] = [
      (event.clientX - left - map.x) / map.zoom,
      (event.clientY - top - map.y) / map.zoom,
    ];
    void flow.current?.setCenter(x, y, { zoom: Math.max(LEGIBLE, look.current?.zoom ?? 1) });
  };
  const jumps = JUMPS.flatMap(([wanted, label]) => {
    const at = firstOf(scene, wanted);
    return at < 0
      ? []
      : [{ label, go: () => void flow.current?.setViewport(lookAt(placed, all, at, size)) }];
  });
  const pixels = (one: Size) => ({
    width: one.width * devicePixelRatio,
    height: one.height * devicePixelRatio,
  });
  return (
    <>
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: this canvas takes no focus */}
      <canvas ref={canvas} className="beneath" aria-hidden="true" {...pixels(size)} />
      <ReactFlow<Box>
        nodes={boxes}
        edges={NO_EDGES}
        nodeTypes={NODE_TYPES}
        defaultViewport={first.current}
        onInit={(instance) => {
          flow.current = instance;
        }}
        onMove={(_, view) => moved(view)}
        onNodeClick={(_, node) => onChoose?.(node.id)}
        onPaneClick={choose}
        onNodesChange={(changes) => {
          // Selection by keyboard.
          for (const change of changes)
            if (change.type === "select" && change.selected) onChoose?.(change.id);
        }}
        nodesDraggable={false}
        nodesConnectable={false}
        elementsSelectable={onChoose !== null}
        minZoom={Math.min(0.05, whole.zoom)}
      >
        <Background gap={22} />
        <Controls showInteractive={false} onFitView={() => void flow.current?.setViewport(whole)} />
        <Panel position="top-right" className="bar">
          {jumps.map(({ label, go }) => (
            <button key={label} type="button" className="small" onClick={go}>
              {label}
            </button>
          ))}
        </Panel>
        <Panel position="bottom-right" className="map">
          <canvas
            ref={small}
            role="img"
            aria-label="Map of all steps"
            onClick={jump}
            {...pixels(MAP)}
          />
        </Panel>
      </ReactFlow>
    </>
  );
}
