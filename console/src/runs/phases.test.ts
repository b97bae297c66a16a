import { expect, test } from "vitest";
import { progressOf } from "./phases";

test("progress is counted by step, in the document's order, without empty phases", () => {
  const node = (node_id: string, status: string, phase?: string) => ({ node_id, status, phase });
  const state = {
    phases: [
      { id: "write", name: "Write" },
      { id: "empty", name: "Empty" },
      { id: "gather", name: "Gather" },
    ],
    node_results: [
      node("a", "completed", "gather"),
      node("each", "running", "gather"),
      node("each[0]", "completed", "gather"),
      node("b", "failed", "write"),
      node("c", "completed"),
    ],
  } as never;
  expect(progressOf(state)).toEqual([
    { id: "write", name: "Write", done: 0, of: 1, failed: true, busy: false },
    { id: "gather", name: "Gather", done: 1, of: 2, failed: false, busy: true },
  ]);
  expect(progressOf({ node_results: [] } as never)).toEqual([]);
});
