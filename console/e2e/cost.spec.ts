// Costs by workflow and model.
import { expect, test } from "./fixtures";

test("costs are grouped by the chosen name and time range", async ({ server, signIn }) => {
  const run = await server.startWorkflow("daily-brief");
  await server.waitForStatus(run, "completed");
  const page = await signIn();
  await page.goto("/cost");
  await expect(page.getByRole("img", { name: /^Cost by day and workflow/ })).toBeVisible();
  await expect(page.getByRole("link", { name: "daily-brief" })).toBeVisible();
  await page.getByLabel("By", { exact: true }).selectOption("model");
  await expect(page.getByRole("img", { name: /by day and model/ })).toBeVisible();
  await expect(page.getByRole("cell", { name: "demo-large" })).toBeVisible();
  await page.getByLabel("Time range", { exact: true }).selectOption("day");
  await expect(page.getByRole("img", { name: /by hour and model/ })).toBeVisible();
  expect(page.url()).toContain("by=model");
  expect(page.url()).toContain("span=day");
});
