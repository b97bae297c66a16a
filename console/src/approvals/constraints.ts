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

/** Splits a list that is separated by commas. */
const splitList = (text: string): string[] =>
  text
    .split(",")
    .map((one) => one.trim())
    .filter(Boolean);

/** Why a typed number is not a valid limit; null if it is. */
function limitError(
  value: number,
  isValid: boolean,
  limit: number | undefined,
  hint: string,
): string | null {
  if (!isValid) return hint;
  const isWider = limit !== undefined && value > limit;
  return isWider ? "The limit of the action is lower: enter at most that." : null;
}

interface Tightened {
  constraints: Constraints;
  /** Error messages by field. */
  wrong: Record<string, string>;
}

/** The numeric limits of a draft. */
function tightenedLimits(bounds: Constraints, draft: ConstraintDraft): Tightened {
  const constraints: Constraints = {};
  const wrong: Record<string, string> = {};
  if (draft.cost.trim() !== "") {
    const cost = Math.floor(Number(draft.cost) * MICRO_CENTS);
    const isValid = Number.isFinite(cost) && cost >= 0;
    const hint = "Enter an amount in dollars, such as 0.05.";
    const error = limitError(cost, isValid, bounds.max_cost, hint);
    if (error === null) constraints.max_cost = cost;
    else wrong.cost = error;
  }
  if (draft.tokens.trim() !== "") {
    const tokens = Number(draft.tokens);
    const isValid = Number.isSafeInteger(tokens) && tokens >= 1;
    const error = limitError(tokens, isValid, bounds.max_output_tokens, "Enter a whole number.");
    if (error === null) constraints.max_output_tokens = tokens;
    else wrong.tokens = error;
  }
  return { constraints, wrong };
}

/** The constraints to send, and error messages. Unchanged constraints are not sent. */
export function tightened(
  bounds: Constraints,
  tools: readonly string[],
  draft: ConstraintDraft,
): Tightened {
  const { constraints, wrong } = tightenedLimits(bounds, draft);
  const isKept = (one: string) => !draft.without.includes(one);
  if (!tools.every(isKept)) constraints.tools_allow = tools.filter(isKept);
  const environments = bounds.environments ?? [];
  const left = environments.filter(isKept);
  if (environments.length > 0 && left.length === 0)
    wrong.environments = "Keep at least one environment, or reject the request.";
  else if (left.length < environments.length) constraints.environments = left;
  const deny = splitList(draft.deny);
  if (deny.length > 0) constraints.tools_deny = deny;
  if (draft.readOnly) constraints.data_access = "read_only";
  return { constraints, wrong };
}
