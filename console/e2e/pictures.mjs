// Pictures of every page, light and dark, wide and narrow, of a server with the demo.
//
//   node e2e/pictures.mjs BINARY CHROMIUM FOLDER [FOLDER FOR THOSE THAT DOCUMENTS SHOW]
import { copyFileSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { places, settled, VIEWPORTS } from "./looks.mjs";
import { BRIEFS } from "./rooms.mjs";
import { must, World } from "./world.mjs";

/** Those that documents show, and as what. */
const SHOWN = {
  "run-step-light-wide": "run",
  "approval-bounds-light-wide": "approval",
  "policies-tried-light-wide": "policies",
  "budgets-light-wide": "budgets",
};
/** Pictures are kept in the repository, so they stay small. */
const BYTES_MAX = 150_000;

const [binary, chromium, folder, shown] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const world = await World.open(binary, chromium);
try {
  await world.put("budgets/briefs", BRIEFS);
  const { run_id: brief } = await world.api("/api/v1/workflows/daily-brief/runs", {
    args: { topic: "our roads" },
  });
  await world.status(brief, "completed");
  for (const vendor of ["Blue Freight", "Harbour Print"]) {
    const { run_id: run } = await world.api("/api/v1/workflows/vendor-review/runs", {
      args: { vendor },
    });
    await world.status(run, "paused");
    const [asked] = (await world.api(`/api/v1/runs/${run}`)).approvals;
    await world.api(`/api/v1/approvals/${asked.approval_id}/resolve`, { decision: "approve" });
    await world.status(run, "completed");
  }
  const all = { ...(await places(world)), "policies-tried": "/governance/policies" };
  for (const colorScheme of ["light", "dark"]) {
    for (const [width, viewport] of Object.entries(VIEWPORTS)) {
      const page = await world.page({ colorScheme, viewport });
      for (const [name, path] of Object.entries(all)) {
        await settled(page, world.origin + path);
        if (name === "policies-tried") await tried(page);
        if (name === "approval-bounds") await page.getByText("Tighten the constraints").click();
        await page.screenshot({ path: join(folder, `${name}-${colorScheme}-${width}.png`) });
      }
      await page.context().close();
    }
  }
} finally {
  await world.close();
}
for (const [from, to] of Object.entries(shown ? SHOWN : {})) {
  const path = join(folder, `${from}.png`);
  must(statSync(path).size <= BYTES_MAX, `${from} has ${statSync(path).size} bytes`);
  mkdirSync(shown, { recursive: true });
  copyFileSync(path, join(shown, `${to}.png`));
}

/** A back-test with something to tell. */
async function tried(page) {
  const trial = page.getByRole("region", { name: "Back-test" });
  await trial.getByRole("button", { name: "Load the shadow set" }).click();
  await trial.getByRole("button", { name: "Run the back-test" }).click();
  await trial.getByText(/decisions would differ/).waitFor();
  await trial.getByRole("button", { name: "Run the back-test" }).scrollIntoViewIfNeeded();
  await trial.locator(".found").scrollIntoViewIfNeeded();
}
