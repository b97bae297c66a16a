// Screenshots of every page in both themes and two widths, and of those that the documentation shows.
import { copyFileSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "@playwright/test";
import { expect, test, VIEWPORTS } from "../fixtures";
import { openSettled, seedPages } from "../pages";
import { BRIEFS_BUDGET } from "../seed";
import type { Server } from "../server";

const folder = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const SHOTS = folder("../../shots");
const IMAGES = folder("../../../docs/images");

/** Screenshots in the documentation, and their names there. */
const DOCUMENTED: Readonly<Record<string, string>> = {
  "run-step-light-wide": "run",
  "approval-constraints-light-wide": "approval",
  "policies-tested-light-wide": "policies",
  "budgets-light-wide": "budgets",
};
/** These images are in the repository, so they must stay small. */
const BYTES_MAX = 150_000;

/** Past runs, so that costs and back-tests have something to show. */
async function seedHistory(server: Server): Promise<void> {
  await server.put("budgets/briefs", BRIEFS_BUDGET);
  const brief = await server.startWorkflow("daily-brief", { topic: "our roads" });
  await server.waitForStatus(brief, "completed");
  for (const vendor of ["Blue Freight", "Harbour Print"]) {
    const run = await server.startWorkflow("vendor-review", { vendor });
    await server.waitForStatus(run, "paused");
    const { approval_id } = await server.approval(run);
    await server.post(`/api/v1/approvals/${approval_id}/resolve`, { decision: "approve" });
    await server.waitForStatus(run, "completed");
  }
}

async function runBacktest(page: Page): Promise<void> {
  const trial = page.getByRole("region", { name: "Back-test" });
  await trial.getByRole("button", { name: "Load the shadow set" }).click();
  await trial.getByRole("button", { name: "Run the back-test" }).click();
  await expect(trial.getByText(/decisions would differ/)).toBeVisible();
  await trial.getByRole("button", { name: "Run the back-test" }).scrollIntoViewIfNeeded();
  await trial.locator(".found").scrollIntoViewIfNeeded();
}

test("every page", async ({ server, signIn }) => {
  test.setTimeout(600_000);
  mkdirSync(SHOTS, { recursive: true });
  await seedHistory(server);
  const paths = { ...(await seedPages(server)), "policies-tested": "/governance/policies" };
  for (const colorScheme of ["light", "dark"] as const) {
    for (const [width, viewport] of Object.entries(VIEWPORTS)) {
      const page = await signIn({ colorScheme, viewport });
      for (const [name, path] of Object.entries(paths)) {
        await openSettled(page, path);
        if (name === "policies-tested") await runBacktest(page);
        if (name === "approval-constraints") {
          await page.getByText("Tighten the constraints").click();
        }
        await page.screenshot({ path: join(SHOTS, `${name}-${colorScheme}-${width}.png`) });
      }
      await page.context().close();
    }
  }
  for (const [from, to] of Object.entries(DOCUMENTED)) {
    const path = join(SHOTS, `${from}.png`);
    expect(statSync(path).size, from).toBeLessThanOrEqual(BYTES_MAX);
    copyFileSync(path, join(IMAGES, `${to}.png`));
  }
});
