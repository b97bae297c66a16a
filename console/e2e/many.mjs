// The list of a hundred thousand runs: how long it takes in the page from a filter that is set to the lines it leaves.
//
//   node e2e/many.mjs BINARY CHROMIUM
//
// Prints what it measured, and fails past the limit.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { must, World } from "./world.mjs";

const LIMIT_MS = 500;

/** Runs whose workflows, initiators and statuses take turns, as rows of the store: a list reads no journal. */
const FILL = `
import sqlite3, sys, time
store = sqlite3.connect(sys.argv[1])
now = int(time.time() * 1000)
statuses = ["completed", "failed", "cancelled"]
def row(n):
    at = now - (100000 - n) * 1000
    id = ((at << 80) | n).to_bytes(16, "big")
    return (id, f"workflow-{n % 50}", statuses[n % 3], at, at + 500, 1, f"person-{n % 20}@example.org")
store.executemany("INSERT INTO run (id, workflow, status, started_at, ended_at, epoch, initiator) VALUES (?, ?, ?, ?, ?, ?, ?)",
                  (row(n) for n in range(100000)))
store.commit()
`;

/** Sets a filter as a person would, and answers when every line fits it: in milliseconds. */
const SET = async ({ label, value, cell, fits }) => {
  const field = document.querySelector(`[aria-label="${label}"]`);
  const own = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value");
  if (field.tagName === "SELECT" && ![...field.options].some((one) => one.value === value)) {
    throw new Error(`${label} does not offer ${value}`);
  }
  const began = performance.now();
  own.set.call(field, value);
  field.dispatchEvent(
    new Event(field.tagName === "SELECT" ? "change" : "input", { bubbles: true }),
  );
  const right = () => {
    const lines = [...document.querySelectorAll(".table tbody tr")];
    if (fits === null)
      return (
        lines.length === 0 &&
        document.querySelector(".table .state strong")?.textContent === "No run matches"
      );
    return lines.length > 0 && lines.every((line) => line.cells[cell].textContent.includes(fits));
  };
  while (!right()) {
    if (performance.now() - began > 20_000) throw new Error(`${label}: ${value} never came to be`);
    await new Promise(requestAnimationFrame);
  }
  return performance.now() - began;
};

const [binary, chromium] = process.argv.slice(2);
const fill = (data) => execFileSync("python3", ["-c", FILL, join(data, "sluice.db")]);
const world = await World.open(binary, chromium, { fill });
const slow = [];
try {
  const page = await world.page();
  const steps = [
    { label: "Search", value: "person-7@", cell: 3, fits: "person-7@" },
    { label: "Search", value: "PERSON-3@example", cell: 3, fits: "person-3@" },
    { label: "Status", value: "failed", cell: 0, fits: "failed" },
    { label: "Search", value: "workflow-27", cell: 1, fits: "workflow-27" },
    { label: "Search", value: "nowhere to be found", cell: 0, fits: null },
    { label: "Search", value: "", cell: 0, fits: "failed" },
    { label: "Status", value: "cancelled", cell: 0, fits: "cancelled" },
  ];
  for (const step of steps) {
    const took = await page.evaluate(SET, step);
    console.log(
      `100,000 runs, ${step.label} ${JSON.stringify(step.value)}: ${took.toFixed(0)} ms (at most ${LIMIT_MS})`,
    );
    if (took > LIMIT_MS) slow.push(`${step.label} ${step.value}: ${took.toFixed(0)} ms`);
  }
  must(slow.length === 0, slow.join("\n"));
  must(world.complaints.length === 0, world.complaints.join("\n"));
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await world.close();
}
