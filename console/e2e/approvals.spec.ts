// Approval requests: approving, rejecting, and tightening constraints.
import type { Page } from "@playwright/test";
import type { Schemas } from "../src/api/client";
import { expect, test } from "./fixtures";
import { seedGovernance } from "./seed";

/** Starts a vendor review in the browser, with invalid input first, and returns the run's id. */
async function startReview(page: Page, vendor: string): Promise<string> {
  await page.goto("/workflows");
  await page.getByRole("link", { name: /vendor-review/ }).click();
  const start = page.getByRole("button", { name: "Start", exact: true });
  await start.click();
  await expect(page.getByText("This field is required.")).toBeVisible();
  await page.getByLabel(/^vendor/).fill(vendor);
  await page.getByLabel(/^annual_spend_usd/).fill("a lot");
  await start.click();
  await expect(page.getByText("Enter a number, such as 12.5.")).toBeVisible();
  await page.getByLabel(/^annual_spend_usd/).fill("900");
  await start.click();
  await page.waitForURL(/\/runs\/run_/);
  return page.url().match(/run_\w+/)?.[0] ?? "";
}

test("an approver sees the exact action, approves, and another tab follows", async ({
  server,
  signIn,
}) => {
  const page = await signIn();
  const run = await startReview(page, "Northwind Paper");
  const { args } = await server.run(run);
  expect(args, "the number is sent as a number").toMatchObject({ annual_spend_usd: 900 });
  await page.getByRole("link", { name: "Decide" }).click();
  const approval = await server.approval(run);
  await expect(page.getByText(approval.digest ?? "", { exact: true })).toBeVisible();
  await expect(page.getByText("approver, admin")).toBeVisible();
  const action = await page.getByLabel("Exact action").innerText();
  expect(JSON.stringify(JSON.parse(action))).toBe(JSON.stringify(approval.action));

  const other = await page.context().newPage();
  await other.goto(`/runs/${run}`);
  await expect(other.locator(".run-head .badge", { hasText: "paused" })).toBeVisible();
  await page.getByLabel(/Comment/).fill("Fine with me.");
  await page.getByRole("button", { name: "Approve" }).click();
  await expect(page.getByText("This request is approved.")).toBeVisible();
  await expect(other.locator(".run-head .badge", { hasText: "completed" })).toBeVisible();
  await other.getByRole("tab", { name: "Result" }).click();
  await expect(other.getByText("we would like to go ahead").first()).toBeVisible();
  await other.getByRole("tab", { name: "Timeline" }).click();
  await other.getByRole("button", { name: /classify completed/ }).click();
  const step = other.getByRole("complementary", { name: "Step classify" });
  await expect(step.getByText("handles_personal_data")).toBeVisible();
  await step.getByText(/^Decision/).click();
  await expect(step.getByText("gateway health").first()).toBeVisible();
  await expect(step.getByText("Attempts (2)")).toBeVisible();
  await expect(step.getByText("the model is overloaded").first()).toBeVisible();
});

test("a rejection needs a reason, which is recorded", async ({ server, signIn }) => {
  const page = await signIn();
  const run = await startReview(page, "Blue Freight");
  await page.getByRole("link", { name: /Approvals/ }).click();
  const card = page.getByRole("article").filter({ hasText: "Blue Freight" });
  await card.getByRole("button", { name: "Reject" }).click();
  await expect(card.getByRole("alert")).toBeVisible();
  expect((await server.approval(run)).status, "rejected without a reason").toBe("pending");
  await card.getByLabel(/Comment/).fill("They were late twice.");
  await card.getByRole("button", { name: "Reject" }).click();
  await expect(card).toHaveCount(0);
  expect(await server.approval(run)).toMatchObject({
    status: "rejected",
    comment: "They were late twice.",
  });
});

test("an approver can tighten constraints but not widen them", async ({ server, signIn }) => {
  const approval = await seedGovernance(server);
  const page = await signIn();
  await page.goto(`/approvals/${approval}`);
  await page.getByText("Tighten the constraints").click();
  await page.getByLabel(/Maximum cost/).fill("5");
  await page.getByRole("button", { name: "Approve" }).click();
  await expect(page.getByText("The limit of the action is lower").first()).toBeVisible();
  const read = () => server.get<Schemas["Approval"]>(`/api/v1/approvals/${approval}`);
  expect((await read()).status, "a wider constraint was sent").toBe("pending");
  await page.getByLabel(/Maximum cost/).fill("0.0031");
  await page.getByLabel(/More denied tools/).fill("mail, web");
  await page.getByRole("button", { name: "Approve" }).click();
  await expect(page.getByText("This request is approved.")).toBeVisible();
  const { run_id: run } = await read();
  await server.waitForStatus(run, "completed");
  const journal = await server.get<{ events: { type: string; payload: object }[] }>(
    `/api/v1/runs/${run}/export`,
  );
  const started = journal.events.findLast((event) => event.type === "node.started");
  expect(started?.payload).toMatchObject({
    constraints: { tools_deny: ["mail", "web"], max_cost: 310_000 },
  });
});
