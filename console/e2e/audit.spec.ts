// The audit log: verification, paging, filters and packets.
import { expect, test } from "./fixtures";

test("the audit log can be verified, paged, filtered and downloaded", async ({
  server,
  signIn,
}) => {
  const steps = Array.from({ length: 30 }, (_, at) => `  - {id: s${at}, command: Go.}\n`).join("");
  const many = await server.startDocument(`name: many\nsteps:\n${steps}`);
  await server.waitForStatus(many, "completed");
  const page = await signIn();
  await page.goto("/audit");
  await expect(page.locator(".fact").first()).toBeVisible();
  const chain = page.getByRole("region", { name: "Audit chain" });
  await expect(chain.getByText(/^Seal \d+/)).toBeVisible();
  await chain.getByRole("button", { name: "Verify everything" }).click();
  await expect(chain.getByText("Every hash, chain and signature is valid")).toBeVisible();
  await expect(chain.getByText("verified", { exact: true })).toBeVisible();
  await chain.getByRole("button", { name: "Get the newest seal" }).click();
  await expect(chain.getByText(/^seal \d+$/)).toBeVisible();

  const times = () =>
    page
      .locator(".fact time")
      .evaluateAll((all) => all.map((one) => (one as HTMLTimeElement).dateTime));
  const before = await times();
  await page.getByRole("button", { name: "Older" }).click();
  await expect.poll(async () => (await times()).length).toBeGreaterThan(before.length);
  const all = await times();
  expect(all, "newest first").toEqual(all.toSorted().reverse());

  // New entries are announced, and do not move the list.
  const run = await server.startDocument("name: audited\nsteps:\n  - {id: one, command: Go.}\n");
  await server.waitForStatus(run, "completed");
  await expect(page.getByText("New entries available.")).toBeVisible();
  expect(await times()).toHaveLength(all.length);
  await page.getByRole("button", { name: "Show the newest" }).click();
  await page.locator(".fact", { hasText: "run completed" }).first().click();
  await page.getByRole("link", { name: "only this run" }).first().click();
  await page.waitForURL(new RegExp(run));
  await expect(page.locator(".fact").filter({ hasNotText: run.slice(0, 16) })).toHaveCount(0);
  await expect(page.locator(".fact", { hasText: "run started" })).toBeVisible();
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download the audit packet of this run" }).click();
  expect((await download).suggestedFilename()).toBe(`${run}.packet`);
  await page.getByRole("button", { name: "Verify this run" }).click();
  await expect(chain.getByText(/of 1 run,/)).toBeVisible();

  await page.goto("/audit?category=configuration");
  await page.locator(".fact").first().click();
  await expect(page.getByText(/^Detail|"/).first()).toBeVisible();
  const categories = await page.locator(".category").allInnerTexts();
  expect(categories.filter((one) => one !== "configuration")).toEqual([]);
  await page.goto("/audit?type=nothing_like_it");
  await expect(page.getByText("No entries match")).toBeVisible();
});
