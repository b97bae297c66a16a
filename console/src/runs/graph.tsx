// The steps of a run or workflow as a graph.
import {
  Background,
  Controls,
  type Edge,
  Handle,
  MarkerType,
  MiniMap,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
} from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { memo, useEffect, useMemo, useRef, useState } from "react";
import { Empty, Loading } from "../parts/states";
import { tone, words } from "../parts/status";
import { HEIGHT, type Places, type Step, WIDTH } from "./layout";

export interface Drawn extends Step {
  kind: string;
}

type Box = Node<{ name: string; kind: string; status: string | null }, "step">;

interface Wish {
  steps: readonly Drawn[];
  /** What each step is doing; none for a workflow that does not run. */
  status: ReadonlyMap<string, string> | null;
  chosen: string | null;
  onChoose: ((step: string) => void) | null;
}

/** Steps beyond which a map of all of them helps. */
const MAP_FROM = 30;

const StepBox = memo(function StepBox({ data }: NodeProps<Box>) {
  const what = data.status === null ? data.kind : words(data.status);
  return (
    <div className={`step edge-${data.status === null ? "calm" : tone(data.status)}`}>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <strong className="cut">{data.name}</strong>
      <span className="what cut">
        {what}
        {data.status !== null && data.kind !== "command" && ` · ${data.kind}`}
      </span>
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
});

const KINDS = { step: StepBox };

/** Places of the steps, found by a worker. */
function usePlaces(steps: readonly Drawn[]): Places | null {
  const [places, setPlaces] = useState<Places | null>(null);
  useEffect(() => {
    const worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    worker.onmessage = (event: MessageEvent<{ places: Places }>) => setPlaces(event.data.places);
    const bare = steps.map(({ node_id, wave, depends_on }) => ({ node_id, wave, depends_on }));
    worker.postMessage({ id: 0, steps: bare });
    return () => worker.terminate();
  }, [steps]);
  return places;
}

/** The boxes; one in which nothing changed stays the same object, and is not drawn again. */
function useBoxes(steps: readonly Drawn[], places: Places | null, status: Wish["status"], chosen: string | null): Box[] {
  const before = useRef(new Map<string, Box>());
  return useMemo(() => {
    if (!places) return [];
    const next = new Map<string, Box>();
    const boxes = steps.map((step) => {
      const id = step.node_id;
      const [position, now, selected] = [places[id] ?? { x: 0, y: 0 }, status?.get(id) ?? null, id === chosen];
      const old = before.current.get(id);
      const same = old && old.position === position && old.data.status === now && old.selected === selected;
      const box: Box = same
        ? old
        : {
            id,
            type: "step",
            position,
            selected,
            data: { name: id, kind: step.kind, status: now },
            width: WIDTH,
            height: HEIGHT,
            ariaLabel: `Step ${id}${now ? `, ${words(now)}` : ""}`,
          };
      next.set(id, box);
      return box;
    });
    before.current = next;
    return boxes;
  }, [steps, places, status, chosen]);
}

export function Graph({ steps, status, chosen, onChoose }: Wish) {
  const places = usePlaces(steps);
  const boxes = useBoxes(steps, places, status, chosen);
  const edges = useMemo<Edge[]>(
    () =>
      steps.flatMap((step) =>
        step.depends_on.map((before) => ({
          id: `${before}\n${step.node_id}`,
          source: before,
          target: step.node_id,
          focusable: false,
          markerEnd: { type: MarkerType.ArrowClosed, width: 14, height: 14 },
        })),
      ),
    [steps],
  );
  if (steps.length === 0) return <Empty title="There are no steps" />;
  if (!places) return <Loading what="the graph" />;
  return (
    <div className="graph">
      <ReactFlow<Box>
        nodes={boxes}
        edges={edges}
        nodeTypes={KINDS}
        onNodeClick={(_, node) => onChoose?.(node.id)}
        onNodesChange={(changes) => {
          // Chosen by the keyboard.
          for (const change of changes) if (change.type === "select" && change.selected) onChoose?.(change.id);
        }}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        elementsSelectable={onChoose !== null}
        onlyRenderVisibleElements
        fitView
        fitViewOptions={{ padding: 0.12, minZoom: 0.5, maxZoom: 1.1 }}
        minZoom={0.05}
        proOptions={{ hideAttribution: false }}
      >
        <Background gap={22} />
        <Controls showInteractive={false} />
        {steps.length >= MAP_FROM && <MiniMap pannable zoomable nodeStrokeWidth={3} ariaLabel="All steps, small" />}
      </ReactFlow>
    </div>
  );
}
