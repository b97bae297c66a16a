// Governance: policies with back-tests, budgets, agents, gateways and the hold switch.
import type { Schemas } from "../src/api/client";
import { expect, test } from "./fixtures";
import { ASK_COUNSEL } from "./seed";

test("a changed policy set is back-tested before it is stored as shadow", async ({
  server,
  signIn,
}) => {
  const page = await signIn();
  const run = await server.startWorkflow("daily-brief");
  await server.waitForStatus(run, "completed");
  const sets = () => server.get<Schemas["SetsShown"]>("/api/v1/policy-sets");
  await page.goto("/governance");
  const active = page.getByRole("region", { name: "Policies in force" });
  await expect(active.getByText("the set that Sluice ships with")).toBeVisible();
  await expect(active.getByText("default.cedar/steps")).toBeVisible();
  await active.getByText("Source of").click();
  await expect(active.getByText("The policies that Sluice ships with.")).toBeVisible();

  const trial = page.getByRole("region", { name: "Back-test" });
  const source = trial.getByLabel("Text of counsel.cedar");
  const start = trial.getByRole("button", { name: "Run the back-test" });
  await trial.getByLabel("Name of a new file").fill("counsel.cedar");
  await trial.getByRole("button", { name: "Add a file" }).click();
  await source.fill("forbid (nobody);");
  await start.click();
  await expect(trial.getByRole("alert").getByText("the policies cannot be used")).toBeVisible();
  await source.fill(ASK_COUNSEL);
  await start.click();
  await expect(trial.getByText(/\d+ of \d+ decisions would differ/)).toBeVisible();
  const row = trial.locator("tr", { hasText: run.slice(0, 16) }).first();
  await expect(row.getByText("+counsel.cedar/ask-counsel")).toBeVisible();
  expect(await row.locator(".badge").allInnerTexts()).toEqual(["allow", "hold"]);
  expect((await sets()).active.origin, "a back-test stored something").toBe("shipped");

  // Only the tested text can be stored.
  await source.fill(`${ASK_COUNSEL}\n// more\n`);
  await expect(trial.getByText("run the back-test again")).toBeVisible();
  await expect(trial.getByRole("button", { name: "Store as shadow…" })).toHaveCount(0);
  await start.click();
  await trial.getByRole("button", { name: "Store as shadow…" }).click();
  await page.getByRole("button", { name: "Store as shadow", exact: true }).click();
  const shadow = page.getByRole("region", { name: "Policies in shadow" });
  await expect(shadow.getByText("counsel.cedar/ask-counsel")).toBeVisible();
  const stored = await sets();
  expect(stored.active.origin).toBe("shipped");
  expect(stored.shadow?.files).toHaveLength(2);

  await page.goto("/governance/policies");
  await trial.getByRole("button", { name: "Load the shadow set" }).click();
  await start.click();
  await trial
    .locator("tr", { hasText: run.slice(0, 16) })
    .first()
    .getByRole("link")
    .click();
  await page.waitForURL(new RegExp(run));
});

test("a budget shows spending as it happens, and its cap can be changed", async ({
  server,
  signIn,
}) => {
  await server.put("budgets/small", {
    scope: "workflow",
    of: "daily-brief",
    period: "daily",
    amount_cents: 2,
  });
  const page = await signIn();
  await page.goto("/governance/budgets");
  const card = page.getByRole("article", { name: "Budget small" });
  await expect(card.getByRole("img", { name: /\$0 spent/ })).toBeVisible();
  const box = await card.boundingBox();
  const run = await server.startWorkflow("daily-brief");
  await server.waitForStatus(run, "completed");
  await expect(card.getByRole("img", { name: /\$0\.0035 spent/ })).toBeVisible();
  await expect(card.getByRole("img", { name: /from \$0\.0200 to \$0\.0165/ })).toBeVisible();
  expect(await card.boundingBox(), "the layout is stable").toEqual(box);
  await card.getByRole("button", { name: "Change the cap…" }).click();
  await page.getByLabel(/Dollars/).fill("a lot");
  await page.getByRole("button", { name: "Set the cap" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
  await page.getByLabel(/Dollars/).fill("0.004");
  await page.getByRole("button", { name: "Set the cap" }).click();
  await expect(card.getByText("over 80 %")).toBeVisible();
  const budget = await server.get<{ amount_cents: number }>("/api/v1/budgets/small");
  expect(budget.amount_cents).toBe(0.4);
});

test("agents and gateways can be paused, and everything can be put on hold", async ({
  server,
  signIn,
}) => {
  const page = await signIn();
  await page.goto("/governance/agents");
  const row = page.getByRole("row", { name: /counsel/ });
  await expect(row.getByRole("img", { name: "trust 7 of 10" })).toBeVisible();
  await page.getByRole("button", { name: "Pause counsel" }).click();
  await expect(row.getByText("paused")).toBeVisible();
  const agent = await server.get<{ status: string }>("/api/v1/agents/counsel");
  expect(agent.status).toBe("paused");
  await page.getByRole("button", { name: "Resume counsel" }).click();
  await expect(row.getByText("idle")).toBeVisible();

  await page.getByRole("link", { name: "Gateways" }).click();
  const gateway = page.getByRole("article", { name: "Gateway demo" });
  await expect(gateway.getByText("healthy")).toBeVisible();
  await page.getByRole("button", { name: "Pause demo" }).click();
  await expect(gateway.getByText("paused")).toBeVisible();
  await page.getByRole("button", { name: "Resume demo" }).click();
  await expect(page.getByRole("button", { name: "Pause demo" })).toBeVisible();

  const hold = page.getByRole("button", { name: "Hold everything…" });
  await hold.click();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await hold.click();
  await page.getByRole("button", { name: "Hold everything", exact: true }).click();
  await expect(page.getByText("Everything is on hold")).toBeVisible();
  await page.getByRole("button", { name: "Release the hold…" }).click();
  await page.getByRole("button", { name: "Release the hold", exact: true }).click();
  await expect(hold).toBeVisible();
});
