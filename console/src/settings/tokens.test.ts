import { expect, test } from "vitest";
import { ancestors } from "./tokens";

test("a session ends with the token it was opened with, and with what made that", () => {
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
