import { expect, test } from "vitest";
import { reasonNotToDecide } from "./eligibility";

type Approval = Parameters<typeof reasonNotToDecide>[0];

const approval = (more: Partial<Approval> = {}) =>
  ({
    status: "pending",
    approvers: [],
    votes: [],
    not_initiator: false,
    initiator: "ian",
    ...more,
  }) as Approval;
const ada = {
  principal: "ada",
  roles: ["approver", "finance"],
  permissions: ["governance:approve"],
};

test("an eligible approver gets no reason", () => {
  expect(reasonNotToDecide(approval(), ada)).toBeNull();
  expect(reasonNotToDecide(approval({ approvers: ["finance"] }), ada)).toBeNull();
  expect(reasonNotToDecide(approval({ approvers: ["ada"] }), ada)).toBeNull();
  expect(reasonNotToDecide(approval({ not_initiator: true }), ada)).toBeNull();
  expect(reasonNotToDecide(approval({ approvers: ["group:finance"] }), ada)).toBeNull();
  expect(reasonNotToDecide(approval({ approvers: ["user:ada"] }), ada)).toBeNull();
});

test("an ineligible user gets the reason", () => {
  expect(reasonNotToDecide(approval({ status: "expired" }), ada)).toMatch("expired");
  expect(reasonNotToDecide(approval(), { ...ada, permissions: ["workflow:read"] })).toMatch("role");
  expect(reasonNotToDecide(approval({ approvers: ["legal"] }), ada)).toMatch("legal");
  expect(reasonNotToDecide(approval({ votes: ["ada"] }), ada)).toMatch("approved");
  expect(reasonNotToDecide(approval({ not_initiator: true, initiator: "ada" }), ada)).toMatch(
    "started",
  );
  expect(reasonNotToDecide(approval({ not_initiator: true, on_behalf_of: ["ada"] }), ada)).toMatch(
    "started",
  );
  expect(reasonNotToDecide(approval({ approvers: ["group:ada", "user:finance"] }), ada)).toMatch(
    "may decide",
  );
});
