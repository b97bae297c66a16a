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
  if (!who.permissions.includes("governance:approve"))
    return "Your role does not answer approvals.";
  const initiators = [asked.initiator, ...(asked.on_behalf_of ?? [])];
  if (asked.not_initiator && initiators.includes(who.principal)) {
    return "You started this run, or made what started it: another person decides.";
  }
  if (asked.votes.includes(who.principal)) return "You have approved; others are still asked.";
  if (asked.approvers.length > 0 && !asked.approvers.some((one) => isNamed(one, who))) {
    return `Only ${asked.approvers.join(", ")} may decide.`;
  }
  return null;
}

/** Whether an approver's name is theirs, or that of a group of theirs. The server knows which names are groups. */
function isNamed(name: string, who: Somebody): boolean {
  if (name.startsWith("group:")) return who.roles.includes(name.slice("group:".length));
  if (name.startsWith("user:")) return who.principal === name.slice("user:".length);
  return name === who.principal || who.roles.includes(name);
}
