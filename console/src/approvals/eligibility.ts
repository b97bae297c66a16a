// Whether the user may decide an approval request, and why not. The server enforces it; the page
// only explains it in advance.
import type { Schemas } from "../api/client";

type Approval = Schemas["Approval"];

export interface Viewer {
  principal: string;
  roles: readonly string[];
  permissions: readonly string[];
}

/** Why the viewer may not decide; null if they may. */
export function reasonNotToDecide(approval: Approval, viewer: Viewer): string | null {
  if (approval.status !== "pending") return `This request is ${approval.status}.`;
  if (!viewer.permissions.includes("governance:approve"))
    return "Your role cannot decide approvals.";
  const initiators = [approval.initiator, ...(approval.on_behalf_of ?? [])];
  if (approval.not_initiator && initiators.includes(viewer.principal)) {
    return "You started this run, or created what started it: another person must decide.";
  }
  if (approval.votes.includes(viewer.principal))
    return "You have approved; more approvals are needed.";
  if (approval.approvers.length > 0 && !approval.approvers.some((one) => isNamedBy(one, viewer))) {
    return `Only ${approval.approvers.join(", ")} may decide.`;
  }
  return null;
}

/** Whether an approver entry names the viewer or one of their groups. Only the server knows which names are groups. */
function isNamedBy(name: string, viewer: Viewer): boolean {
  if (name.startsWith("group:")) return viewer.roles.includes(name.slice("group:".length));
  if (name.startsWith("user:")) return viewer.principal === name.slice("user:".length);
  return name === viewer.principal || viewer.roles.includes(name);
}
