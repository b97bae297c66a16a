// The policy sets: their policies, and a back-test of a changed set.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { request, type Schemas } from "../api/client";
import { ErrorMessage, Loading } from "../parts/feedback";
import { Copyable } from "../parts/format";
import { Badge, type Tone, words } from "../parts/status";
import { Value, visible } from "../parts/value";
import { BackTest } from "./backtest";

type Set = Schemas["SetShown"];
type Policy = Schemas["PolicyShown"];

const ORIGINS: Readonly<Record<Set["origin"], string | null>> = {
  stored: null,
  shipped: "the set that Sluice ships with; no other set is stored",
  files: "from files given to the server; stored policies are ignored",
};

export function Policies() {
  const sets = useQuery({
    queryKey: ["policies"],
    queryFn: async ({ signal }) => (await request("get", "/api/v1/policy-sets", { signal })).data,
  });
  const [trying, setTrying] = useState(0);
  if (sets.error && !sets.data) return <ErrorMessage error={sets.error} />;
  if (!sets.data) return <Loading what="policies" />;
  const { active, shadow } = sets.data;
  return (
    <>
      <SetCard set={active} title="In force" about={ORIGINS[active.origin]} />
      {shadow && (
        <SetCard
          set={shadow}
          title="In shadow"
          about="evaluated and recorded with every decision, never enforced"
        />
      )}
      <BackTest
        key={`${active.hash} ${shadow?.hash} ${trying}`}
        active={active}
        shadow={shadow ?? null}
        onReset={() => setTrying(trying + 1)}
      />
    </>
  );
}

function SetCard({ set, title, about }: { set: Set; title: string; about: string | null }) {
  const count = set.files.reduce((sum, file) => sum + file.policies.length, 0);
  return (
    <section className="card" aria-label={`Policies ${title.toLowerCase()}`}>
      <div className="bar card-head">
        <h2>{title}</h2>
        <span className="muted small">
          {count} {count === 1 ? "policy" : "policies"}
          {about && ` · ${about}`}
        </span>
        <span className="grow" />
        <span className="small muted">
          <Copyable text={set.hash} shown={set.hash.slice(0, 12)} />
        </span>
      </div>
      {set.files.map((file) => (
        <div key={file.name} className="policy-file">
          <ul>
            {file.policies.map((one) => (
              <PolicyRow key={one.name} policy={one} />
            ))}
          </ul>
          <details>
            <summary>
              Source of <code>{visible(file.name)}</code>
            </summary>
            <Value of={file.text} label={`Source of ${file.name}`} />
          </details>
        </div>
      ))}
    </section>
  );
}

/** The effect of a policy, in words. */
export function effectText(
  policy: Pick<Policy, "effect" | "action" | "enforcement" | "category" | "approvers">,
): string {
  if (policy.effect === "permit") return "allows";
  if (policy.enforcement === "audit") return "is only logged";
  if (policy.enforcement === "soft") return "warns";
  switch (policy.action) {
    case "require_approval": {
      const approval =
        policy.approvers.length > 0
          ? `requires approval by ${policy.approvers.join(", ")}`
          : "requires approval";
      return policy.category === "budget" ? `${approval} when the budget is short` : approval;
    }
    case "warn":
      return "warns";
    case "log":
      return "is only logged";
    default:
      return "blocks";
  }
}

/** A `forbid` that only warns or logs is not shown in red. */
function toneOf(policy: Policy): Tone {
  const does = effectText(policy);
  if (does === "allows") return "good";
  if (does === "blocks") return "bad";
  return does.startsWith("requires") || does === "warns" ? "wait" : "calm";
}

function PolicyRow({ policy }: { policy: Policy }) {
  return (
    <li className="policy">
      <Badge status={policy.effect} as={toneOf(policy)} />
      <span className="grow">
        <strong>{visible(policy.name)}</strong>{" "}
        <span className="muted">{visible(effectText(policy))}</span>
        {policy.description && <span className="about">{visible(policy.description)}</span>}
      </span>
      <span className="muted small policy-facts">
        {[policy.category && words(policy.category), policy.enforcement, `line ${policy.line}`]
          .filter(Boolean)
          .join(" · ")}
      </span>
    </li>
  );
}
