// The plan of a document, as far as the console reads it.
import type { FieldSpecs } from "../parts/form-values";
import type { Drawn } from "../runs/graph";

export interface Plan {
  name: string;
  description?: string;
  args?: FieldSpecs;
  steps: { id: string; depends_on?: string[]; work?: { kind?: string } }[];
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
