// Every page in both themes and two widths: no serious finding of axe, no horizontal overflow.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "@playwright/test";
import type { AxeResults } from "axe-core";
import { expect, test, VIEWPORTS } from "./fixtures";
import { openSettled, seedPages } from "./pages";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

type Interaction = (page: Page) => Promise<void>;

/** States of a page that need an interaction, by page and name. */
const STATES: Readonly<Record<string, Readonly<Record<string, Interaction>>>> = {
  workflow: {
    "dry-run": async (page) => {
      await page.getByLabel(/^vendor/).fill("Northwind Paper");
      await page.getByRole("button", { name: "Dry run" }).click();
      await page.getByRole("region", { name: "Dry run" }).scrollIntoViewIfNeeded();
    },
  },
  write: {
    problems: async (page) => {
      await page
        .getByRole("textbox", { name: "Document" })
        .fill("name: x\nsteps:\n  - {id: a, comand: Go.}\n  - {id: a}\n");
      await expect(page.getByRole("button", { name: /line/ }).first()).toBeVisible();
    },
  },
  "run-result": {
    branch: async (page) => {
      await page.getByRole("button", { name: "Go back…" }).click();
      await page.getByLabel(/In a new run/).check();
      await page.getByLabel(/after gather/).check();
      await page.getByLabel("Step with a changed output").selectOption("gather");
      await page.getByLabel("Output", { exact: true }).selectOption("items");
      await expect(page.getByText(/Runs again/)).toBeVisible();
    },
  },
  "run-failed": {
    restart: async (page) => {
      await page.getByRole("button", { name: "Restart…" }).click();
      await expect(page.getByText(/Runs again/)).toBeVisible();
    },
  },
};

/** Serious and critical findings of axe. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate<AxeResults>(
    'axe.run(document, { resultTypes: ["violations"] })',
  );
  return violations
    .filter((one) => one.impact === "serious" || one.impact === "critical")
    .map((one) => {
      const nodes = one.nodes.slice(0, 3).map((node) => {
        return `${node.html.slice(0, 160)} ${node.any[0]?.message ?? ""}`;
      });
      return `${one.id}: ${one.help}\n    ${nodes.join("\n    ")}`;
    });
}

async function check(page: Page, name: string): Promise<void> {
  expect.soft(await findings(page), name).toEqual([]);
  const overflows = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  expect.soft(overflows, `${name} is wider than the screen`).toBe(false);
}

for (const colorScheme of ["light", "dark"] as const) {
  test(`every page is accessible in the ${colorScheme} theme`, async ({ server, signIn }) => {
    test.slow();
    const paths = await seedPages(server);
    for (const [width, viewport] of Object.entries(VIEWPORTS)) {
      const page = await signIn({ colorScheme, viewport });
      for (const [name, path] of Object.entries(paths)) {
        await openSettled(page, path);
        await check(page, `${name} ${width}`);
        for (const [state, interact] of Object.entries(STATES[name] ?? {})) {
          await interact(page);
          await page.waitForTimeout(450);
          await check(page, `${name}-${state} ${width}`);
        }
      }
      await page.context().close();
    }
  });
}
