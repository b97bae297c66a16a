// One run, looked at and changed: a branch with other values, where values came from, its packet, a tab that was away.
import { readFileSync } from "node:fs";
import { must, until } from "./world.mjs";

const CHAIN = `name: chain
args: {who: {type: string, default: Northwind}}
steps:
  - {id: gather, command: "Gather.", outputs: {items: array}}
  - {id: tell, depends_on: [gather], command: "Tell \${args.who} of \${gather.outputs.items}."}
`;

/** A new run from a checkpoint, in which an argument and an output are others. */
export async function branching(world) {
  const page = await world.page();
  const run = await world.start(CHAIN, { who: "Northwind" });
  await world.status(run, "completed");
  await page.goto(`${world.origin}/runs/${run}`);
  await page.getByRole("button", { name: "Go back…" }).click();
  await page.getByLabel(/In a new run/).check();
  await page.getByLabel(/after gather/).check();
  await page.getByText("Runs again: tell").waitFor();
  await page.getByLabel("Argument").selectOption("who");
  await page.getByLabel(/^who/).fill("Blue Freight");
  await page.getByText("Not valid JSON").waitFor();
  must(
    await page.getByRole("button", { name: "Start the new run" }).isDisabled(),
    "what cannot be read could be sent",
  );
  await page.getByLabel(/^who/).fill('"Blue Freight"');
  await page.getByLabel("Step with a changed output").selectOption("gather");
  await page.getByLabel("Output", { exact: true }).selectOption("items");
  await page.getByLabel(/^gather\.items/).fill('["nothing at all"]');
  await page.getByText("Runs again: tell").waitFor();
  await page.getByRole("button", { name: "Start the new run" }).click();
  await until(
    "the page is at the new run",
    () => !page.url().includes(run) && page.url().includes("/runs/run_"),
  );
  const made = page.url().match(/run_\w+/)[0];
  await world.status(made, "completed");
  const shown = await world.api(`/api/v1/runs/${made}`);
  must(
    shown.origin.kind === "branch" && shown.args.who === "Blue Freight",
    "the argument is another",
  );
  const { node_results: nodes } = await world.api(`/api/v1/runs/${made}/state`);
  must(
    nodes[0].dispatches === 0 && nodes[0].outputs.items[0] === "nothing at all",
    "the output is taken to have been another",
  );
  must(
    nodes[1].prompt.includes("Blue Freight") && nodes[1].prompt.includes("nothing at all"),
    "and is used",
  );
  const before = await world.api(`/api/v1/runs/${run}`);
  must(
    before.status === "completed" && before.args.who === "Northwind",
    "the old run is as it was",
  );
  await page.context().close();
}

/** Arrows of the values that went to a step, and the same in words. */
export async function provenance(world) {
  const page = await world.page();
  const run = await world.start(CHAIN);
  await world.status(run, "completed");
  await page.goto(`${world.origin}/runs/${run}?step=tell`);
  const step = page.getByRole("complementary", { name: "Step tell" });
  await step.getByText("Value flow").waitFor();
  await page.locator(".value-edge").waitFor();
  await step.getByRole("button", { name: "gather" }).click();
  await page
    .getByRole("complementary", { name: "Step gather" })
    .getByRole("button", { name: "tell" })
    .waitFor();
  await page.context().close();
}

/** The packet is a file, for those who may read the audit. */
export async function packet(world) {
  const page = await world.page();
  const run = await world.start(CHAIN);
  await world.status(run, "completed");
  await page.goto(`${world.origin}/runs/${run}?view=result`);
  // It is sealed within a second of its end.
  await page.waitForTimeout(1_500);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download the packet" }).click(),
  ]);
  must(download.suggestedFilename() === `${run}.packet.txt`, download.suggestedFilename());
  must(readFileSync(await download.path(), "utf8").includes(run), "the packet is of this run");
  const { token } = await world.api("/api/v1/tokens", { principal: "looker", roles: ["operator"] });
  const operator = await world.page({ token });
  await operator.goto(`${world.origin}/runs/${run}?view=result`);
  await operator.getByRole("heading", { name: "Definition" }).waitFor();
  const { permissions } = await operator.evaluate(
    async () => (await (await fetch("/api/v1/session")).json()).data,
  );
  const offered = (await operator.getByRole("button", { name: "Download the packet" }).count()) > 0;
  must(
    offered === permissions.includes("audit:read"),
    "the packet is offered to those who may have it",
  );
  await operator.context().close();
  await page.context().close();
}

/** The statuses that a page shows, step by step. */
async function statuses(page) {
  await page.getByRole("tab", { name: "Timeline" }).click();
  await page.getByRole("region", { name: "Steps over time" }).waitFor();
  return page.locator(".rows .line").allInnerTexts();
}

/** A tab that is closed in the middle of a run and opened again has missed nothing. */
export async function awayForAWhile(world, listed) {
  const page = await world.page();
  const { run_id: run } = await world.api("/api/v1/workflows/daily-brief/runs", { args: {} });
  await page.goto(`${world.origin}/runs/${run}?view=events&step=write`);
  await page.getByLabel("Text so far").waitFor();
  const context = page.context();
  await page.close();
  await new Promise((resolve) => setTimeout(resolve, 800));
  const again = await context.newPage();
  await again.goto(`${world.origin}/runs/${run}?view=events&step=write`);
  const said = await again.getByLabel("Text so far").innerText();
  must(said.startsWith("Northwind Paper"), `the text begins with its beginning: ${said}`);
  await again.locator(".run-head .badge", { hasText: "completed" }).waitFor();
  const { last_event_id: last } = await world.api(`/api/v1/runs/${run}`);
  const { ids, count } = await listed(again);
  must(
    count === last && ids.length === last && ids.every((id, at) => id === at + 1),
    `${last} events, and the page lists ${ids}`,
  );
  const other = await context.newPage();
  await other.goto(`${world.origin}/runs/${run}`);
  await other.locator(".run-head .badge", { hasText: "completed" }).waitFor();
  const [one, two] = [await statuses(again), await statuses(other)];
  must(one.length > 0 && JSON.stringify(one) === JSON.stringify(two), `${one}\nis not\n${two}`);
  await context.close();
}
