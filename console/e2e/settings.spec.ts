// Settings: the server's health, the theme, and API tokens.
import { expect, test } from "./fixtures";

test("the theme can be chosen, and tokens created and revoked", async ({ server, signIn }) => {
  const page = await signIn();
  await page.goto("/settings");
  const health = page.getByRole("region", { name: "Server" });
  await expect(health.getByText("ready", { exact: true })).toBeVisible();
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  await page.getByLabel("Dark").check();
  expect(await theme()).toBe("dark");
  await page.getByLabel("System").check();
  expect(await theme()).toBe("light");

  await page.getByRole("button", { name: "Create a token…" }).click();
  await page.getByLabel("Principal").fill("grace");
  await page.getByRole("button", { name: "Create token" }).click();
  const secret = await page.locator(".secret code").innerText();
  expect(secret).toMatch(/^slk_/);
  await server.get("/api/v1/runs", secret);
  await page.getByRole("button", { name: "Done" }).click();
  expect(await page.content(), "the secret stays in the page").not.toContain(secret);
  const row = page.getByRole("row", { name: /grace/ });
  await row.getByRole("button", { name: /^Revoke/ }).click();
  await page.getByRole("button", { name: "Revoke token" }).click();
  await expect(row).toHaveCount(0);
  const { status } = await fetch(`${server.origin}/api/v1/runs`, {
    headers: { authorization: `Bearer ${secret}` },
  });
  expect(status).toBe(401);
});
