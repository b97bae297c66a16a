import { expect, test } from "vitest";
import { offsetOf } from "./text-offset";

test("an offset is found by line and column", () => {
  const text = "one\ntwo: x\n\nfour";
  expect(offsetOf(text, 1, 1)).toBe(0);
  expect(text.slice(offsetOf(text, 2, 6))).toBe("x\n\nfour");
  expect(text.slice(offsetOf(text, 4, 1))).toBe("four");
});

test("positions beyond a line or the text end there", () => {
  expect(offsetOf("a\nb", 9, 1)).toBe(3);
  expect(offsetOf("a\nb", 1, 9)).toBe(1);
});

test("a surrogate pair is one column", () => {
  expect("😀x".slice(offsetOf("😀x", 1, 2))).toBe("x");
});
