// The box of one step in a graph.
import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";
import { tone, words } from "../parts/status";
import { HEIGHT, type Step, WIDTH } from "./layout";

export interface GraphStep extends Step {
  kind: string;
}

/** A value that one step passed to another. */
export interface FlowEdge {
  from: string;
  to: string;
  label: string;
}

export interface GraphProps {
  steps: readonly GraphStep[];
  /** Status of each step; null for a workflow without a run. */
  status: ReadonlyMap<string, string> | null;
  /** Value flows of the chosen step. */
  flows: readonly FlowEdge[];
  chosen: string | null;
  onChoose: ((step: string) => void) | null;
}

export type Box = Node<{ name: string; kind: string; status: string | null }, "step">;

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

export const NODE_TYPES = { step: StepBox };

export interface BoxOptions {
  step: GraphStep;
  x: number;
  y: number;
  status: string | null;
  selected: boolean;
}

/** Returns the old box if nothing changed, so that React does not render it again. */
export function makeBox(old: Box | undefined, { step, x, y, status, selected }: BoxOptions): Box {
  const id = step.node_id;
  const at = old?.position;
  if (old && at?.x === x && at.y === y && old.data.status === status && old.selected === selected)
    return old;
  return {
    id,
    type: "step",
    position: { x, y },
    selected,
    data: { name: id, kind: step.kind, status },
    width: WIDTH,
    height: HEIGHT,
    ariaLabel: `Step ${id}${status ? `, ${words(status)}` : ""}`,
  };
}
