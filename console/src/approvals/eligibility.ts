// Whether somebody may answer a question, and why not. The server decides; this says it beforehand.
import type { Schemas } from "../api/client";

type Approval = Schemas["Approval"];

/** Who asks to answer. */
export interface Viewer {
  principal: string;
  roles: readonly string[];
  permissions: readonly string[];
}

/** Why they may not answer; null if they may. */
export function reasonNotToDecide(approval: Approval, viewer: Viewer): string | null {
  if (approval.status !== "pending") return `It is ${approval.status}.`;
  if (!viewer.permissions.includes("governance:approve"))
    return "Your role does not answer approvals.";
  const initiators = [approval.initiator, ...(approval.on_behalf_of ?? [])];
  if (approval.not_initiator && initiators.includes(viewer.principal)) {
    return "You started this run, or made what started it: another person decides.";
  }
  if (approval.votes.includes(viewer.principal))
    return "You have approved; others are still asked.";
  if (approval.approvers.length > 0 && !approval.approvers.some((one) => isNamedBy(one, viewer))) {
    return `Only ${approval.approvers.join(", ")} may decide.`;
  }
  return null;
}

/** Whether an approver's name is theirs, or that of a group of theirs. The server knows which names are groups. */
function isNamedBy(name: string, viewer: Viewer): boolean {
  if (name.startsWith("group:")) return viewer.roles.includes(name.slice("group:".length));
  if (name.startsWith("user:")) return viewer.principal === name.slice("user:".length);
  return name === viewer.principal || viewer.roles.includes(name);
}
