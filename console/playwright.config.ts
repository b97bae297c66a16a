// End-to-end tests of the console in Debian's Chromium.
//
//   SLUICE_BINARY=../target/debug/sluice npx playwright test --project=pages
import { resolve } from "node:path";
import { defineConfig } from "@playwright/test";
import type { ServerOptions } from "./e2e/server";

export default defineConfig<ServerOptions>({
  outputDir: "test-results",
  timeout: 120_000,
  expect: { timeout: 30_000 },
  fullyParallel: true,
  workers: 2,
  forbidOnly: true,
  reporter: "list",
  use: {
    binary: resolve(process.env.SLUICE_BINARY ?? "../target/debug/sluice"),
    actionTimeout: 30_000,
    navigationTimeout: 30_000,
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox"],
    },
  },
  projects: [
    { name: "pages", testDir: "e2e", testIgnore: ["speed/**", "screenshots/**"] },
    // Measurements share the machine with nothing else: run them with --workers=1.
    { name: "speed", testDir: "e2e/speed" },
    { name: "screenshots", testDir: "e2e/screenshots" },
  ],
});
