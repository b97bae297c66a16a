// Every page of the console with data in it, for accessibility checks and screenshots.
import type { Page } from "@playwright/test";
import { expect } from "./fixtures";
import { OPERATOR_PAGES, seedGovernance } from "./seed";
import type { Server } from "./server";

/** A run with more steps than the graph renders as elements. */
async function largeRun(server: Server): Promise<string> {
  const steps = Array.from(
    { length: 400 },
    (_, n) => `  - {id: s${n}, command: Go., depends_on: [${n < 20 ? "" : `s${n - 20}`}]}`,
  );
  const run = await server.startDocument(`name: large\nsteps:\n${steps.join("\n")}\n`);
  await server.waitForStatus(run, "completed");
  return run;
}

/** Starts runs for the pages, and returns the path of each page by name. */
export async function seedPages(server: Server): Promise<Record<string, string>> {
  const review = await server.startWorkflow("vendor-review", { vendor: "Northwind Paper" });
  const brief = await server.startWorkflow("daily-brief");
  const failed = await server.startDocument(
    "name: nightly-copy\nsteps:\n  - {id: first, command: Go.}\n  - {id: breaks, depends_on: [first], command: Go.}\n",
  );
  await server.waitForStatus(failed, "failed");
  await server.waitForStatus(review, "paused");
  await server.waitForStatus(brief, "completed");
  const approval = await server.approval(review);
  const constrained = await seedGovernance(server);
  return {
    runs: "/runs",
    "run-graph": `/runs/${review}`,
    "run-step": `/runs/${review}?step=classify`,
    "run-timeline": `/runs/${brief}?view=timeline&step=write`,
    "run-events": `/runs/${review}?view=events`,
    "run-result": `/runs/${brief}?view=result`,
    "run-failed": `/runs/${failed}?step=breaks`,
    approvals: "/approvals",
    approval: `/approvals/${approval.approval_id}`,
    workflows: "/workflows",
    workflow: "/workflows/vendor-review",
    "not-found": "/runs/run_none",
    edit: "/workflows/vendor-review?edit=yes",
    write: "/workflows?new=yes",
    "run-values": `/runs/${brief}?step=write`,
    "run-large": `/runs/${await largeRun(server)}`,
    ...OPERATOR_PAGES,
    "approval-constraints": `/approvals/${constrained}`,
  };
}

/** Opens a page and waits until its content is loaded. */
export async function openSettled(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await expect(page.locator("main h1, main [role=alert]").first()).toBeVisible();
  await expect(page.locator("main [role=status]", { hasText: "Loading" })).toHaveCount(0);
  await page.waitForTimeout(450);
}
