// Workflows: tried before they are started, written and checked as one types.
import { must, until } from "./world.mjs";

/** What the gates would say, before anything is started. */
export async function dryRun(world) {
  const page = await world.page();
  const count = async () =>
    (await world.api("/api/v1/runs?workflow=vendor-review&limit=500")).length;
  const before = await count();
  await page.goto(`${world.origin}/workflows/vendor-review`);
  await page.locator("form", { hasText: "Gateway demo" }).getByText("healthy").waitFor();
  await page.getByRole("button", { name: "Dry run" }).click();
  await page.getByText("This field is required.").waitFor();
  await page.getByLabel(/^vendor/).fill("Northwind Paper");
  await page.getByRole("button", { name: "Dry run" }).click();
  const card = page.getByRole("region", { name: "Dry run" });
  await card
    .getByText(/would be sent/)
    .first()
    .waitFor();
  await card
    .getByText(/would need approval/)
    .first()
    .waitFor();
  await card.getByText("healthy", { exact: true }).waitFor();
  await page.locator(".step", { hasText: "would be sent" }).first().waitFor();
  await card.getByText("classify").first().click();
  await card.getByText("gateway health").first().waitFor();
  must((await count()) === before, "a dry run started something");
  // Other arguments are another run: what was foreseen counts no more.
  await page.getByLabel(/^vendor/).fill("Blue Freight");
  await card.waitFor({ state: "detached" });
  await page.context().close();
}

const DOCUMENT = `name: written
version: 1
description: Written in the console
steps:
  - {id: first, command: Go.}
  - {id: second, depends_on: [first], command: Go.}
`;

/** A document is checked as it is typed, its problems have places, and it is saved where a role may. */
export async function editing(world) {
  const page = await world.page();
  await page.goto(`${world.origin}/workflows`);
  await page.getByRole("link", { name: "New workflow" }).click();
  const text = page.getByRole("textbox", { name: "Document" });
  await page.getByText("The document is valid.").waitFor();
  const save = page.getByRole("button", { name: "Save as a new version" });
  await text.fill(DOCUMENT.replace("[first]", "[frist]"));
  const problems = page.getByRole("region", { name: "Problems" });
  await problems
    .getByText(/did you mean|frist/)
    .first()
    .waitFor();
  must(await save.isDisabled(), "what has problems could be saved");
  await problems
    .getByRole("button", { name: /line 6/ })
    .first()
    .click();
  const caret = await text.evaluate((box) => [
    box === document.activeElement,
    box.value.slice(0, box.selectionStart).split("\n").length,
  ]);
  must(caret[0] && caret[1] === 6, `the caret is at ${caret}`);
  // Typed by hand, key by key, as people do.
  await text.fill(DOCUMENT.replace("{id: second", "{id: "));
  await text.evaluate((box) =>
    box.setSelectionRange(box.value.indexOf("{id: ,") + 5, box.value.indexOf("{id: ,") + 5),
  );
  await page.keyboard.type("second");
  await page.getByText("The document is valid.").waitFor();
  await page.locator(".step", { hasText: "second" }).waitFor();
  await save.click();
  await page.getByRole("heading", { name: "written" }).waitFor();
  must(
    (await world.api("/api/v1/workflows/written")).document === DOCUMENT,
    "the document is kept as it was written",
  );
  // A version never changes: the same number with other text is refused, and the text stays.
  await page.getByRole("link", { name: "Edit the document" }).click();
  await text.fill(DOCUMENT.replace("in the console", "again"));
  await page.getByText("The document is valid.").waitFor();
  await save.click();
  await page.getByRole("alert").waitFor();
  must((await text.inputValue()).includes("again"), "what was typed is lost");
  await text.fill(DOCUMENT.replace("version: 1", "version: 2"));
  await page.getByText("The document is valid.").waitFor();
  await save.click();
  await page.getByText("v2").waitFor();
  const { token } = await world.api("/api/v1/tokens", { principal: "reader", roles: ["viewer"] });
  const viewer = await world.page({ token });
  await viewer.goto(`${world.origin}/workflows/written?edit=yes`);
  await viewer.getByText("Your role cannot save workflows.").waitFor();
  must(
    (await viewer.getByRole("button", { name: /Save/ }).count()) === 0,
    "a viewer is offered to save",
  );
  await viewer.goto(`${world.origin}/workflows`);
  await viewer.getByRole("heading", { name: "Workflows" }).waitFor();
  must(
    (await viewer.getByRole("link", { name: "New workflow" }).count()) === 0,
    "a viewer is offered to write one",
  );
  await viewer.context().close();
  await page.context().close();
}

/** Everything of a run's page by the keyboard alone. */
export async function keyboard(world) {
  const page = await world.page();
  const { run_id: run } = await world.api("/api/v1/workflows/daily-brief/runs", { args: {} });
  await world.status(run, "completed");
  await page.goto(`${world.origin}/runs/${run}`);
  await page.locator(".react-flow__node").first().waitFor();
  const reach = async (what, wanted) =>
    until(`the keyboard reaches ${what}`, async () => {
      await page.keyboard.press("Tab");
      return page.evaluate(wanted);
    });
  await reach("a step", () => document.activeElement?.classList.contains("react-flow__node"));
  await page.keyboard.press("Enter");
  await page.getByRole("complementary").waitFor();
  await page.getByRole("button", { name: "Go back…" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("tab", { name: "Graph" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.getByRole("region", { name: "Steps over time" }).waitFor();
  await page.context().close();
}
