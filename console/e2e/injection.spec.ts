// Hostile values in every field: they stay text, and invisible characters are escaped.
import type { Page } from "@playwright/test";
import { expect, test } from "./fixtures";
import { OPERATOR_PAGES, PERMIT_ALL } from "./seed";

const MARK = "<img src=x onerror='window.pwned=1'>";
const BIDI = /[\u202a-\u202e]/;

/** Fails if a script ran or a hostile value became an element. */
async function expectInert(page: Page, where: string): Promise<void> {
  await page.waitForTimeout(150);
  expect(await page.evaluate(() => "pwned" in window), `a script ran: ${where}`).toBe(false);
  const elements = page.locator("img[src=x], main script");
  await expect(elements, `an element was created: ${where}`).toHaveCount(0);
}

const openAll = (page: Page, selector: string) =>
  page.locator(selector).evaluateAll((all) => {
    for (const one of all) (one as HTMLDetailsElement).open = true;
  });

test("hostile documents, arguments and outputs stay text", async ({ server, signIn }) => {
  const document = {
    name: "hostile",
    version: 1,
    description: MARK,
    args: { who: { type: "string", description: MARK, default: MARK } },
    steps: [
      { id: "probe", command: `Say \${args.who} ${MARK}`, outputs: {} },
      {
        id: "ask",
        depends_on: ["probe"],
        approval: { required: true, summary: `${MARK} \u202e\${probe.stdout}` },
      },
    ],
  };
  await server.post("/api/v1/workflows", { document: JSON.stringify(document) });
  const { run_id: run } = await server.post<{ run_id: string }>("/api/v1/workflows/hostile/runs", {
    args: { who: MARK },
    default_agent: "mock",
  });
  await server.waitForStatus(run, "paused");
  const page = await signIn();
  for (const view of ["", "timeline", "events", "result"]) {
    for (const step of ["probe", "ask"]) {
      await page.goto(`/runs/${run}?view=${view}&step=${step}`);
      await expect(page.locator(".inspector details").first()).toBeVisible();
      await openAll(page, ".inspector details");
      await expectInert(page, `${view} of ${step}`);
    }
  }
  await expect(page.getByText(MARK).first()).toBeVisible();

  await page.goto("/approvals");
  const card = page.getByRole("article").filter({ hasText: "hostile" });
  const summary = await card.locator("h2").innerText();
  expect(summary).toContain(MARK);
  expect(summary).not.toMatch(BIDI);
  await expectInert(page, "approvals");

  await page.goto("/workflows/hostile");
  await expect(page.getByText(MARK).first()).toBeVisible();
  await page.getByText("Document", { exact: true }).click();
  await expectInert(page, "workflow");
  await page.getByRole("button", { name: "Dry run" }).click();
  await expect(page.getByRole("region", { name: "Dry run" })).toBeVisible();
  await openAll(page, ".foreseen details");
  await expectInert(page, "dry run");

  await page.goto("/workflows/hostile?edit=yes");
  const text = page.getByRole("textbox", { name: "Document" });
  expect(await text.inputValue()).toContain(MARK);
  await text.fill(
    `name: "${MARK}"\n${MARK}: 1\nsteps:\n  - {id: "${MARK}", command: "${MARK}", depends_on: ["${MARK}x"]}\n`,
  );
  await expect(page.getByRole("button", { name: /line/ }).first()).toBeVisible();
  await expectInert(page, "editor");

  await page.goto(`/runs/${run}`);
  await page.getByRole("button", { name: "Go back…" }).click();
  await page.getByLabel(/In a new run/).check();
  await page.getByLabel("Start of the run").check();
  await page.getByLabel("Argument").selectOption("who");
  expect(await page.getByLabel(/^who/).inputValue()).toContain(MARK);
  await expectInert(page, "branch");

  const query = encodeURIComponent(MARK);
  await page.goto(`/runs?text=${query}&workflow=${query}`);
  await expect(page.getByText("No run matches")).toBeVisible();
  await expectInert(page, "list of runs");
  await page.goto(`/runs/${query}`);
  await expect(page.getByRole("alert")).toBeVisible();
  await expectInert(page, "unknown run");
});

test("hostile registry rows and query parameters stay text", async ({ server, signIn }) => {
  const value = `${MARK}\u202edetsurt`;
  const quoted = JSON.stringify(MARK.replaceAll("'", "`"));
  await server.put("policies/default.cedar", { text: PERMIT_ALL });
  await server.put("policies/odd.cedar", {
    text: `// ${value}\n@id(${quoted})\n@description(${quoted})\n@action("log")\nforbid (principal, action == Action::"deploy_agent", resource);\n`,
  });
  await server.put("agents/odd", {
    name: value,
    model: value,
    capabilities: [value],
    tools: { allow: [value], deny: [value] },
  });
  await server.put("gateways/odd", {
    name: value,
    provider: "http",
    environment: value,
    url: "https://odd.invalid/%3Cimg%20src=x%3E",
    capabilities: [value],
    agents: ["odd"],
  });
  await server.put("notes/odd", { text: value });
  await server.put("budgets/odd", {
    scope: "workflow",
    of: value,
    period: "total",
    amount_cents: 5,
  });
  const { token } = await server.post<{ token: string }>("/api/v1/tokens", {
    principal: MARK,
    roles: ["admin"],
    groups: [MARK],
  });
  const page = await signIn({ token });
  const query = encodeURIComponent(MARK);
  const paths = [
    ...Object.values(OPERATOR_PAGES),
    `/audit?actor=${query}&run=${query}`,
    `/cost?by=${query}`,
    `/governance/${query}`,
  ];
  for (const path of paths) {
    await page.goto(path);
    const content = page.locator("main .card, main [role=alert], main .state");
    await expect(content.first()).toBeVisible();
    await expect(page.locator("main [role=status]", { hasText: "Loading" })).toHaveCount(0);
    await page.locator("main summary").evaluateAll((all) => {
      for (const one of all.slice(0, 40)) (one as HTMLElement).click();
    });
    await expectInert(page, path);
    expect(await page.locator("main").innerText(), path).not.toMatch(BIDI);
  }
  await page.goto("/governance/agents");
  await expect(page.getByText(MARK).first()).toBeVisible();
});
