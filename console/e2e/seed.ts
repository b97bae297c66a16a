// Data for the governance pages.
import type { Server } from "./server";

/** Pages besides runs, approvals and workflows. */
export const OPERATOR_PAGES = {
  policies: "/governance/policies",
  budgets: "/governance/budgets",
  agents: "/governance/agents",
  gateways: "/governance/gateways",
  audit: "/audit",
  cost: "/cost",
  settings: "/settings",
};

export const PERMIT_ALL = "permit (principal, action, resource);\n";

/** Requires approval for every step of the agent `counsel`. */
export const ASK_COUNSEL =
  '@id("ask-counsel")\n@action("require_approval")\n@category("guardrail")\n@description("Counsel costs more.")\nforbid (principal == Agent::"counsel", action == Action::"dispatch_step", resource);\n';

/** A budget that a few briefs exhaust. */
export const BRIEFS_BUDGET = {
  scope: "workflow",
  of: "daily-brief",
  period: "daily",
  amount_cents: 1.2,
};

/** Fills the governance pages, and returns the id of a pending approval with constraints. */
export async function seedGovernance(server: Server): Promise<string> {
  await server.put("policies/default.cedar", { text: PERMIT_ALL });
  await server.put("policies/counsel.cedar", { text: ASK_COUNSEL });
  await server.put("policies/shadow%2Fstrict.cedar", {
    set: "shadow",
    text: `${PERMIT_ALL}${ASK_COUNSEL.replace("require_approval", "block")}`,
  });
  await server.put("budgets/briefs", BRIEFS_BUDGET);
  await server.put("budgets/counsel", {
    scope: "agent",
    of: "counsel",
    period: "weekly",
    amount_cents: 500,
  });
  await server.put("gateways/away", {
    provider: "http",
    environment: "production",
    url: "https://gateway.example.invalid",
    capabilities: ["text"],
    min_trust_level: 6,
  });
  await server.put("agents/intern", {
    name: "The intern",
    trust_level: 2,
    phase: "poc",
    capabilities: ["text"],
    budget_monthly_cents: 200,
    rate: { limit: 5, window_s: 60 },
  });
  const run = await server.startWorkflow("daily-brief");
  await server.waitForStatus(run, "paused");
  // Later runs of the test are not held.
  await server.put("policies/counsel.cedar", {
    text: ASK_COUNSEL.replace("require_approval", "log"),
  });
  return (await server.approval(run)).approval_id;
}
