import { expect, test } from "vitest";
import { whyNot } from "./eligibility";

type Asked = Parameters<typeof whyNot>[0];

const asked = (more: Partial<Asked> = {}) =>
  ({
    status: "pending",
    approvers: [],
    votes: [],
    not_initiator: false,
    initiator: "ian",
    ...more,
  }) as Asked;
const ada = {
  principal: "ada",
  roles: ["approver", "finance"],
  permissions: ["governance:approve"],
};

test("who may is asked nothing more", () => {
  expect(whyNot(asked(), ada)).toBeNull();
  expect(whyNot(asked({ approvers: ["finance"] }), ada)).toBeNull();
  expect(whyNot(asked({ approvers: ["ada"] }), ada)).toBeNull();
  expect(whyNot(asked({ not_initiator: true }), ada)).toBeNull();
  expect(whyNot(asked({ approvers: ["group:finance"] }), ada)).toBeNull();
  expect(whyNot(asked({ approvers: ["user:ada"] }), ada)).toBeNull();
});

test("who may not is told why", () => {
  expect(whyNot(asked({ status: "expired" }), ada)).toMatch("expired");
  expect(whyNot(asked(), { ...ada, permissions: ["workflow:read"] })).toMatch("role");
  expect(whyNot(asked({ approvers: ["legal"] }), ada)).toMatch("legal");
  expect(whyNot(asked({ votes: ["ada"] }), ada)).toMatch("approved");
  expect(whyNot(asked({ not_initiator: true, initiator: "ada" }), ada)).toMatch("started");
  expect(whyNot(asked({ not_initiator: true, on_behalf_of: ["ada"] }), ada)).toMatch("started");
  expect(whyNot(asked({ approvers: ["group:ada", "user:finance"] }), ada)).toMatch("may decide");
});
