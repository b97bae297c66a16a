// Pages whose request fails or returns nothing.
import { expect, test } from "./fixtures";

const REQUESTS: Readonly<Record<string, { url: string; empty?: string }>> = {
  "/governance/policies": { url: "**/api/v1/policy-sets" },
  "/governance/budgets": { url: "**/api/v1/budgets", empty: "No budgets" },
  "/governance/agents": { url: "**/api/v1/agents", empty: "No agents yet" },
  "/governance/gateways": { url: "**/api/v1/gateways", empty: "No gateways yet" },
  "/audit": { url: "**/api/v1/audit?*", empty: "No entries yet" },
  "/cost": { url: "**/api/v1/cost?*", empty: "No costs in this time range" },
  "/settings": { url: "**/api/v1/tokens", empty: "No tokens" },
};

const PROBLEM = {
  title: "the store is on fire",
  code: "store_unavailable",
  detail: "contact the operator",
  status: 400,
};

test("pages show errors and empty results", async ({ signIn }) => {
  const page = await signIn();
  for (const [path, { url, empty }] of Object.entries(REQUESTS)) {
    await page.route(url, (route) =>
      route.fulfill({
        status: 400,
        contentType: "application/problem+json",
        body: JSON.stringify(PROBLEM),
      }),
    );
    await page.goto(path);
    await expect(page.getByRole("alert").getByText("the store is on fire")).toBeVisible();
    await page.unroute(url);
    if (empty === undefined) continue;
    await page.route(url, (route) =>
      route.fulfill({ json: { data: [], meta: { request_id: "req_0" } } }),
    );
    await page.goto(path);
    await expect(page.getByText(empty)).toBeVisible();
    await page.unroute(url);
  }
});
