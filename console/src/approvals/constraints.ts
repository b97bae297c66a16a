// Constraints that an approver may tighten. They never become wider than the action's own.
import type { Schemas } from "../api/client";

/** Constraints as the API writes them. */
export interface Constraints {
  environments?: string[];
  tools_allow?: string[];
  tools_deny?: string[];
  data_access?: string;
  /** In micro-cents. */
  max_cost?: number;
  max_output_tokens?: number;
}

/** The form's contents. */
export interface ConstraintDraft {
  cost: string;
  tokens: string;
  /** Tools and environments that the approver removed. */
  without: readonly string[];
  /** More tools to deny, separated by commas. */
  deny: string;
  readOnly: boolean;
}

export const UNCHANGED: ConstraintDraft = {
  cost: "",
  tokens: "",
  without: [],
  deny: "",
  readOnly: false,
};

/** Micro-cents in a dollar. */
export const MICRO_CENTS = 100_000_000;

/** Constraints of an action; null if it has none that can be tightened. */
export function constraintsOf(
  approval: Pick<Schemas["Approval"], "source" | "action">,
): Constraints | null {
  if (approval.source === "tool" || approval.source === "escalation") return null;
  const action = approval.action as { constraints?: Constraints } | null | undefined;
  return action?.constraints ?? null;
}

/** Cost ceiling of an action in micro-cents; null if it costs nothing. */
export function costCeilingOf(approval: Pick<Schemas["Approval"], "action">): number | null {
  const action = approval.action as { cost_ceiling?: unknown } | null | undefined;
  return typeof action?.cost_ceiling === "number" ? action.cost_ceiling : null;
}

/** Tools of an action; empty if it does not list them. */
export function toolsOf(approval: Pick<Schemas["Approval"], "action">): string[] {
  const action = approval.action as
    | { constraints?: Constraints; tools?: unknown }
    | null
    | undefined;
  const own = action?.constraints?.tools_allow;
  if (own) return own;
  return Array.isArray(action?.tools)
    ? action.tools.filter((one): one is string => typeof one === "string")
    : [];
}

/** The constraints to send, and error messages by field. Unchanged constraints are not sent. */
export function tightened(
  bounds: Constraints,
  tools: readonly string[],
  draft: ConstraintDraft,
): { constraints: Constraints; wrong: Record<string, string> } {
  const constraints: Constraints = {};
  const wrong: Record<string, string> = {};
  if (draft.cost.trim() !== "") {
    const cost = Math.floor(Number(draft.cost) * MICRO_CENTS);
    if (!Number.isFinite(cost) || cost < 0)
      wrong.cost = "Enter an amount in dollars, such as 0.05.";
    else if (bounds.max_cost !== undefined && cost > bounds.max_cost)
      wrong.cost = "The limit of the action is lower: enter at most that.";
    else constraints.max_cost = cost;
  }
  if (draft.tokens.trim() !== "") {
    const tokens = Number(draft.tokens);
    if (!Number.isSafeInteger(tokens) || tokens < 1) wrong.tokens = "Enter a whole number.";
    else if (bounds.max_output_tokens !== undefined && tokens > bounds.max_output_tokens)
      wrong.tokens = "The limit of the action is lower: enter at most that.";
    else constraints.max_output_tokens = tokens;
  }
  if (tools.some((one) => draft.without.includes(one)))
    constraints.tools_allow = tools.filter((one) => !draft.without.includes(one));
  const environments = bounds.environments ?? [];
  if (environments.some((one) => draft.without.includes(one))) {
    const left = environments.filter((one) => !draft.without.includes(one));
    if (left.length === 0)
      wrong.environments = "Keep at least one environment, or reject the request.";
    else constraints.environments = left;
  }
  const deny = draft.deny
    .split(",")
    .map((one) => one.trim())
    .filter(Boolean);
  if (deny.length > 0) constraints.tools_deny = deny;
  if (draft.readOnly) constraints.data_access = "read_only";
  return { constraints, wrong };
}
