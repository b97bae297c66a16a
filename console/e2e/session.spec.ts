// Signing in and out, and what each role sees.
import { expect, test } from "./fixtures";

test("sign-in refuses a wrong token, keeps no secret in the page, and signs out", async ({
  browser,
  server,
}) => {
  const context = await browser.newContext({ baseURL: server.origin });
  const page = await context.newPage();
  await page.goto("/approvals");
  await page.getByLabel("Token").fill("slk_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
  await page.getByLabel("Token").fill(server.adminToken);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("heading", { name: "Approvals" })).toBeVisible();
  expect(await page.evaluate(() => document.cookie), "a script can read the cookie").toBe("");
  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain("slk_");
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByLabel("Token")).toBeVisible();
  const session = await page.request.get("/api/v1/session");
  expect(session.status()).toBe(401);
  await context.close();
});

test("a role is offered only the actions it permits", async ({ server, signIn }) => {
  const run = await server.startDocument(
    "name: roles\nsteps:\n  - {id: ask, approval: required}\n",
  );
  await server.waitForStatus(run, "paused");
  const viewer = await signIn({ token: await server.createToken("viewer", "viewer") });
  await expect(viewer.getByRole("link", { name: "Start a workflow" })).toHaveCount(0);
  await viewer.goto(`/runs/${run}`);
  await expect(viewer.locator(".run-head .badge", { hasText: "paused" })).toBeVisible();
  for (const name of ["Pause", "Cancel…", "Go back…", "Restart…"]) {
    await expect(viewer.getByRole("button", { name })).toHaveCount(0);
  }
  await viewer.goto("/workflows/daily-brief");
  await expect(viewer.getByText("Your role cannot start runs.")).toBeVisible();
  await viewer.goto("/approvals");
  await expect(viewer.getByText("Your role cannot decide approvals.").first()).toBeVisible();

  const approver = await signIn({ token: await server.createToken("approver", "approver") });
  await approver.goto("/approvals");
  await expect(approver.getByRole("button", { name: "Approve" }).first()).toBeVisible();
  await approver.goto(`/runs/${run}`);
  await expect(approver.locator(".run-head .badge", { hasText: "paused" })).toBeVisible();
  await expect(approver.getByRole("button", { name: "Cancel…" })).toHaveCount(0);
});

test("pages and actions that a viewer may not use are hidden", async ({ server, signIn }) => {
  const page = await signIn({ token: await server.createToken("vera", "viewer") });
  await expect(page.getByRole("link", { name: "Cost", exact: true })).toHaveCount(1);
  await expect(page.getByRole("link", { name: "Audit", exact: true })).toHaveCount(0);
  await page.goto("/audit");
  await expect(page.getByText("Your role cannot view the audit log")).toBeVisible();
  const hidden: Record<string, (string | RegExp)[]> = {
    "/governance/policies": ["Hold everything…", "Activate…", "Store as shadow…"],
    "/governance/budgets": ["Change the cap…", "Accept the overrun…"],
    "/governance/agents": [/^Pause/, /^Resume/],
    "/governance/gateways": [/^Pause/, /^Resume/],
    "/settings": ["Create a token…", /^Revoke/],
  };
  for (const [path, names] of Object.entries(hidden)) {
    await page.goto(path);
    await expect(page.locator("main .card").first()).toBeVisible();
    for (const name of names) await expect(page.getByRole("button", { name })).toHaveCount(0);
  }
  // A back-test changes nothing, so everyone who may read policies may run one.
  await page.goto("/governance/policies");
  await page.getByRole("button", { name: "Run the back-test" }).click();
  await expect(page.getByText(/decisions would differ/)).toBeVisible();
});
