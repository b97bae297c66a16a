// Fields that would be script, if anything took them for more than text.
import { must } from "./world.mjs";

const MARK = "<img src=x onerror='window.pwned=1'>";

/** Pages that show what strangers wrote. */
export async function hostile(world) {
  const document = JSON.stringify({
    name: "hostile",
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
  });
  await world.api("/api/v1/workflows", {
    document: document.replace('"name":"hostile"', '"name":"hostile","version":1'),
  });
  const { run_id: run } = await world.api("/api/v1/workflows/hostile/runs", {
    args: { who: MARK },
    default_agent: "mock",
  });
  await world.status(run, "paused");
  const page = await world.page();
  const safe = async (where) => {
    await page.waitForTimeout(150);
    const pwned = await page.evaluate(() => window.pwned);
    must(pwned === undefined, `a script ran at ${where}`);
    const made = await page.locator("img[src=x], main script").count();
    must(made === 0, `an element was made at ${where}`);
  };
  for (const view of ["", "timeline", "events", "result"]) {
    for (const step of ["probe", "ask"]) {
      await page.goto(`${world.origin}/runs/${run}?view=${view}&step=${step}`);
      await page.locator(".inspector details").first().waitFor();
      await page
        .locator(".inspector details")
        .evaluateAll((all) => all.forEach((one) => (one.open = true)));
      await safe(`${view} of ${step}`);
    }
  }
  await page.getByText(MARK).first().waitFor();
  await page.goto(`${world.origin}/approvals`);
  const summary = await page
    .getByRole("article")
    .filter({ hasText: "hostile" })
    .locator("h2")
    .innerText();
  must(summary.includes(MARK), "the summary is shown as text");
  must(!/[\u202a-\u202e]/.test(summary), "what turns text round is made visible");
  await safe("approvals");
  await page.goto(`${world.origin}/workflows/hostile`);
  await page.getByText(MARK).first().waitFor();
  await page.getByText("Document", { exact: true }).click();
  await safe("the workflow");
  await page.getByRole("button", { name: "Dry run" }).click();
  await page.getByRole("region", { name: "Dry run" }).waitFor();
  await page
    .locator(".foreseen details")
    .evaluateAll((all) => all.forEach((one) => (one.open = true)));
  await safe("a dry run");
  await page.goto(`${world.origin}/workflows/hostile?edit=yes`);
  const text = page.getByRole("textbox", { name: "Document" });
  must((await text.inputValue()).includes(MARK), "the document is text");
  await text.fill(
    `name: "${MARK}"\n${MARK}: 1\nsteps:\n  - {id: "${MARK}", command: "${MARK}", depends_on: ["${MARK}x"]}\n`,
  );
  await page.getByRole("button", { name: /line/ }).first().waitFor();
  await safe("the editor");
  await page.goto(`${world.origin}/runs/${run}`);
  await page.getByRole("button", { name: "Go back…" }).click();
  await page.getByLabel(/In a new run/).check();
  await page.getByLabel("Start of the run").check();
  await page.getByLabel("Argument").selectOption("who");
  must((await page.getByLabel(/^who/).inputValue()).includes(MARK), "the argument is text");
  await safe("a branch");
  await page.goto(
    `${world.origin}/runs?text=${encodeURIComponent(MARK)}&workflow=${encodeURIComponent(MARK)}`,
  );
  await page.getByText("No run matches").waitFor();
  await safe("the list");
  await page.goto(`${world.origin}/runs/${encodeURIComponent(MARK)}`);
  await page.getByRole("alert").waitFor();
  await safe("a run that is none");
  await page.context().close();
}
