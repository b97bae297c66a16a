import { expect, test } from "vitest";
import { causeOf, shownStatus } from "./gate-waits";

test("a step that waits at a gate is not shown as queued", () => {
  expect(shownStatus({ status: "queued", waiting_reason: "gate" })).toBe("waits_at_a_gate");
  expect(shownStatus({ status: "queued", waiting_reason: "queued" })).toBe("queued");
  expect(shownStatus({ status: "failed", waiting_reason: "gate" })).toBe("failed");
});

test("an unblock hint is split into the gate's code and the help", () => {
  expect(causeOf("gateway_unreachable: bring gateway dead back")).toEqual({
    code: "gateway_unreachable",
    help: "bring gateway dead back",
  });
  expect(causeOf("agent_disabled")).toEqual({ code: "agent_disabled", help: "" });
  expect(causeOf("next attempt at 12:00")).toEqual({ code: null, help: "next attempt at 12:00" });
  expect(causeOf(null)).toEqual({ code: null, help: "" });
});
