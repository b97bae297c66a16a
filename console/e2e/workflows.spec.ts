// Workflows: dry runs, and the document editor.
import type { Schemas } from "../src/api/client";
import { expect, test } from "./fixtures";

test("a dry run shows the expected decisions and starts nothing", async ({ server, signIn }) => {
  const page = await signIn();
  const count = async () =>
    (await server.get<unknown[]>("/api/v1/runs?workflow=vendor-review&limit=500")).length;
  const before = await count();
  await page.goto("/workflows/vendor-review");
  const form = page.locator("form", { hasText: "Gateway demo" });
  await expect(form.getByText("healthy")).toBeVisible();
  await page.getByRole("button", { name: "Dry run" }).click();
  await expect(page.getByText("This field is required.")).toBeVisible();
  await page.getByLabel(/^vendor/).fill("Northwind Paper");
  await page.getByRole("button", { name: "Dry run" }).click();
  const card = page.getByRole("region", { name: "Dry run" });
  await expect(card.getByText(/would be sent/).first()).toBeVisible();
  await expect(card.getByText(/would need approval/).first()).toBeVisible();
  await expect(card.getByText("healthy", { exact: true })).toBeVisible();
  await expect(page.locator(".step", { hasText: "would be sent" }).first()).toBeVisible();
  await card.getByText("classify").first().click();
  await expect(card.getByText("gateway health").first()).toBeVisible();
  expect(await count(), "the dry run started a run").toBe(before);
  // Changed arguments invalidate the result.
  await page.getByLabel(/^vendor/).fill("Blue Freight");
  await expect(card).toHaveCount(0);
});

const DOCUMENT = `name: written
version: 1
description: Written in the console
steps:
  - {id: first, command: Go.}
  - {id: second, depends_on: [first], command: Go.}
`;

test("a document is validated while it is typed, and saved as a version", async ({
  server,
  signIn,
}) => {
  const page = await signIn();
  await page.goto("/workflows");
  await page.getByRole("link", { name: "New workflow" }).click();
  const text = page.getByRole("textbox", { name: "Document" });
  const valid = page.getByText("The document is valid.");
  await expect(valid).toBeVisible();
  const save = page.getByRole("button", { name: "Save as a new version" });
  await text.fill(DOCUMENT.replace("[first]", "[frist]"));
  const problems = page.getByRole("region", { name: "Problems" });
  await expect(problems.getByText(/did you mean|frist/).first()).toBeVisible();
  await expect(save).toBeDisabled();
  await problems
    .getByRole("button", { name: /line 6/ })
    .first()
    .click();
  await expect(text).toBeFocused();
  const line = await text.evaluate(
    (area: HTMLTextAreaElement) => area.value.slice(0, area.selectionStart).split("\n").length,
  );
  expect(line, "the caret is at the problem").toBe(6);

  await text.fill(DOCUMENT.replace("{id: second", "{id: "));
  await text.evaluate((area: HTMLTextAreaElement) => {
    const at = area.value.indexOf("{id: ,") + "{id: ".length;
    area.setSelectionRange(at, at);
  });
  await page.keyboard.type("second");
  await expect(valid).toBeVisible();
  await expect(page.locator(".step", { hasText: "second" })).toBeVisible();
  await save.click();
  await expect(page.getByRole("heading", { name: "written" })).toBeVisible();
  const stored = await server.get<Schemas["VersionShown"]>("/api/v1/workflows/written");
  expect(stored.document).toBe(DOCUMENT);

  // A version never changes: another text with the same number is refused, and the text stays.
  await page.getByRole("link", { name: "Edit the document" }).click();
  await text.fill(DOCUMENT.replace("in the console", "again"));
  await expect(valid).toBeVisible();
  await save.click();
  await expect(page.getByRole("alert")).toBeVisible();
  expect(await text.inputValue()).toContain("again");
  await text.fill(DOCUMENT.replace("version: 1", "version: 2"));
  await expect(valid).toBeVisible();
  await save.click();
  await expect(page.getByText("v2")).toBeVisible();

  const viewer = await signIn({ token: await server.createToken("reader", "viewer") });
  await viewer.goto("/workflows/written?edit=yes");
  await expect(viewer.getByText("Your role cannot save workflows.")).toBeVisible();
  await expect(viewer.getByRole("button", { name: /Save/ })).toHaveCount(0);
  await viewer.goto("/workflows");
  await expect(viewer.getByRole("heading", { name: "Workflows" })).toBeVisible();
  await expect(viewer.getByRole("link", { name: "New workflow" })).toHaveCount(0);
});
