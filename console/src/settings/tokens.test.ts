import { expect, test } from "vitest";
import { ancestors } from "./tokens";

test("ancestors of a session are its token and the tokens above it", () => {
  const all = [
    { token_id: "root", parent: null },
    { token_id: "child", parent: "root" },
    { token_id: "session", parent: "child" },
    { token_id: "other", parent: "root" },
  ];
  expect(ancestors(all, "session")).toEqual(["child", "root"]);
  expect(ancestors(all, "unknown")).toEqual([]);
  expect(
    ancestors(
      [
        { token_id: "a", parent: "b" },
        { token_id: "b", parent: "a" },
      ],
      "a",
    ),
  ).toEqual(["b", "a"]);
});
