// Whether somebody may answer a question, and why not. The server decides; this says it beforehand.
import type { Schemas } from "../api/client";

type Approval = Schemas["Approval"];

/** Who asks to answer. */
export interface Somebody {
  principal: string;
  roles: readonly string[];
  permissions: readonly string[];
}

/** Why they may not answer; null if they may. */
export function whyNot(asked: Approval, who: Somebody): string | null {
  if (asked.status !== "pending") return `It is ${asked.status}.`;
  if (!who.permissions.includes("governance:approve")) return "Your role does not answer approvals.";
  if (asked.not_initiator && asked.initiator === who.principal) {
    return "You started this run, and somebody else is to decide.";
  }
  if (asked.votes.includes(who.principal)) return "You have approved; others are still asked.";
  const named = [who.principal, ...who.roles];
  if (asked.approvers.length > 0 && !asked.approvers.some((one) => named.includes(one))) {
    return `Only ${asked.approvers.join(", ")} may decide.`;
  }
  return null;
}
