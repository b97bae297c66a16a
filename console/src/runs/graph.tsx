// The steps of a run or workflow as a graph. `large-graph.tsx` draws more than `DAGRE_MAX` steps.
import {
  Background,
  Controls,
  type Edge,
  MarkerType,
  MiniMap,
  ReactFlow,
  useReactFlow,
} from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { useEffect, useMemo, useRef } from "react";
import { Empty, Loading } from "../parts/feedback";
import { LargeGraph } from "./large-graph";
import { DAGRE_MAX } from "./layout";
import {
  type Box,
  type FlowEdge,
  type GraphProps,
  type GraphStep,
  makeBox,
  NODE_TYPES,
} from "./step-box";
import { type LaidOut, useLayout } from "./use-layout";

export type { FlowEdge as Flow, GraphStep as Drawn } from "./step-box";

/** Number of steps from which a minimap is shown. */
const MAP_FROM = 30;

export function Graph(props: GraphProps) {
  const placed = useLayout(props.steps);
  if (props.steps.length === 0) return <Empty title="No steps" />;
  if (!placed) return <Loading what="the graph" />;
  return placed.steps.length > DAGRE_MAX ? (
    <LargeGraph {...props} placed={placed} />
  ) : (
    <SmallGraph {...props} placed={placed} />
  );
}

function useBoxes(
  { steps, layout }: LaidOut<GraphStep>,
  status: GraphProps["status"],
  chosen: string | null,
): Box[] {
  const before = useRef(new Map<string, Box>());
  return useMemo(() => {
    const boxes = steps.map((step, at) =>
      makeBox(before.current.get(step.node_id), {
        step,
        x: layout.xs[at] ?? 0,
        y: layout.ys[at] ?? 0,
        status: status?.get(step.node_id) ?? null,
        selected: step.node_id === chosen,
      }),
    );
    before.current = new Map(boxes.map((one) => [one.id, one]));
    return boxes;
  }, [steps, layout, status, chosen]);
}

/** Dependency edges, replaced by value flows where there are any. */
function useEdges({ steps }: LaidOut<GraphStep>, flows: readonly FlowEdge[]): Edge[] {
  const plain = useMemo<Edge[]>(
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
  return useMemo(() => {
    const pairs = new Map<string, FlowEdge & { labels: Set<string> }>();
    for (const flow of flows) {
      const id = `${flow.from}\n${flow.to}`;
      const existing = pairs.get(id);
      if (existing) existing.labels.add(flow.label);
      else pairs.set(id, { ...flow, labels: new Set([flow.label]) });
    }
    const values = [...pairs].map(([id, { from, to, labels }]) => ({
      id: `value\n${id}`,
      source: from,
      target: to,
      focusable: false,
      className: "value-edge",
      zIndex: 1,
      label: labels.size > 1 ? `${labels.size} values` : [...labels][0],
      markerEnd: { type: MarkerType.ArrowClosed, width: 16, height: 16, color: "var(--accent)" },
    }));
    return values.length > 0 ? [...plain.filter((edge) => !pairs.has(edge.id)), ...values] : plain;
  }, [plain, flows]);
}

const FIT = { padding: 0.12, minZoom: 0.5, maxZoom: 1.1 };
/** A preview shows the whole graph, even when labels become too small to read. */
const FIT_ALL = { ...FIT, minZoom: 0.3 };

/** Fits the view again when the graph changes. */
function Refit({ to }: { to: LaidOut<GraphStep> }) {
  const { fitView } = useReactFlow();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new layout is fitted again
  useEffect(() => {
    void fitView(FIT_ALL);
  }, [fitView, to]);
  return null;
}

function SmallGraph({
  placed,
  status,
  flows,
  chosen,
  onChoose,
}: GraphProps & { placed: LaidOut<GraphStep> }) {
  const boxes = useBoxes(placed, status, chosen);
  const edges = useEdges(placed, flows);
  return (
    <div className="graph">
      <ReactFlow<Box>
        nodes={boxes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        onNodeClick={(_, node) => onChoose?.(node.id)}
        onNodesChange={(changes) => {
          // Selection by keyboard.
          for (const change of changes)
            if (change.type === "select" && change.selected) onChoose?.(change.id);
        }}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        elementsSelectable={onChoose !== null}
        onlyRenderVisibleElements
        fitView
        fitViewOptions={onChoose ? FIT : FIT_ALL}
        minZoom={0.05}
        proOptions={{ hideAttribution: false }}
      >
        {!onChoose && <Refit to={placed} />}
        <Background gap={22} />
        <Controls showInteractive={false} />
        {boxes.length >= MAP_FROM && (
          <MiniMap pannable zoomable nodeStrokeWidth={3} ariaLabel="Map of all steps" />
        )}
      </ReactFlow>
    </div>
  );
}
