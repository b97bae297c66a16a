// What a run shows of itself: its phases, where it stopped, what it waits for at a gate, what its steps made.
import { must, until } from "./world.mjs";

const STOPS = `name: stops
phases: [{id: gather, name: Gather facts}, {id: tell, name: Tell people}]
steps:
  - {id: gather, phase: gather, command: "Gather.", outputs: {items: array}}
  - {id: breaks, phase: tell, depends_on: [gather], command: "Go."}
  - {id: after, phase: tell, depends_on: [breaks], command: "Go."}
`;

/** A run that failed says where, what was done by then, and what was known. */
export async function failing(world) {
  const page = await world.page();
  const run = await world.start(STOPS);
  await world.status(run, "failed");
  await page.goto(`${world.origin}/runs/${run}?view=result`);
  const phases = page.getByRole("list", { name: "Phases" });
  await phases.getByText("1 of 1").waitFor();
  await phases.getByText("0 of 2").waitFor();
  const stopped = page.getByRole("region", { name: "Where it stopped" });
  await stopped.getByText("The run stopped at").waitFor();
  must(
    (await stopped.getByLabel("Variables").innerText()).includes("Blue Freight was late twice"),
    "variables are shown",
  );
  const picture = world.picture("failed-run");
  if (picture) await page.screenshot({ path: picture });
  await stopped.getByRole("button", { name: "breaks" }).first().click();
  await page.getByRole("complementary", { name: "Step breaks" }).getByText("Tell people").waitFor();
  await page.context().close();
}

/** A step that waits at a gate says so, why, and what would let it go on. */
export async function waiting(world) {
  const page = await world.page();
  await world.put("agents/sleeper", {
    name: "The sleeper",
    trust_level: 5,
    capabilities: ["text"],
    status: "paused",
  });
  const run = await world.start(
    "name: waits\nsteps:\n  - {id: sleeps, agent: sleeper, command: Go.}\n",
  );
  await until("it waits at a gate", async () => {
    const { node_results: nodes } = await world.api(`/api/v1/runs/${run}/state`);
    return nodes[0].waiting_reason === "gate";
  });
  await page.goto(`${world.origin}/runs/${run}?step=sleeps`);
  const head = page.locator(".run-head");
  await head.getByText("waits at a gate").waitFor();
  await head.getByRole("link", { name: "agent_disabled" }).waitFor();
  const step = page.getByRole("complementary", { name: "Step sleeps" });
  await step.getByText("Waits at a gate: agent_disabled").waitFor();
  await page.locator(".graph .step", { hasText: "waits at a gate" }).waitFor();
  const picture = world.picture("gate-wait");
  if (picture) await page.screenshot({ path: picture });
  await world.api(`/api/v1/runs/${run}/cancel`, {});
  await head.locator(".badge", { hasText: "cancelled" }).waitFor();
  must(
    (await head.getByText("waits at a gate").count()) === 0,
    "what waits no more is still said to",
  );
  await page.context().close();
}

const DRAWS = `name: draws
lenses:
  draw: {versions: {1: {template: "Draw [[what]]."}}}
nodes:
  - {id: picture, lens_id: draw}
  - {id: script, lens_id: draw}
`;

/** What a step made is shown as what it is, if it cannot do any harm; else as text. */
export async function media(world) {
  const page = await world.page();
  const document = {
    document: DRAWS,
    format: "lens",
    args: { what: "a lamp" },
    default_agent: "mock",
  };
  const { run_id: run } = await world.api("/api/v1/runs", document);
  await world.status(run, "completed");
  await page.goto(`${world.origin}/runs/${run}?step=picture`);
  const picture = page.getByRole("complementary", { name: "Step picture" });
  const image = picture.getByRole("img", { name: "Media 1, image/png" });
  await image.waitFor();
  await until("the picture is drawn", () =>
    image.evaluate((one) => one.complete && one.naturalWidth === 2),
  );
  await picture.getByText("Metadata").click();
  await picture.getByText("seed").waitFor();
  const path = world.picture("media");
  if (path) await page.screenshot({ path });
  await page.goto(`${world.origin}/runs/${run}?step=script`);
  const script = page.getByRole("complementary", { name: "Step script" });
  await script.getByLabel("Media 1").waitFor();
  must(
    (await script.locator(".media img, .media audio, .media video, .media iframe").count()) === 0,
    "it is not text",
  );
  must((await page.evaluate(() => window.pwned)) === undefined, "something ran");
  await page.context().close();
}
