// Fixtures of the end-to-end tests: a server of its own for each test, and signed-in pages.
//
// INVARIANT: a test fails if one of its pages throws or logs an error.
import { type BrowserContextOptions, test as base, expect, type Page } from "@playwright/test";
import { Server, type ServerOptions } from "./server";

export { expect };

export const VIEWPORTS = {
  wide: { width: 1360, height: 860 },
  narrow: { width: 390, height: 844 },
} as const;

interface SignInOptions extends BrowserContextOptions {
  token?: string;
}

export type SignIn = (options?: SignInOptions) => Promise<Page>;

interface Fixtures {
  server: Server;
  /** Opens a page in a browser context of its own and signs in, as admin by default. */
  signIn: SignIn;
}

/** A killed server and the first session check cause these; they are not faults of the page. */
const EXPECTED = /Failed to load resource|ERR_/;

export const test = base.extend<Fixtures & ServerOptions>({
  binary: ["", { option: true }],
  answers: ["answers.yaml", { option: true }],
  databaseScript: ["", { option: true }],

  server: async ({ binary, answers, databaseScript }, use) => {
    const server = await Server.open({ binary, answers, databaseScript });
    await use(server);
    await server.close();
  },

  signIn: async ({ browser, server }, use) => {
    const errors: string[] = [];
    const signIn: SignIn = async ({ token = server.adminToken, ...options } = {}) => {
      const context = await browser.newContext({
        baseURL: server.origin,
        colorScheme: "light",
        viewport: VIEWPORTS.wide,
        ...options,
      });
      const page = await context.newPage();
      page.on("pageerror", (error) => errors.push(`${page.url()}: ${error}`));
      page.on("console", (message) => {
        if (message.type() === "error" && !EXPECTED.test(message.text())) {
          errors.push(`${page.url()}: ${message.text()}`);
        }
      });
      await page.goto("/");
      await page.getByLabel("Token").fill(token);
      await page.getByRole("button", { name: "Sign in" }).click();
      await expect(page.getByRole("heading", { name: "Runs", exact: true })).toBeVisible();
      return page;
    };
    await use(signIn);
    for (const context of browser.contexts()) await context.close();
    expect(errors).toEqual([]);
  },
});
