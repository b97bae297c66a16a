// Every page, light and dark, wide and narrow: without serious findings of axe, and as pictures.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { furnish, ROOMS } from "./rooms.mjs";
import { must } from "./world.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const VIEWPORTS = {
  wide: { width: 1360, height: 860 },
  narrow: { width: 390, height: 844 },
};

/** Pages of every sort, and something to see in each. */
export async function places(world) {
  const start = async (name, args) =>
    (await world.api(`/api/v1/workflows/${name}/runs`, { args })).run_id;
  const review = await start("vendor-review", { vendor: "Northwind Paper" });
  const brief = await start("daily-brief", {});
  const failed = await world.start(
    "name: nightly-copy\nsteps:\n  - {id: first, command: Go.}\n  - {id: breaks, depends_on: [first], command: Go.}\n",
  );
  await world.status(failed, "failed");
  await world.status(review, "paused");
  await world.status(brief, "completed");
  const [asked] = (await world.api(`/api/v1/runs/${review}`)).approvals;
  const held = await furnish(world);
  return {
    runs: "/runs",
    "run-graph": `/runs/${review}`,
    "run-step": `/runs/${review}?step=classify`,
    "run-timeline": `/runs/${brief}?view=timeline&step=write`,
    "run-events": `/runs/${review}?view=events`,
    "run-result": `/runs/${brief}?view=result`,
    "run-failed": `/runs/${failed}?step=breaks`,
    approvals: "/approvals",
    approval: `/approvals/${asked.approval_id}`,
    workflows: "/workflows",
    launch: "/workflows/vendor-review",
    nowhere: "/runs/run_none",
    edit: "/workflows/vendor-review?edit=yes",
    write: "/workflows?new=yes",
    "run-values": `/runs/${brief}?step=write`,
    "run-large": `/runs/${await large(world)}`,
    ...ROOMS,
    "approval-bounds": `/approvals/${held}`,
  };
}

/** A run of more steps than are drawn one by one. */
async function large(world) {
  const steps = Array.from(
    { length: 400 },
    (_, n) => `  - {id: s${n}, command: Go., depends_on: [${n < 20 ? "" : `s${n - 20}`}]}`,
  );
  const run = await world.start(`name: large\nsteps:\n${steps.join("\n")}\n`);
  await world.status(run, "completed");
  return run;
}

/** What a page shows only after something is done. */
const STATES = {
  launch: {
    "dry-run": async (page) => {
      await page.getByLabel(/^vendor/).fill("Northwind Paper");
      await page.getByRole("button", { name: "Dry run" }).click();
      await page.getByRole("region", { name: "Dry run" }).scrollIntoViewIfNeeded();
    },
  },
  write: {
    problems: async (page) => {
      await page
        .getByRole("textbox", { name: "Document" })
        .fill("name: x\nsteps:\n  - {id: a, comand: Go.}\n  - {id: a}\n");
      await page.getByRole("button", { name: /line/ }).first().waitFor();
    },
  },
  "run-result": {
    branch: async (page) => {
      await page.getByRole("button", { name: "Go back…" }).click();
      await page.getByLabel(/In a new run/).check();
      await page.getByLabel(/after gather/).check();
      await page.getByLabel("Step with a changed output").selectOption("gather");
      await page.getByLabel("Output", { exact: true }).selectOption("items");
      await page.getByText(/Runs again/).waitFor();
    },
  },
  "run-failed": {
    restart: async (page) => {
      await page.getByRole("button", { name: "Restart…" }).click();
      await page.getByText(/Runs again/).waitFor();
    },
  },
};

/** Goes to a page and waits until it has what it shows. */
export async function settled(page, address) {
  await page.goto(address);
  await page.locator("main h1, main [role=alert]").first().waitFor();
  await page
    .locator("main [role=status]", { hasText: "Loading" })
    .first()
    .waitFor({ state: "detached" });
  await page.waitForTimeout(450);
}

/** What axe finds that keeps people out. */
async function findings(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() =>
    window.axe.run(document, { resultTypes: ["violations"] }),
  );
  return violations
    .filter((one) => one.impact === "serious" || one.impact === "critical")
    .map(
      (one) =>
        `${one.id}: ${one.help}\n    ${one.nodes
          .slice(0, 3)
          .map((node) => `${node.html.slice(0, 160)} ${node.any[0]?.message ?? ""}`)
          .join("\n    ")}`,
    );
}

export async function looks(world) {
  const all = Object.entries(await places(world));
  const found = [];
  for (const colorScheme of ["light", "dark"]) {
    for (const [width, viewport] of Object.entries(VIEWPORTS)) {
      const page = await world.page({ colorScheme, viewport });
      const judge = async (name) => {
        const picture = world.picture(`${name}-${colorScheme}-${width}`);
        if (picture) await page.screenshot({ path: picture });
        found.push(
          ...(await findings(page)).map((one) => `${name} ${colorScheme} ${width}: ${one}`),
        );
        const wider = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        if (wider) found.push(`${name} ${width}: the page is wider than the screen`);
      };
      for (const [name, path] of all) {
        await settled(page, world.origin + path);
        await judge(name);
        for (const [state, reach] of Object.entries(STATES[name] ?? {})) {
          await reach(page);
          await page.waitForTimeout(450);
          await judge(`${name}-${state}`);
        }
      }
      await page.context().close();
    }
  }
  must(found.length === 0, found.join("\n"));
}
