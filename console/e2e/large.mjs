// A run of thousands of steps: it opens, stays quick while it goes, and its layout grows no faster than its steps.
//
//   node e2e/large.mjs BINARY CHROMIUM [STEPS] [SECONDS] [FOLDER FOR PICTURES]
//
// Prints what it measured, and fails past the limits.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { must, until, World } from "./world.mjs";

/** Longest that a page may not answer to those who use it. */
const LONG_MS = 200;
/** How much longer the places of five times as many steps may take to find. */
const GROWTH = 7;
/** Chains of steps that go on beside each other, each step a second and a half. */
const LANES = 75;

/** Lanes of steps; each step waits for the one before it, and some for their neighbour's. */
function lanes(name, steps) {
  const id = (row, lane) => `s${row}_${lane}`;
  const lines = Array.from({ length: steps }, (_, n) => {
    const [row, lane] = [Math.floor(n / LANES), n % LANES];
    const before =
      row === 0
        ? []
        : [id(row - 1, lane), ...(lane % 3 === 0 ? [id(row - 1, (lane + 1) % LANES)] : [])];
    return `- {id: ${id(row, lane)}, command: "Go.", depends_on: [${before}]}`;
  });
  return `name: ${name}\nmax_parallel: ${LANES}\nsteps:\n${lines.join("\n")}\n`;
}

/** Begins to note the long tasks of a page, from its first script on. */
const NOTE = () => {
  window.long = [];
  new PerformanceObserver((list) => {
    for (const task of list.getEntries())
      window.long.push([Math.round(task.startTime), Math.round(task.duration)]);
  }).observe({ type: "longtask", buffered: true });
};

async function longest(page) {
  const tasks = await page.evaluate(() => window.long.splice(0));
  return { tasks, worst: Math.max(0, ...tasks.map(([, took]) => took)) };
}

/** How long the worker took to find the places of a graph, in milliseconds. */
const layoutOf = (page) =>
  until("the layout is measured", () =>
    page.evaluate(() => performance.getEntriesByName("layout").at(-1)?.duration),
  );

const told = [];
function tell(what, worst, limit, more = "") {
  console.log(`${what}: ${worst.toFixed(1)} (at most ${limit})${more}`);
  if (worst > limit) told.push(`${what}: ${worst.toFixed(1)} is past ${limit}`);
}

/** Opens a run while it goes, looks at it in every way, and notes how long the page did not answer. */
async function watching(world, steps, seconds, picture) {
  const run = await world.start(lanes(`lanes-${steps}`, steps));
  const page = await world.page();
  await page.addInitScript(NOTE);
  await page.goto(`${world.origin}/runs/${run}`);
  await page.locator(".map canvas").waitFor();
  await page.locator(".step").first().waitFor();
  await page.waitForTimeout(1_500);
  const opened = await longest(page);
  tell(
    `${steps} steps, opening: longest task in ms`,
    opened.worst,
    LONG_MS,
    ` of ${opened.tasks.length}`,
  );
  await picture(page, "large-graph");
  const begun = await world.api(`/api/v1/runs/${run}/state`);
  const from = Date.now();
  const share = (seconds * 1_000) / 5;
  const box = await page.locator(".graph").boundingBox();
  const centre = [box.x + box.width / 2, box.y + box.height / 2];
  await page.waitForTimeout(share);
  const still = await longest(page);
  tell(
    `${steps} steps, graph while it goes: longest task in ms`,
    still.worst,
    LONG_MS,
    ` of ${still.tasks.length}`,
  );
  await page.mouse.move(...centre);
  for (let turn = 0; turn < 10; turn += 1) {
    await page.mouse.wheel(0, turn < 5 ? 400 : -300);
    await page.waitForTimeout(share / 20);
  }
  await page.mouse.down();
  for (let turn = 1; turn <= 10; turn += 1) {
    await page.mouse.move(centre[0] - turn * 40, centre[1] + turn * 15);
    await page.waitForTimeout(share / 20);
  }
  await page.mouse.up();
  await page.getByRole("button", { name: "Fit View" }).click();
  await page.waitForTimeout(600);
  await picture(page, "large-whole");
  const moved = await longest(page);
  tell(
    `${steps} steps, moving and zooming: longest task in ms`,
    moved.worst,
    LONG_MS,
    ` of ${moved.tasks.length}`,
  );
  for (const [tab, region] of [
    ["Timeline", "Steps over time"],
    ["Events", "Events"],
  ]) {
    await page.getByRole("tab", { name: tab }).click();
    const list = page.getByRole("region", { name: region });
    await list.waitFor();
    for (let turn = 0; turn < 10; turn += 1) {
      await list.evaluate(
        (element, part) => (element.scrollTop = (element.scrollHeight * part) / 10),
        turn,
      );
      await page.waitForTimeout(share / 10);
    }
    if (tab === "Timeline") {
      await page.getByLabel("Which steps").selectOption("in_flight_count");
      await page.waitForFunction(
        () => Number(document.querySelector(".rows li")?.ariaSetSize ?? 0) <= 400,
      );
    }
    await picture(page, `large-${tab.toLowerCase()}`);
    const seen = await longest(page);
    tell(
      `${steps} steps, ${tab.toLowerCase()}: longest task in ms`,
      seen.worst,
      LONG_MS,
      ` of ${seen.tasks.length}`,
    );
  }
  await page.getByRole("tab", { name: "Graph" }).click();
  await page.locator(".step").first().waitFor();
  await page.locator(".react-flow__node").evaluateAll((all) => {
    const inside = ({ left, top, right, bottom }) =>
      left > 80 && top > 240 && right < innerWidth - 80 && bottom < innerHeight - 80;
    all.find((one) => inside(one.getBoundingClientRect()))?.click();
  });
  await page.getByRole("complementary").waitFor();
  await page.waitForTimeout(1_000);
  await picture(page, "large-step");
  const chosen = await longest(page);
  tell(
    `${steps} steps, choosing a step: longest task in ms`,
    chosen.worst,
    LONG_MS,
    ` of ${chosen.tasks.length}`,
  );
  const now = await world.api(`/api/v1/runs/${run}/state`);
  const rate = ((now.executed_count - begun.executed_count) * 1_000) / (Date.now() - from);
  console.log(`${steps} steps: ${rate.toFixed(0)} completed each second meanwhile`);
  must(rate > 25, `the run was too slow to show anything: ${rate.toFixed(0)} steps a second`);
  // What the page shows is what is: also after all this.
  await until("the page has caught up", async () => {
    const shown = Number(
      (await page.locator(".figures").innerText()).match(/(\d+) of \d+\s+steps done/)?.[1],
    );
    return Math.abs(shown - (await world.api(`/api/v1/runs/${run}/state`)).executed_count) < 100;
  });
  const elements = await page.locator(".step").count();
  must(elements <= 200, `${elements} steps are elements`);
  await world.api(`/api/v1/runs/${run}/cancel`, { reason: "seen enough" });
  await world.status(run, "cancelled");
  await page.locator(".run-head .badge", { hasText: "cancelled" }).waitFor();
  const ending = await longest(page);
  tell(
    `${steps} steps, cancelling: longest task in ms`,
    ending.worst,
    LONG_MS,
    ` of ${ending.tasks.length}`,
  );
  await page.context().close();
  return run;
}

/** The time that places take, of a run that only waits to be seen: the best of some. */
async function placing(world, steps) {
  const run = await world.start(lanes(`places-${steps}`, steps));
  await world.api(`/api/v1/runs/${run}/cancel`, { reason: "only to be looked at" });
  const page = await world.page();
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5; round += 1) {
    await page.goto(`${world.origin}/runs/${run}`);
    best = Math.min(best, await layoutOf(page));
  }
  await page.context().close();
  return best;
}

/** All of it; what is past a limit is thrown at the end. */
export async function large(world, steps = 5_000, seconds = 20, pictures = null) {
  if (pictures) mkdirSync(pictures, { recursive: true });
  const picture = async (page, name) =>
    pictures && page.screenshot({ path: join(pictures, `${name}.png`) });
  await watching(world, steps, seconds, picture);
  const [some, many] = [await placing(world, 1_000), await placing(world, 5_000)];
  console.log(`layout: ${some.toFixed(1)} ms for 1,000 steps, ${many.toFixed(1)} ms for 5,000`);
  tell("layout, 5,000 steps to 1,000", many / some, GROWTH);
  must(told.length === 0, told.join("\n"));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [binary, chromium, steps = "5000", seconds = "20", pictures] = process.argv.slice(2);
  const world = await World.open(binary, chromium, { answers: "lanes.yaml" });
  let failed = false;
  try {
    await large(world, Number(steps), Number(seconds), pictures);
    must(world.complaints.length === 0, `pages complained:\n${world.complaints.join("\n")}`);
  } catch (error) {
    console.error(error);
    failed = true;
  } finally {
    await world.close();
  }
  process.exit(failed ? 1 : 0);
}
