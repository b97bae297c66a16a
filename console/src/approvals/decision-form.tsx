// The form that decides an approval request.
import { useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";
import { request } from "../api/client";
import { ErrorMessage } from "../parts/feedback";
import { FormField } from "../parts/form-field";
import { type Draft, initialDrafts, parseDrafts } from "../parts/form-values";
import type { Approval } from "./approval-card";
import { ConstraintForm } from "./constraint-form";
import { type Constraints, constraintsOf, tightened, toolsOf, UNCHANGED } from "./constraints";

type Answer = "approve" | "reject" | "retry" | "skip" | "abort";

const WORDS: Readonly<Record<Answer, string>> = {
  approve: "Approve",
  reject: "Reject",
  retry: "Retry the step",
  skip: "Skip the step",
  abort: "Abort the step",
};

/** Errors of constraint fields, without those of the requested values. */
function constraintErrors(wrong: Readonly<Record<string, string>>): Record<string, string> {
  const own = Object.entries(wrong).filter(([name]) => name.startsWith("bound "));
  return Object.fromEntries(own.map(([name, why]) => [name.slice("bound ".length), why]));
}

interface Resolution {
  decision: Answer;
  values: Record<string, unknown>;
  reason: string;
  constraints: Constraints;
}

/** The request body: empty comments and constraints are left out. */
function resolutionBody({ decision, values, reason, constraints }: Resolution) {
  return {
    decision,
    values,
    ...(reason === "" ? {} : { comment: reason }),
    ...(Object.keys(constraints).length === 0 ? {} : { constraints }),
  };
}

export function DecisionForm({ approval }: { approval: Approval }) {
  const queries = useQueryClient();
  const id = useId();
  const specs = Object.fromEntries(
    (approval.asks_for ?? []).map((one) => [
      one.name,
      {
        type: one.type ?? undefined,
        required: one.required,
        ...(one.enum.length === 0 ? {} : { enum: one.enum }),
        ...(one.description === null ? {} : { description: one.description }),
      },
    ]),
  );
  const [values, setValues] = useState<Record<string, Draft>>(() => initialDrafts(specs));
  const [comment, setComment] = useState("");
  const [wrong, setWrong] = useState<Readonly<Record<string, string>>>({});
  const [tighter, setTighter] = useState(UNCHANGED);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  const reason = comment.trim();
  const bounds = constraintsOf(approval);
  const tools = toolsOf(approval);
  const answer = async (decision: Answer) => {
    setRefused(null);
    if (decision === "reject" && reason === "") {
      setWrong({ [id]: "Enter a reason: the initiator of the run sees it." });
      document.getElementById(id)?.focus();
      return;
    }
    const given = decision === "approve" ? parseDrafts(specs, values) : { values: {}, wrong: {} };
    const bound =
      decision === "approve" && bounds
        ? tightened(bounds, tools, tighter)
        : { constraints: {}, wrong: {} };
    const faults = {
      ...given.wrong,
      ...Object.fromEntries(
        Object.entries(bound.wrong).map(([name, why]) => [`bound ${name}`, why]),
      ),
    };
    setWrong(faults);
    if (Object.keys(faults).length > 0) return;
    setBusy(true);
    try {
      const { values: sent } = given;
      const { constraints } = bound;
      const body = resolutionBody({ decision, values: sent, reason, constraints });
      await request("post", "/api/v1/approvals/{approval}/resolve", {
        path: { approval: approval.approval_id },
        body,
      });
    } catch (error) {
      setRefused(error);
    } finally {
      setBusy(false);
      void queries.invalidateQueries({ queryKey: ["approvals"] });
      void queries.invalidateQueries({ queryKey: ["approval"] });
    }
  };
  const answers: Answer[] =
    approval.source === "escalation" ? ["retry", "skip", "abort"] : ["approve", "reject"];
  return (
    <div className="decide">
      {Object.entries(specs).map(([name, field]) => (
        <FormField
          key={name}
          name={name}
          field={field}
          draft={values[name] ?? ""}
          wrong={wrong[name]}
          onChange={(draft) => setValues({ ...values, [name]: draft })}
        />
      ))}
      {bounds && answers.includes("approve") && (
        <ConstraintForm
          bounds={bounds}
          tools={tools}
          draft={tighter}
          wrong={constraintErrors(wrong)}
          onChange={setTighter}
        />
      )}
      <div className="field">
        <label htmlFor={id}>
          Comment
          {answers.includes("reject") && <span className="muted"> (required for a rejection)</span>}
        </label>
        <textarea
          id={id}
          rows={2}
          value={comment}
          aria-invalid={wrong[id] !== undefined}
          aria-describedby={wrong[id] === undefined ? undefined : `${id}-wrong`}
          onChange={(event) => setComment(event.target.value)}
        />
        {wrong[id] !== undefined && (
          <span id={`${id}-wrong`} role="alert" className="ink-bad small">
            {wrong[id]}
          </span>
        )}
      </div>
      {refused !== null && <ErrorMessage error={refused} />}
      <div className="bar">
        {answers.map((one, at) => (
          <button
            key={one}
            type="button"
            className={at === 0 ? "primary" : one === "reject" || one === "abort" ? "danger" : ""}
            disabled={busy}
            onClick={() => answer(one)}
          >
            {WORDS[one]}
          </button>
        ))}
      </div>
    </div>
  );
}
