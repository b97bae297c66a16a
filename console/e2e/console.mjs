// The console in a real browser, before a real server.
//
//   node e2e/console.mjs BINARY CHROMIUM [FOLDER FOR PICTURES]
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { awayForAWhile, branching, packet, provenance } from "./course.mjs";
import { hostile } from "./hostile.mjs";
import { looks } from "./looks.mjs";
import * as rooms from "./rooms.mjs";
import { failing, media, waiting } from "./shown.mjs";
import { dryRun, editing, keyboard } from "./workflows.mjs";
import { must, until, World } from "./world.mjs";

const [binary, chromium, pictures] = process.argv.slice(2);
const LIMIT_MS = 840_000;
setTimeout(() => {
  console.error("the tests of the console took too long");
  process.exit(1);
}, LIMIT_MS).unref();

async function signingIn(world) {
  const context = await world.browser.newContext();
  const page = await context.newPage();
  await page.goto(`${world.origin}/approvals`);
  await page.getByLabel("Token").fill("slk_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill(world.admin);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Approvals" }).waitFor();
  must((await page.evaluate(() => document.cookie)) === "", "a script can read the cookie");
  must(
    (await page.evaluate(() => JSON.stringify(localStorage))).includes("slk_") === false,
    "the token is kept",
  );
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token").waitFor();
  const { status } = await page.request
    .get(`${world.origin}/api/v1/session`)
    .then((answer) => ({ status: answer.status() }));
  must(status === 401, `signed out, and yet ${status}`);
  await context.close();
}

/** Starts a review in the browser; the page is then at its run. */
async function launch(world, page, vendor) {
  await page.goto(`${world.origin}/workflows`);
  await page.getByRole("link", { name: /vendor-review/ }).click();
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByText("This field is required.").waitFor();
  await page.getByLabel(/^vendor/).fill(vendor);
  await page.getByLabel(/^annual_spend_usd/).fill("a lot");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByText("Enter a number, such as 12.5.").waitFor();
  await page.getByLabel(/^annual_spend_usd/).fill("900");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.waitForURL(/\/runs\/run_/);
  return page.url().match(/run_\w+/)[0];
}

async function approving(world) {
  const page = await world.page();
  const run = await launch(world, page, "Northwind Paper");
  must(
    (await world.api(`/api/v1/runs/${run}`)).args.annual_spend_usd === 900,
    "the number was sent as one",
  );
  await page.getByRole("link", { name: "Decide" }).click();
  const asked = (await world.api(`/api/v1/runs/${run}`)).approvals[0];
  await page.getByText(asked.digest, { exact: true }).waitFor();
  await page.getByText("approver, admin").waitFor();
  const action = await page.getByLabel("Exact action").innerText();
  must(
    JSON.stringify(JSON.parse(action)) === JSON.stringify(asked.action),
    "the action is shown as it is",
  );
  // Another page of the same run is looked at meanwhile.
  const other = await page.context().newPage();
  await other.goto(`${world.origin}/runs/${run}`);
  await other.locator(".run-head .badge", { hasText: "paused" }).waitFor();
  await page.getByLabel(/Comment/).fill("Fine with me.");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("This request is approved.").waitFor();
  await other.locator(".run-head .badge", { hasText: "completed" }).waitFor();
  await other.getByRole("tab", { name: "Result" }).click();
  await other.getByText("we would like to go ahead").first().waitFor();
  await other.getByRole("tab", { name: "Timeline" }).click();
  await other.getByRole("button", { name: /classify completed/ }).click();
  const step = other.getByRole("complementary", { name: "Step classify" });
  await step.getByText("handles_personal_data").waitFor();
  await step.getByText(/^Decision/).click();
  await step.getByText("gateway health").first().waitFor();
  await step.getByText("Attempts (2)").waitFor();
  await step.getByText("the model is overloaded").first().waitFor();
  await page.context().close();
}

async function rejecting(world) {
  const page = await world.page();
  const run = await launch(world, page, "Blue Freight");
  await page.getByRole("link", { name: /Approvals/ }).click();
  const question = page.getByRole("article").filter({ hasText: "Blue Freight" });
  await question.getByRole("button", { name: "Reject" }).click();
  await question.getByRole("alert").waitFor();
  must(
    (await world.api(`/api/v1/runs/${run}`)).approvals[0].status === "pending",
    "rejected without a reason",
  );
  await question.getByLabel(/Comment/).fill("They were late twice.");
  await question.getByRole("button", { name: "Reject" }).click();
  await question.waitFor({ state: "detached" });
  const { approvals } = await world.api(`/api/v1/runs/${run}`);
  must(
    approvals[0].status === "rejected" && approvals[0].comment === "They were late twice.",
    "the reason is kept",
  );
  await page.context().close();
}

/** The ids of the events that a page lists, from its first to its last. */
async function listed(page) {
  const region = page.getByRole("region", { name: "Events" });
  const ids = new Set();
  let height = 1;
  for (let top = 0; top < height; top += 300) {
    height = await region.evaluate((box, top) => {
      box.scrollTop = top;
      return box.scrollHeight;
    }, top);
    await page.waitForTimeout(40);
    for (const text of await region.locator("li .event > :first-child").allInnerTexts())
      ids.add(Number(text));
  }
  const count = await region.locator("li").first().getAttribute("aria-setsize");
  return { ids: [...ids].sort((one, other) => one - other), count: Number(count) };
}

async function losingTheServer(world) {
  const page = await world.page();
  const { run_id: run } = await world.api("/api/v1/workflows/daily-brief/runs", { args: {} });
  await page.goto(`${world.origin}/runs/${run}?view=events&step=write`);
  await page.getByText("node.stream.delta").first().waitFor();
  await page.getByLabel("Text so far").waitFor();
  await world.kill("SIGKILL");
  await page.getByText("The server does not respond.").waitFor();
  await world.serve();
  await page.getByText("The server does not respond.").waitFor({ state: "detached" });
  // The attempt is sent again under the next number, and its text begins anew.
  const said = () => page.getByLabel("Text so far").allInnerTexts();
  const text = await until("the step speaks again", async () => {
    const [text] = await said();
    return text?.includes("renewed its contract") && text;
  });
  must(text.split("Northwind Paper").length === 2, `the page says: ${text}`);
  await page.locator(".run-head .badge", { hasText: "completed" }).waitFor();
  const { last_event_id: last } = await world.api(`/api/v1/runs/${run}`);
  const { ids, count } = await listed(page);
  must(count === last, `the journal has ${last} events, the page ${count}`);
  must(ids.length === last && ids.every((id, at) => id === at + 1), `the page lists ${ids}`);
  // A tab that is opened later sees the same.
  const other = await page.context().newPage();
  await other.goto(`${world.origin}/runs/${run}?view=events`);
  await until("the other tab has it all", async () => (await listed(other)).count === last);
  await page.context().close();
}

async function changingTheCourse(world) {
  const page = await world.page();
  const document =
    "name: course\nsteps:\n  - {id: first, command: Go.}\n  - {id: breaks, depends_on: [first], command: Go.}\n";
  const run = await world.start(document);
  await world.status(run, "failed");
  await page.goto(`${world.origin}/runs/${run}`);
  await page.getByText("the disk is full").first().waitFor();
  must(
    (await page.getByRole("button", { name: "Pause" }).count()) === 0,
    "what ended cannot be paused",
  );
  await page.getByRole("button", { name: "Restart…" }).click();
  await page.getByText("Runs again: breaks").waitFor();
  await page.getByRole("button", { name: "Start the new run" }).click();
  await until(
    "the page is at the new run",
    () => !page.url().includes(run) && page.url().includes("/runs/run_"),
  );
  await page.getByText("restart of").waitFor();
  // What was done is not done again.
  const again = page.url().match(/run_\w+/)[0];
  await world.status(again, "failed");
  const { node_results: nodes } = await world.api(`/api/v1/runs/${again}/state`);
  must(
    nodes[0].status === "completed" && nodes[0].dispatches === 0,
    "the first step was done again",
  );
  await page.locator(".run-head .badge", { hasText: "failed" }).waitFor();
  await page.getByRole("button", { name: "Go back…" }).click();
  await page.getByLabel("Start of the run").check();
  await page.getByText("Runs again: breaks").waitFor();
  await page.getByRole("button", { name: "Go back", exact: true }).click();
  await page.getByRole("tab", { name: "Events" }).click();
  await page.getByText("node.invalidated").first().waitFor();
  await until("the step is done again", async () => {
    const state = await world.api(`/api/v1/runs/${again}/state`);
    return state.status === "failed" && state.node_results[1].generation > 0;
  });
  await page.locator(".run-head .badge", { hasText: "failed" }).waitFor();
  await page.getByRole("button", { name: "Retry", exact: true }).click();
  await until(
    "it is tried again",
    async () => (await world.api(`/api/v1/runs/${again}/state`)).node_results[1].generation > 1,
  );

  const held = await world.start(
    "name: held\nsteps:\n  - {id: ask, approval: required}\n  - {id: after, depends_on: [ask], command: Go.}\n",
  );
  await world.status(held, "paused");
  await page.goto(`${world.origin}/runs/${held}`);
  await page.getByRole("button", { name: "Cancel…" }).click();
  await page.getByLabel("Reason (recorded in the journal)").fill("not needed");
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await page.locator(".run-head .badge", { hasText: "cancelled" }).waitFor();

  const { run_id: slow } = await world.api("/api/v1/workflows/daily-brief/runs", { args: {} });
  await page.goto(`${world.origin}/runs/${slow}`);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.locator(".run-head .badge", { hasText: "completed" }).waitFor();
  await page.context().close();
}

async function roles(world) {
  const token = async (role) =>
    (await world.api("/api/v1/tokens", { principal: role, roles: [role] })).token;
  const run = await world.start("name: roles\nsteps:\n  - {id: ask, approval: required}\n");
  await world.status(run, "paused");
  const viewer = await world.page({ token: await token("viewer") });
  must(
    (await viewer.getByRole("link", { name: "Start a workflow" }).count()) === 0,
    "a viewer is offered to start",
  );
  await viewer.goto(`${world.origin}/runs/${run}`);
  await viewer.locator(".run-head .badge", { hasText: "paused" }).waitFor();
  for (const name of ["Pause", "Cancel…", "Go back…", "Restart…"]) {
    must((await viewer.getByRole("button", { name }).count()) === 0, `a viewer is offered ${name}`);
  }
  await viewer.goto(`${world.origin}/workflows/daily-brief`);
  await viewer.getByText("Your role cannot start runs.").waitFor();
  await viewer.goto(`${world.origin}/approvals`);
  await viewer.getByText("Your role cannot decide approvals.").first().waitFor();
  await viewer.context().close();
  const approver = await world.page({ token: await token("approver") });
  await approver.goto(`${world.origin}/approvals`);
  await approver.getByRole("button", { name: "Approve" }).first().waitFor();
  await approver.goto(`${world.origin}/runs/${run}`);
  await approver.locator(".run-head .badge", { hasText: "paused" }).waitFor();
  must(
    (await approver.getByRole("button", { name: "Cancel…" }).count()) === 0,
    "an approver is offered to cancel",
  );
  await approver.context().close();
}

const away = (world) => awayForAWhile(world, listed);
const TESTS = {
  signingIn,
  approving,
  rejecting,
  losingTheServer,
  away,
  changingTheCourse,
  branching,
  provenance,
  packet,
  failing,
  waiting,
  media,
  dryRun,
  editing,
  keyboard,
  roles,
  hostile,
  ...rooms.TESTS,
  looks,
};
/** Only these, while one works on them: ONLY=editing,looks. */
const only = process.env.ONLY?.split(",") ?? Object.keys(TESTS);

const world = await World.open(binary, chromium);
let failed = false;
try {
  if (pictures) mkdirSync(pictures, { recursive: true });
  world.picture = pictures ? (name) => join(pictures, `${name}.png`) : () => null;
  for (const [name, test] of Object.entries(TESTS)) {
    if (!only.includes(name)) continue;
    const began = Date.now();
    await test(world);
    must(world.complaints.length === 0, `pages complained:\n${world.complaints.join("\n")}`);
    console.log(`${name}: ${((Date.now() - began) / 1000).toFixed(1)} s`);
  }
} catch (error) {
  console.error(error);
  failed = true;
} finally {
  await world.close();
}
process.exit(failed ? 1 : 0);
