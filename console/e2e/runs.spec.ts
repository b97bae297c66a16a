// One run: live updates, actions on it, and what its page shows.
import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import type { Schemas } from "../src/api/client";
import { expect, test } from "./fixtures";

/** The ids of the events in the journal view, and the number of rows it claims to have. */
async function listedEvents(page: Page): Promise<{ ids: number[]; count: number }> {
  const region = page.getByRole("region", { name: "Events" });
  const ids = new Set<number>();
  let height = 1;
  for (let top = 0; top < height; top += 300) {
    height = await region.evaluate((element, scrollTop) => {
      element.scrollTop = scrollTop;
      return element.scrollHeight;
    }, top);
    await page.waitForTimeout(40);
    for (const text of await region.locator("li .event > :first-child").allInnerTexts()) {
      ids.add(Number(text));
    }
  }
  const count = await region.locator("li").first().getAttribute("aria-setsize");
  return { ids: [...ids].sort((one, other) => one - other), count: Number(count) };
}

/** Fails unless the journal view lists every event from 1 to `last` exactly once. */
async function expectAllEvents(page: Page, last: number): Promise<void> {
  const { ids, count } = await listedEvents(page);
  expect(count).toBe(last);
  expect(ids).toEqual(Array.from({ length: last }, (_, at) => at + 1));
}

const badge = (page: Page, status: string) => page.locator(".run-head .badge", { hasText: status });

/** Waits until the page shows a run other than `before`, and returns its id. */
async function newRun(page: Page, before: string): Promise<string> {
  await page.waitForURL((url) => !url.href.includes(before) && url.href.includes("/runs/run_"));
  return page.url().match(/run_\w+/)?.[0] ?? "";
}

test("a page resumes after the server is killed, without gaps or duplicates", async ({
  server,
  signIn,
}) => {
  const page = await signIn();
  const run = await server.startWorkflow("daily-brief");
  await page.goto(`/runs/${run}?view=events&step=write`);
  await expect(page.getByText("node.stream.delta").first()).toBeVisible();
  await expect(page.getByLabel("Text so far")).toBeVisible();
  await server.kill("SIGKILL");
  await expect(page.getByText("The server does not respond.")).toBeVisible();
  await server.start();
  await expect(page.getByText("The server does not respond.")).toHaveCount(0);
  // The step is dispatched again, and its text starts over.
  const text = page.getByLabel("Text so far");
  await expect(text).toContainText("renewed its contract");
  expect((await text.innerText()).split("Northwind Paper")).toHaveLength(2);
  await expect(badge(page, "completed")).toBeVisible();
  const { last_event_id: last } = await server.run(run);
  await expectAllEvents(page, last);
  const other = await page.context().newPage();
  await other.goto(`/runs/${run}?view=events`);
  await expect.poll(async () => (await listedEvents(other)).count).toBe(last);
});

/** The rows of the timeline as text. */
async function timelineRows(page: Page): Promise<string[]> {
  await page.getByRole("tab", { name: "Timeline" }).click();
  await expect(page.getByRole("region", { name: "Steps over time" })).toBeVisible();
  return page.locator(".rows .line").allInnerTexts();
}

test("a tab that is closed and opened again has missed nothing", async ({ server, signIn }) => {
  const first = await signIn();
  const run = await server.startDocument(
    "name: slow\nsteps:\n  - {id: gather, command: Go.}\n  - {id: write_slowly, depends_on: [gather], command: Go.}\n",
  );
  await first.goto(`/runs/${run}?view=events&step=write_slowly`);
  await expect(first.getByLabel("Text so far")).toBeVisible();
  const context = first.context();
  await first.close();
  await new Promise((resolve) => setTimeout(resolve, 800));
  const page = await context.newPage();
  await page.goto(`/runs/${run}?view=events&step=write_slowly`);
  expect(await page.getByLabel("Text so far").innerText()).toMatch(/^Northwind Paper/);
  await expect(badge(page, "completed")).toBeVisible();
  await expectAllEvents(page, (await server.run(run)).last_event_id);
  const other = await context.newPage();
  await other.goto(`/runs/${run}`);
  await expect(badge(other, "completed")).toBeVisible();
  const rows = await timelineRows(page);
  expect(rows.length).toBeGreaterThan(0);
  expect(await timelineRows(other)).toEqual(rows);
});

test("a run can be restarted, rewound and retried", async ({ server, signIn }) => {
  const page = await signIn();
  const run = await server.startDocument(
    "name: course\nsteps:\n  - {id: first, command: Go.}\n  - {id: breaks, depends_on: [first], command: Go.}\n",
  );
  await server.waitForStatus(run, "failed");
  await page.goto(`/runs/${run}`);
  await expect(page.getByText("the disk is full").first()).toBeVisible();
  await expect(page.getByRole("button", { name: "Pause" })).toHaveCount(0);
  await page.getByRole("button", { name: "Restart…" }).click();
  await expect(page.getByText("Runs again: breaks")).toBeVisible();
  await page.getByRole("button", { name: "Start the new run" }).click();
  const restarted = await newRun(page, run);
  await expect(page.getByText("restart of")).toBeVisible();
  await server.waitForStatus(restarted, "failed");
  const { node_results: steps } = await server.state(restarted);
  expect(steps[0], "completed steps do not run again").toMatchObject({
    status: "completed",
    dispatches: 0,
  });
  await expect(badge(page, "failed")).toBeVisible();

  await page.getByRole("button", { name: "Go back…" }).click();
  await page.getByLabel("Start of the run").check();
  await expect(page.getByText("Runs again: breaks")).toBeVisible();
  await page.getByRole("button", { name: "Go back", exact: true }).click();
  await page.getByRole("tab", { name: "Events" }).click();
  await expect(page.getByText("node.invalidated").first()).toBeVisible();
  const generation = async () => (await server.state(restarted)).node_results[1]?.generation ?? 0;
  await expect
    .poll(async () => (await server.state(restarted)).status === "failed" && (await generation()))
    .toBeGreaterThan(0);
  await expect(badge(page, "failed")).toBeVisible();

  await page.getByRole("button", { name: "Retry", exact: true }).click();
  await expect.poll(generation).toBeGreaterThan(1);
});

test("a run can be cancelled, paused and resumed", async ({ server, signIn }) => {
  const page = await signIn();
  const held = await server.startDocument(
    "name: held\nsteps:\n  - {id: ask, approval: required}\n  - {id: after, depends_on: [ask], command: Go.}\n",
  );
  await server.waitForStatus(held, "paused");
  await page.goto(`/runs/${held}`);
  await page.getByRole("button", { name: "Cancel…" }).click();
  await page.getByLabel("Reason (recorded in the journal)").fill("not needed");
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await expect(badge(page, "cancelled")).toBeVisible();

  const slow = await server.startWorkflow("daily-brief");
  await page.goto(`/runs/${slow}`);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Resume" }).click();
  await expect(badge(page, "completed")).toBeVisible();
});

const CHAIN = `name: chain
args: {who: {type: string, default: Northwind}}
steps:
  - {id: gather, command: "Gather.", outputs: {items: array}}
  - {id: tell, depends_on: [gather], command: "Tell \${args.who} of \${gather.outputs.items}."}
`;

test("a branch starts from a checkpoint with changed values", async ({ server, signIn }) => {
  const page = await signIn();
  const run = await server.startDocument(CHAIN, { who: "Northwind" });
  await server.waitForStatus(run, "completed");
  await page.goto(`/runs/${run}`);
  await page.getByRole("button", { name: "Go back…" }).click();
  await page.getByLabel(/In a new run/).check();
  await page.getByLabel(/after gather/).check();
  await expect(page.getByText("Runs again: tell")).toBeVisible();
  await page.getByLabel("Argument").selectOption("who");
  await page.getByLabel(/^who/).fill("Blue Freight");
  await expect(page.getByText("Not valid JSON")).toBeVisible();
  await expect(page.getByRole("button", { name: "Start the new run" })).toBeDisabled();
  await page.getByLabel(/^who/).fill('"Blue Freight"');
  await page.getByLabel("Step with a changed output").selectOption("gather");
  await page.getByLabel("Output", { exact: true }).selectOption("items");
  await page.getByLabel(/^gather\.items/).fill('["nothing at all"]');
  await expect(page.getByText("Runs again: tell")).toBeVisible();
  await page.getByRole("button", { name: "Start the new run" }).click();
  const branch = await newRun(page, run);
  await server.waitForStatus(branch, "completed");
  expect(await server.run(branch)).toMatchObject({
    origin: { kind: "branch" },
    args: { who: "Blue Freight" },
  });
  const [gather, tell] = (await server.state(branch)).node_results;
  expect(gather).toMatchObject({ dispatches: 0, outputs: { items: ["nothing at all"] } });
  expect(tell?.prompt).toContain("Blue Freight");
  expect(tell?.prompt).toContain("nothing at all");
  expect(await server.run(run), "the old run is unchanged").toMatchObject({
    status: "completed",
    args: { who: "Northwind" },
  });
});

test("value flow is shown in the graph and in the inspector", async ({ server, signIn }) => {
  const page = await signIn();
  const run = await server.startDocument(CHAIN);
  await server.waitForStatus(run, "completed");
  await page.goto(`/runs/${run}?step=tell`);
  const tell = page.getByRole("complementary", { name: "Step tell" });
  await expect(tell.getByText("Value flow")).toBeVisible();
  await expect(page.locator(".value-edge")).toBeVisible();
  await tell.getByRole("button", { name: "gather" }).click();
  const gather = page.getByRole("complementary", { name: "Step gather" });
  await expect(gather.getByRole("button", { name: "tell" })).toBeVisible();
});

test("the audit packet is a file, for roles that may read the audit log", async ({
  server,
  signIn,
}) => {
  const page = await signIn();
  const run = await server.startDocument(CHAIN);
  await server.waitForStatus(run, "completed");
  await page.goto(`/runs/${run}?view=result`);
  // The server seals a run within a second of its end.
  await page.waitForTimeout(1_500);
  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download the packet" }).click();
  const download = await downloading;
  expect(download.suggestedFilename()).toBe(`${run}.packet.txt`);
  expect(readFileSync(await download.path(), "utf8")).toContain(run);
  const operator = await signIn({ token: await server.createToken("looker", "operator") });
  await operator.goto(`/runs/${run}?view=result`);
  await expect(operator.getByRole("heading", { name: "Definition" })).toBeVisible();
  const { permissions } = await operator.evaluate(
    async () => (await (await fetch("/api/v1/session")).json()).data,
  );
  const offered = await operator.getByRole("button", { name: "Download the packet" }).count();
  expect(offered > 0).toBe(permissions.includes("audit:read"));
});

const STOPS = `name: stops
phases: [{id: gather, name: Gather facts}, {id: tell, name: Tell people}]
steps:
  - {id: gather, phase: gather, command: "Gather.", outputs: {items: array}}
  - {id: breaks, phase: tell, depends_on: [gather], command: "Go."}
  - {id: after, phase: tell, depends_on: [breaks], command: "Go."}
`;

test("a failed run shows where it stopped, its phases and its variables", async ({
  server,
  signIn,
}) => {
  const page = await signIn();
  const run = await server.startDocument(STOPS);
  await server.waitForStatus(run, "failed");
  await page.goto(`/runs/${run}?view=result`);
  const phases = page.getByRole("list", { name: "Phases" });
  await expect(phases.getByText("1 of 1")).toBeVisible();
  await expect(phases.getByText("0 of 2")).toBeVisible();
  const stopped = page.getByRole("region", { name: "Where it stopped" });
  await expect(stopped.getByText("The run stopped at")).toBeVisible();
  await expect(stopped.getByLabel("Variables")).toContainText("Blue Freight was late twice");
  await stopped.getByRole("button", { name: "breaks" }).first().click();
  const step = page.getByRole("complementary", { name: "Step breaks" });
  await expect(step.getByText("Tell people")).toBeVisible();
});

test("a step that waits at a gate shows the cause", async ({ server, signIn }) => {
  const page = await signIn();
  await server.put("agents/sleeper", {
    name: "The sleeper",
    trust_level: 5,
    capabilities: ["text"],
    status: "paused",
  });
  const run = await server.startDocument(
    "name: waits\nsteps:\n  - {id: sleeps, agent: sleeper, command: Go.}\n",
  );
  await expect
    .poll(async () => (await server.state(run)).node_results[0]?.waiting_reason)
    .toBe("gate");
  await page.goto(`/runs/${run}?step=sleeps`);
  const head = page.locator(".run-head");
  await expect(head.getByText("waits at a gate")).toBeVisible();
  await expect(head.getByRole("link", { name: "agent_disabled" })).toBeVisible();
  const step = page.getByRole("complementary", { name: "Step sleeps" });
  await expect(step.getByText("Waits at a gate: agent_disabled")).toBeVisible();
  await expect(page.locator(".graph .step", { hasText: "waits at a gate" })).toBeVisible();
  await server.post(`/api/v1/runs/${run}/cancel`, {});
  await expect(badge(page, "cancelled")).toBeVisible();
  await expect(head.getByText("waits at a gate")).toHaveCount(0);
});

const DRAWS = `name: draws
lenses:
  draw: {versions: {1: {template: "Draw [[what]]."}}}
nodes:
  - {id: picture, lens_id: draw}
  - {id: script, lens_id: draw}
`;

test("safe media is rendered, everything else stays text", async ({ server, signIn }) => {
  const page = await signIn();
  const body = { document: DRAWS, format: "lens", args: { what: "a lamp" }, default_agent: "mock" };
  const { run_id: run } = await server.post<Schemas["RunShown"]>("/api/v1/runs", body);
  await server.waitForStatus(run, "completed");
  await page.goto(`/runs/${run}?step=picture`);
  const picture = page.getByRole("complementary", { name: "Step picture" });
  const image = picture.getByRole("img", { name: "Media 1, image/png" });
  await expect(image).toBeVisible();
  await expect
    .poll(() => image.evaluate((one: HTMLImageElement) => (one.complete ? one.naturalWidth : 0)))
    .toBe(2);
  await picture.getByText("Metadata").click();
  await expect(picture.getByText("seed")).toBeVisible();
  await page.goto(`/runs/${run}?step=script`);
  const script = page.getByRole("complementary", { name: "Step script" });
  await expect(script.getByLabel("Media 1")).toBeVisible();
  const rendered = ".media img, .media audio, .media video, .media iframe";
  await expect(script.locator(rendered)).toHaveCount(0);
  expect(await page.evaluate(() => "pwned" in window), "a script ran").toBe(false);
});

test("a run's page can be used by keyboard alone", async ({ server, signIn }) => {
  const page = await signIn();
  const run = await server.startWorkflow("daily-brief");
  await server.waitForStatus(run, "completed");
  await page.goto(`/runs/${run}`);
  await expect(page.locator(".react-flow__node").first()).toBeVisible();
  await expect
    .poll(
      async () => {
        await page.keyboard.press("Tab");
        return page.evaluate(() => document.activeElement?.classList.contains("react-flow__node"));
      },
      { intervals: [50] },
    )
    .toBe(true);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("complementary")).toBeVisible();
  await page.getByRole("button", { name: "Go back…" }).focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await page.getByRole("tab", { name: "Graph" }).focus();
  await page.keyboard.press("ArrowRight");
  await expect(page.getByRole("region", { name: "Steps over time" })).toBeVisible();
});
