// The rooms of those who operate: governance, the audit, costs, settings; and bounds that approvers tighten.
import { must, until } from "./world.mjs";

/** Where they are. */
export const ROOMS = {
  policies: "/governance/policies",
  budgets: "/governance/budgets",
  agents: "/governance/agents",
  gateways: "/governance/gateways",
  audit: "/audit",
  cost: "/cost",
  settings: "/settings",
};

const PERMITS = "permit (principal, action, resource);\n";
const ASK =
  '@id("ask-counsel")\n@action("require_approval")\n@category("guardrail")\n@description("Counsel costs more.")\nforbid (principal == Agent::"counsel", action == Action::"dispatch_step", resource);\n';

/** A budget that a few briefs use up. */
export const BRIEFS = { scope: "workflow", of: "daily-brief", period: "daily", amount_cents: 1.2 };

/** Makes a world in which every room has something to show; answers a question about bounded work. */
export async function furnish(world) {
  await world.put("policies/default.cedar", { text: PERMITS });
  await world.put("policies/counsel.cedar", { text: ASK });
  await world.put("policies/shadow%2Fstrict.cedar", {
    set: "shadow",
    text: `${PERMITS}${ASK.replace("require_approval", "block")}`,
  });
  await world.put("budgets/briefs", BRIEFS);
  await world.put("budgets/counsel", {
    scope: "agent",
    of: "counsel",
    period: "weekly",
    amount_cents: 500,
  });
  await world.put("gateways/away", {
    provider: "http",
    environment: "production",
    url: "https://gateway.example.invalid",
    capabilities: ["text"],
    min_trust_level: 6,
  });
  await world.put("agents/intern", {
    name: "The intern",
    trust_level: 2,
    phase: "poc",
    capabilities: ["text"],
    budget_monthly_cents: 200,
    rate: { limit: 5, window_s: 60 },
  });
  const { run_id: run } = await world.api("/api/v1/workflows/daily-brief/runs", { args: {} });
  await world.status(run, "paused");
  // The server makes decisions by the first set again, so that other tests are not held.
  await world.put("policies/counsel.cedar", { text: ASK.replace("require_approval", "log") });
  return (await world.api(`/api/v1/runs/${run}`)).approvals[0].approval_id;
}

async function policies(world) {
  const page = await world.page();
  const { run_id: run } = await world.api("/api/v1/workflows/daily-brief/runs", { args: {} });
  await world.status(run, "completed");
  await page.goto(`${world.origin}/governance`);
  const force = page.getByRole("region", { name: "Policies in force" });
  await force.getByText("the set that Sluice ships with").waitFor();
  await force.getByText("default.cedar/steps").waitFor();
  await force.getByText("Source of").click();
  await force.getByText("The policies that Sluice ships with.").waitFor();
  const trial = page.getByRole("region", { name: "Back-test" });
  await trial.getByLabel("Name of a new file").fill("counsel.cedar");
  await trial.getByRole("button", { name: "Add a file" }).click();
  await trial.getByLabel("Text of counsel.cedar").fill("forbid (nobody);");
  await trial.getByRole("button", { name: "Run the back-test" }).click();
  await trial.getByRole("alert").getByText("the policies cannot be used").waitFor();
  await trial.getByLabel("Text of counsel.cedar").fill(ASK);
  await trial.getByRole("button", { name: "Run the back-test" }).click();
  await trial.getByText(/\d+ of \d+ decisions would differ/).waitFor();
  const row = trial.locator("tr", { hasText: run.slice(0, 16) }).first();
  await row.getByText("+counsel.cedar/ask-counsel").waitFor();
  must(
    (await row.locator(".badge").allInnerTexts()).join() === "allow,hold",
    "what it was and would be",
  );
  // Nothing changed by looking, and what was not tried is not stored.
  must(
    (await world.api("/api/v1/policy-sets")).active.origin === "shipped",
    "a trial stored something",
  );
  await trial.getByLabel("Text of counsel.cedar").press("End");
  await trial.getByLabel("Text of counsel.cedar").fill(`${ASK}\n// more\n`);
  await trial.getByText("run the back-test again").waitFor();
  must(
    (await trial.getByRole("button", { name: "Store as shadow…" }).count()) === 0,
    "what was not tried can be stored",
  );
  await trial.getByRole("button", { name: "Run the back-test" }).click();
  await trial.getByRole("button", { name: "Store as shadow…" }).click();
  await page.getByRole("button", { name: "Store as shadow", exact: true }).click();
  await page
    .getByRole("region", { name: "Policies in shadow" })
    .getByText("counsel.cedar/ask-counsel")
    .waitFor();
  const { active, shadow } = await world.api("/api/v1/policy-sets");
  must(
    active.origin === "shipped" && shadow.files.length === 2,
    "the set in force is another, or the shadow is not whole",
  );
  await page.goto(`${world.origin}/governance/policies`);
  await trial.getByRole("button", { name: "Load the shadow set" }).click();
  await trial.getByRole("button", { name: "Run the back-test" }).click();
  await trial
    .locator("tr", { hasText: run.slice(0, 16) })
    .first()
    .getByRole("link")
    .click();
  await page.waitForURL(new RegExp(run));
  await page.context().close();
}

async function budgets(world) {
  await world.put("budgets/small", {
    scope: "workflow",
    of: "daily-brief",
    period: "daily",
    amount_cents: 2,
  });
  const page = await world.page();
  await page.goto(`${world.origin}/governance/budgets`);
  const card = page.getByRole("article", { name: "Budget small" });
  await card.getByRole("img", { name: /\$0 spent/ }).waitFor();
  const box = await card.boundingBox();
  const { run_id: run } = await world.api("/api/v1/workflows/daily-brief/runs", { args: {} });
  await world.status(run, "completed");
  // What was spent shows by itself, and nothing moves.
  await card.getByRole("img", { name: /\$0\.0035 spent/ }).waitFor();
  await card.getByRole("img", { name: /from \$0\.0200 to \$0\.0165/ }).waitFor();
  must(JSON.stringify(await card.boundingBox()) === JSON.stringify(box), "the page jumped");
  await card.getByRole("button", { name: "Change the cap…" }).click();
  await page.getByLabel(/Dollars/).fill("a lot");
  await page.getByRole("button", { name: "Set the cap" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel(/Dollars/).fill("0.004");
  await page.getByRole("button", { name: "Set the cap" }).click();
  await card.getByText("over 80 %").waitFor();
  must((await world.api("/api/v1/budgets/small")).amount_cents === 0.4, "the cap is another");
  await world.put("budgets/small", {
    scope: "workflow",
    of: "daily-brief",
    period: "daily",
    amount_cents: 500,
  });
  await page.context().close();
}

async function agentsAndGateways(world) {
  const page = await world.page();
  await page.goto(`${world.origin}/governance/agents`);
  const row = page.getByRole("row", { name: /counsel/ });
  await row.getByRole("img", { name: "trust 7 of 10" }).waitFor();
  await page.getByRole("button", { name: "Pause counsel" }).click();
  await row.getByText("paused").waitFor();
  must((await world.api("/api/v1/agents/counsel")).status === "paused", "it is not paused");
  await page.getByRole("button", { name: "Resume counsel" }).click();
  await row.getByText("idle").waitFor();
  await page.getByRole("link", { name: "Gateways" }).click();
  const gateway = page.getByRole("article", { name: "Gateway demo" });
  await gateway.getByText("healthy").waitFor();
  await page.getByRole("button", { name: "Pause demo" }).click();
  await gateway.getByText("paused").waitFor();
  await page.getByRole("button", { name: "Resume demo" }).click();
  await page.getByRole("button", { name: "Pause demo" }).waitFor();
  // The switch for everything asks first.
  await page.getByRole("button", { name: "Hold everything…" }).click();
  await page.keyboard.press("Escape");
  must((await page.getByRole("dialog").count()) === 0, "the question stays");
  await page.getByRole("button", { name: "Hold everything…" }).click();
  await page.getByRole("button", { name: "Hold everything", exact: true }).click();
  await page.getByText("Everything is on hold").waitFor();
  await page.getByRole("button", { name: "Release the hold…" }).click();
  await page.getByRole("button", { name: "Release the hold", exact: true }).click();
  await page.getByRole("button", { name: "Hold everything…" }).waitFor();
  await page.context().close();
}

async function auditing(world) {
  const many = Array.from({ length: 30 }, (_, at) => `  - {id: s${at}, command: Go.}\n`).join("");
  await world.status(await world.start(`name: many\nsteps:\n${many}`), "completed");
  const page = await world.page();
  await page.goto(`${world.origin}/audit`);
  const facts = page.locator(".fact");
  await facts.first().waitFor();
  const chain = page.getByRole("region", { name: "Audit chain" });
  await chain.getByText(/^Seal \d+/).waitFor();
  await chain.getByRole("button", { name: "Verify everything" }).click();
  await chain.getByText("Every hash, chain and signature is valid").waitFor();
  await chain.getByText("verified", { exact: true }).waitFor();
  await chain.getByRole("button", { name: "Get the newest seal" }).click();
  await chain.getByText(/^seal \d+$/).waitFor();
  // Newest first, over pages.
  const times = async () =>
    page.locator(".fact time").evaluateAll((all) => all.map((one) => one.dateTime));
  const before = await times();
  await page.getByRole("button", { name: "Older" }).click();
  await until("an older page is there", async () => (await times()).length > before.length);
  const all = await times();
  must(
    all.every((at, place) => place === 0 || all[place - 1] >= at),
    "the newest come first",
  );
  // What happens shows as a sign, and moves nothing.
  const run = await world.start("name: audited\nsteps:\n  - {id: one, command: Go.}\n");
  await world.status(run, "completed");
  await page.getByText("New entries available.").waitFor();
  must((await times()).length === all.length, "the list moved by itself");
  await page.getByRole("button", { name: "Show the newest" }).click();
  await page.locator(".fact", { hasText: "run completed" }).first().click();
  await page.getByRole("link", { name: "only this run" }).first().click();
  const others = page.locator(".fact").filter({ hasNotText: run.slice(0, 16) });
  await until(
    "only that run",
    async () => page.url().includes(run) && (await others.count()) === 0,
  );
  await page.locator(".fact", { hasText: "run started" }).waitFor();
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download the audit packet of this run" }).click();
  must((await download).suggestedFilename() === `${run}.packet`, "the packet has another name");
  await page.getByRole("button", { name: "Verify this run" }).click();
  await chain.getByText(/of 1 run,/).waitFor();
  await page.goto(`${world.origin}/audit?category=configuration`);
  await page.locator(".fact").first().click();
  await page
    .getByText(/^Detail|"/)
    .first()
    .waitFor();
  must(
    (await page.locator(".category").allInnerTexts()).every((one) => one === "configuration"),
    "the filter lets others through",
  );
  await page.goto(`${world.origin}/audit?type=nothing_like_it`);
  await page.getByText("No entries match").waitFor();
  await page.context().close();
}

async function costs(world) {
  const page = await world.page();
  await page.goto(`${world.origin}/cost`);
  await page.getByRole("img", { name: /^Cost by day and workflow/ }).waitFor();
  await page.getByRole("link", { name: "daily-brief" }).waitFor();
  await page.getByLabel("By", { exact: true }).selectOption("model");
  await page.getByRole("img", { name: /by day and model/ }).waitFor();
  await page.getByRole("cell", { name: "demo-large" }).waitFor();
  await page.getByLabel("Time range", { exact: true }).selectOption("day");
  await page.getByRole("img", { name: /by hour and model/ }).waitFor();
  must(
    page.url().includes("by=model") && page.url().includes("span=day"),
    "the address does not say it",
  );
  await page.context().close();
}

async function settings(world) {
  const page = await world.page();
  await page.goto(`${world.origin}/settings`);
  await page.getByRole("region", { name: "Server" }).getByText("ready", { exact: true }).waitFor();
  await page.getByLabel("Dark").check();
  must(
    (await page.evaluate(() => document.documentElement.dataset.theme)) === "dark",
    "it is not dark",
  );
  await page.getByLabel("System").check();
  must(
    (await page.evaluate(() => document.documentElement.dataset.theme)) === "light",
    "it is not as the system",
  );
  await page.getByRole("button", { name: "Create a token…" }).click();
  await page.getByLabel("Principal").fill("grace");
  await page.getByRole("button", { name: "Create token" }).click();
  const secret = await page.locator(".secret code").innerText();
  must(secret.startsWith("slk_"), "no token is shown");
  await world.api("/api/v1/runs", undefined, secret);
  await page.getByRole("button", { name: "Done" }).click();
  must(!(await page.content()).includes(secret), "the secret stays in the page");
  const row = page.getByRole("row", { name: /grace/ });
  await row.getByRole("button", { name: /^Revoke/ }).click();
  await page.getByRole("button", { name: "Revoke token" }).click();
  await row.waitFor({ state: "detached" });
  const { status } = await fetch(`${world.origin}/api/v1/runs`, {
    headers: { authorization: `Bearer ${secret}` },
  });
  must(status === 401, `revoked, and yet ${status}`);
  await page.context().close();
}

async function tightening(world) {
  const approval = await furnish(world);
  const page = await world.page();
  await page.goto(`${world.origin}/approvals/${approval}`);
  await page.getByText("Tighten the constraints").click();
  await page.getByLabel(/Maximum cost/).fill("5");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("The limit of the action is lower").waitFor();
  must(
    (await world.api(`/api/v1/approvals/${approval}`)).status === "pending",
    "something wider was sent",
  );
  await page.getByLabel(/Maximum cost/).fill("0.0031");
  await page.getByLabel(/More denied tools/).fill("mail, web");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("This request is approved.").waitFor();
  const { run_id: run } = await world.api(`/api/v1/approvals/${approval}`);
  await world.status(run, "completed");
  const journal = await world.api(`/api/v1/runs/${run}/export`);
  const started = journal.events.findLast((one) => one.type === "node.started");
  must(
    started.payload.constraints.tools_deny.join() === "mail,web",
    "the bounds do not go with the step",
  );
  must(started.payload.constraints.max_cost === 310_000, "the cost is not bounded");
  await page.context().close();
}

/** What a role may not do is not offered, and what it may not see is not there. */
async function limits(world) {
  const { token } = await world.api("/api/v1/tokens", { principal: "vera", roles: ["viewer"] });
  const page = await world.page({ token });
  must(
    (await page.getByRole("link", { name: "Cost", exact: true }).count()) === 1,
    "a viewer is not offered costs",
  );
  must(
    (await page.getByRole("link", { name: "Audit", exact: true }).count()) === 0,
    "a viewer is offered the audit",
  );
  await page.goto(`${world.origin}/audit`);
  await page.getByText("Your role cannot view the audit log").waitFor();
  const offered = {
    "/governance/policies": ["Hold everything…", "Activate…", "Store as shadow…"],
    "/governance/budgets": ["Change the cap…", "Accept the overrun…"],
    "/governance/agents": [/^Pause/, /^Resume/],
    "/governance/gateways": [/^Pause/, /^Resume/],
    "/settings": ["Create a token…", /^Revoke/],
  };
  for (const [path, names] of Object.entries(offered)) {
    await page.goto(world.origin + path);
    await page.locator("main .card").first().waitFor();
    for (const name of names)
      must(
        (await page.getByRole("button", { name }).count()) === 0,
        `a viewer is offered ${name} at ${path}`,
      );
  }
  // Looking at what a set would do is for everybody who may read it.
  await page.goto(`${world.origin}/governance/policies`);
  await page.getByRole("button", { name: "Run the back-test" }).click();
  await page.getByText(/decisions would differ/).waitFor();
  await page.context().close();
}

/** What the API refuses is said, and nothing is shown that is not known; what is empty says so. */
async function troubles(world) {
  const page = await world.page();
  const asked = {
    "/governance/policies": "**/api/v1/policy-sets",
    "/governance/budgets": "**/api/v1/budgets",
    "/governance/agents": "**/api/v1/agents",
    "/governance/gateways": "**/api/v1/gateways",
    "/audit": "**/api/v1/audit?*",
    "/cost": "**/api/v1/cost?*",
    "/settings": "**/api/v1/tokens",
  };
  const empty = {
    "/governance/budgets": "No budgets",
    "/governance/agents": "No agents yet",
    "/governance/gateways": "No gateways yet",
    "/audit": "No entries yet",
    "/cost": "No costs in this time range",
    "/settings": "No tokens",
  };
  const refusal = {
    title: "the store is on fire",
    code: "store_unavailable",
    detail: "call somebody",
    status: 400,
  };
  for (const [path, url] of Object.entries(asked)) {
    await page.route(url, (route) =>
      route.fulfill({
        status: 400,
        contentType: "application/problem+json",
        body: JSON.stringify(refusal),
      }),
    );
    await page.goto(world.origin + path);
    await page.getByRole("alert").getByText("the store is on fire").waitFor();
    await page.unroute(url);
    if (!empty[path]) continue;
    await page.route(url, (route) =>
      route.fulfill({ json: { data: [], meta: { request_id: "req_0" } } }),
    );
    await page.goto(world.origin + path);
    await page.getByText(empty[path]).waitFor();
    await page.unroute(url);
  }
  await page.context().close();
}

const MARK = "<img src=x onerror='window.pwned=1'>";

/** Fields of rows that would be script, if anything took them for more than text. */
async function hostileRooms(world) {
  const dark = `${MARK}\u202edetsurt`;
  const odd = JSON.stringify(MARK.replaceAll("'", "`"));
  await world.put("policies/odd.cedar", {
    text: `// ${dark}\n@id(${odd})\n@description(${odd})\n@action("log")\nforbid (principal, action == Action::"deploy_agent", resource);\n`,
  });
  await world.put("agents/odd", {
    name: dark,
    model: dark,
    capabilities: [dark],
    tools: { allow: [dark], deny: [dark] },
  });
  await world.put("gateways/odd", {
    name: dark,
    provider: "http",
    environment: dark,
    url: "https://odd.invalid/%3Cimg%20src=x%3E",
    capabilities: [dark],
    agents: ["odd"],
  });
  await world.put("notes/odd", { text: dark });
  await world.put("budgets/odd", { scope: "workflow", of: dark, period: "total", amount_cents: 5 });
  const { token } = await world.api("/api/v1/tokens", {
    principal: MARK,
    roles: ["admin"],
    groups: [MARK],
  });
  const page = await world.page({ token });
  const places = [
    ...Object.values(ROOMS),
    `/audit?actor=${encodeURIComponent(MARK)}&run=${encodeURIComponent(MARK)}`,
    `/cost?by=${encodeURIComponent(MARK)}`,
    `/governance/${encodeURIComponent(MARK)}`,
  ];
  for (const path of places) {
    await page.goto(world.origin + path);
    await page.locator("main .card, main [role=alert], main .state").first().waitFor();
    await page
      .locator("main [role=status]", { hasText: "Loading" })
      .first()
      .waitFor({ state: "detached" });
    await page
      .locator("main summary")
      .evaluateAll((all) => all.slice(0, 40).forEach((one) => one.click()));
    await page.waitForTimeout(200);
    must((await page.evaluate(() => window.pwned)) === undefined, `a script ran at ${path}`);
    must(
      (await page.locator("img[src=x], main script").count()) === 0,
      `an element was made at ${path}`,
    );
    const text = await page.locator("main").innerText();
    must(!/[\u202a-\u202e]/.test(text), `what turns text round is not made visible at ${path}`);
  }
  await page.goto(`${world.origin}/governance/agents`);
  await page.getByText(MARK).first().waitFor();
  await page.context().close();
}

export const TESTS = {
  policies,
  budgets,
  agentsAndGateways,
  auditing,
  costs,
  settings,
  tightening,
  limits,
  troubles,
  hostileRooms,
};
