// The plan of a document, as far as the console reads it.
import type { FieldSpecs } from "../parts/form-values";
import type { Drawn, Flow } from "../runs/graph";

export interface Plan {
  name: string;
  description?: string;
  args?: FieldSpecs;
  steps: { id: string; depends_on?: string[]; work?: { kind?: string } }[];
}

/** Labels of data: where it came from, which secrets it contains. */
export interface Labels {
  origins?: string[];
  secrecy?: string[];
  control?: boolean;
}

/** The labels that data can have in the worst case. */
export interface FlowPicture {
  arguments: { name: string; labels: Labels }[];
  steps: {
    id: string;
    reads: Labels;
    returns: Labels;
    sources?: { name: string; labels: Labels }[];
    sinks?: { kind: string; name: string; sends_to: string; labels: Labels }[];
  }[];
  links: { from: string; to: string; labels: Labels }[];
}

/** `web, caller + customer (control)`; empty without labels. */
export function labelText({ origins = [], secrecy = [], control }: Labels): string {
  const names = [origins.join(", "), secrecy.join(", ")].filter((part) => part !== "").join(" + ");
  return control ? `${names} (control)`.trim() : names;
}

/** The links between steps whose data can have labels. */
export function labelledEdges(flow: FlowPicture | null): Flow[] {
  return (flow?.links ?? [])
    .map(({ from, to, labels }) => ({ from, to, label: labelText(labels) }))
    .filter((edge) => edge.label !== "");
}

export function graphSteps(
  plan: Plan | null | undefined,
  waves: readonly (readonly string[])[],
): Drawn[] {
  const wave = new Map(waves.flatMap((ids, at) => ids.map((id) => [id, at] as const)));
  return (plan?.steps ?? []).map((step) => ({
    node_id: step.id,
    kind: step.work?.kind ?? "step",
    wave: wave.get(step.id) ?? 0,
    depends_on: step.depends_on ?? [],
  }));
}
