// A run of thousands of steps: the page stays responsive while it runs, and the layout scales.
import type { Page } from "@playwright/test";
import { expect, test } from "../fixtures";
import type { Server } from "../server";

test.use({ answers: "lanes.yaml" });

const STEPS = Number(process.env.STEPS ?? 5_000);
const SECONDS = Number(process.env.SECONDS ?? 10);
/** Longest task that may block the page. */
const TASK_MAX_MS = 200;
/** Factor by which the layout of five times as many steps may take longer. */
const GROWTH_MAX = 7;
/** Parallel chains of steps; each step takes a second and a half. */
const LANES = 75;

/** A document of parallel chains, some with an edge to their neighbour. */
function lanes(name: string, steps: number): string {
  const id = (row: number, lane: number) => `s${row}_${lane}`;
  const lines = Array.from({ length: steps }, (_, n) => {
    const [row, lane] = [Math.floor(n / LANES), n % LANES];
    const before = row === 0 ? [] : [id(row - 1, lane)];
    if (row > 0 && lane % 3 === 0) before.push(id(row - 1, (lane + 1) % LANES));
    return `- {id: ${id(row, lane)}, command: "Go.", depends_on: [${before}]}`;
  });
  return `name: ${name}\nmax_parallel: ${LANES}\nsteps:\n${lines.join("\n")}\n`;
}

interface Measured {
  longTasks: number[];
}

/** Records the long tasks of a page from its first script on. */
function recordLongTasks(): void {
  const measured = window as unknown as Measured;
  measured.longTasks = [];
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) measured.longTasks.push(Math.round(task.duration));
  }).observe({ type: "longtask", buffered: true });
}

/** Prints and checks the longest task since the last call. */
async function expectResponsive(page: Page, what: string): Promise<void> {
  const tasks = await page.evaluate(() => (window as unknown as Measured).longTasks.splice(0));
  const longest = Math.max(0, ...tasks);
  report(`${STEPS} steps, ${what}: longest task ${longest} ms (at most ${TASK_MAX_MS})`);
  expect.soft(longest, what).toBeLessThanOrEqual(TASK_MAX_MS);
}

function report(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Zooms, pans and fits the graph for a time. */
async function moveGraph(page: Page, ms: number): Promise<void> {
  const box = await page.locator(".graph").boundingBox();
  if (!box) throw new Error("the graph is not visible");
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  for (let turn = 0; turn < 10; turn += 1) {
    await page.mouse.wheel(0, turn < 5 ? 400 : -300);
    await page.waitForTimeout(ms / 20);
  }
  await page.mouse.down();
  for (let turn = 1; turn <= 10; turn += 1) {
    await page.mouse.move(x - turn * 40, y + turn * 15);
    await page.waitForTimeout(ms / 20);
  }
  await page.mouse.up();
  await page.getByRole("button", { name: "Fit View" }).click();
  await page.waitForTimeout(600);
}

/** Scrolls through the list of a tab for a time. */
async function scrollTab(page: Page, tab: string, region: string, ms: number): Promise<void> {
  await page.getByRole("tab", { name: tab }).click();
  const list = page.getByRole("region", { name: region });
  await expect(list).toBeVisible();
  for (let turn = 0; turn < 10; turn += 1) {
    await list.evaluate((element, part) => {
      element.scrollTop = (element.scrollHeight * part) / 10;
    }, turn);
    await page.waitForTimeout(ms / 10);
  }
}

/** Clicks a step that is well inside the window. */
async function chooseStep(page: Page): Promise<void> {
  await page.getByRole("tab", { name: "Graph" }).click();
  await expect(page.locator(".step").first()).toBeVisible();
  await page.locator(".react-flow__node").evaluateAll((all) => {
    const isInside = ({ left, top, right, bottom }: DOMRect) =>
      left > 80 && top > 240 && right < innerWidth - 80 && bottom < innerHeight - 80;
    const found = all.find((one) => isInside(one.getBoundingClientRect()));
    (found as HTMLElement | undefined)?.click();
  });
  await expect(page.getByRole("complementary")).toBeVisible();
  await page.waitForTimeout(1_000);
}

test("a page stays responsive while a large run goes on", async ({ server, signIn }) => {
  const share = (SECONDS * 1_000) / 5;
  const run = await server.startDocument(lanes(`lanes-${STEPS}`, STEPS));
  const page = await signIn();
  await page.addInitScript(recordLongTasks);
  await page.goto(`/runs/${run}`);
  await expect(page.locator(".map canvas")).toBeVisible();
  await expect(page.locator(".step").first()).toBeVisible();
  await page.waitForTimeout(1_500);
  await expectResponsive(page, "opening");
  const executed = async () => (await server.state(run)).executed_count;
  const [begun, from] = [await executed(), Date.now()];
  await page.waitForTimeout(share);
  await expectResponsive(page, "graph");
  await moveGraph(page, share);
  await expectResponsive(page, "moving and zooming");
  await scrollTab(page, "Timeline", "Steps over time", share);
  await page.getByLabel("Which steps").selectOption("in_flight_count");
  await page.waitForFunction(
    () => Number(document.querySelector(".rows li")?.ariaSetSize ?? 0) <= 400,
  );
  await expectResponsive(page, "timeline");
  await scrollTab(page, "Events", "Events", share);
  await expectResponsive(page, "events");
  await chooseStep(page);
  await expectResponsive(page, "choosing a step");

  const rate = (((await executed()) - begun) * 1_000) / (Date.now() - from);
  report(`${STEPS} steps: ${rate.toFixed(0)} completed per second meanwhile`);
  expect(rate, "the run is fast enough for the measurement").toBeGreaterThan(25);
  await expect(async () => {
    const figures = await page.locator(".figures").innerText();
    const shown = Number(figures.match(/(\d+) of \d+\s+steps done/)?.[1]);
    expect(Math.abs(shown - (await executed()))).toBeLessThan(100);
  }).toPass();
  expect(await page.locator(".step").count()).toBeLessThanOrEqual(200);
  await server.post(`/api/v1/runs/${run}/cancel`, { reason: "seen enough" });
  await server.waitForStatus(run, "cancelled");
  await expect(page.locator(".run-head .badge", { hasText: "cancelled" })).toBeVisible();
  await expectResponsive(page, "cancelling");
});

/** Best time of the layout worker for a cancelled run of so many steps, in milliseconds. */
async function layoutTime(server: Server, page: Page, steps: number): Promise<number> {
  const run = await server.startDocument(lanes(`layout-${steps}`, steps));
  await server.post(`/api/v1/runs/${run}/cancel`, { reason: "only its layout is measured" });
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5; round += 1) {
    await page.goto(`/runs/${run}`);
    const measured = await page.waitForFunction(
      () => performance.getEntriesByName("layout").at(-1)?.duration,
    );
    best = Math.min(best, (await measured.jsonValue()) ?? best);
  }
  return best;
}

test("the layout grows no faster than the number of steps", async ({ server, signIn }) => {
  const page = await signIn();
  const few = await layoutTime(server, page, 1_000);
  const many = await layoutTime(server, page, 5_000);
  report(`layout: ${few.toFixed(1)} ms for 1,000 steps, ${many.toFixed(1)} ms for 5,000`);
  expect(many / few).toBeLessThanOrEqual(GROWTH_MAX);
});
