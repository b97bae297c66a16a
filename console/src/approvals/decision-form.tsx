// Answering a question.
import { useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";
import { request } from "../api/client";
import { Refusal } from "../parts/feedback";
import { Field } from "../parts/form-field";
import { type Draft, empty, read } from "../parts/form-values";
import type { Approval } from "./approval-card";
import { Tighter } from "./constraint-form";
import { AS_ASKED, boundsOf, tighten, toolsOf } from "./constraints";

type Answer = "approve" | "reject" | "retry" | "skip" | "abort";

const WORDS: Readonly<Record<Answer, string>> = {
  approve: "Approve",
  reject: "Reject",
  retry: "Try again",
  skip: "Skip the step",
  abort: "Stop the run",
};

/** Faults of bounds, told apart from those of values that a step asks for. */
function boundFaults(wrong: Readonly<Record<string, string>>): Record<string, string> {
  const own = Object.entries(wrong).filter(([name]) => name.startsWith("bound "));
  return Object.fromEntries(own.map(([name, why]) => [name.slice("bound ".length), why]));
}

export function Decide({ asked }: { asked: Approval }) {
  const queries = useQueryClient();
  const id = useId();
  const wanted = Object.fromEntries(
    (asked.asks_for ?? []).map((one) => [
      one.name,
      {
        type: one.type ?? undefined,
        required: one.required,
        ...(one.enum.length === 0 ? {} : { enum: one.enum }),
        ...(one.description === null ? {} : { description: one.description }),
      },
    ]),
  );
  const [values, setValues] = useState<Record<string, Draft>>(() => empty(wanted));
  const [comment, setComment] = useState("");
  const [wrong, setWrong] = useState<Readonly<Record<string, string>>>({});
  const [tighter, setTighter] = useState(AS_ASKED);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  const reason = comment.trim();
  const bounds = boundsOf(asked);
  const tools = toolsOf(asked);
  const answer = async (decision: Answer) => {
    setRefused(null);
    if (decision === "reject" && reason === "") {
      setWrong({ [id]: "Say why: whoever started the run reads it." });
      document.getElementById(id)?.focus();
      return;
    }
    const given = decision === "approve" ? read(wanted, values) : { values: {}, wrong: {} };
    const bound =
      decision === "approve" && bounds
        ? tighten(bounds, tools, tighter)
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
      const body = {
        decision,
        values: given.values,
        ...(reason === "" ? {} : { comment: reason }),
        ...(Object.keys(bound.constraints).length === 0 ? {} : { constraints: bound.constraints }),
      };
      await request("post", "/api/v1/approvals/{approval}/resolve", {
        path: { approval: asked.approval_id },
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
    asked.source === "escalation" ? ["retry", "skip", "abort"] : ["approve", "reject"];
  return (
    <div className="decide">
      {Object.entries(wanted).map(([name, field]) => (
        <Field
          key={name}
          name={name}
          field={field}
          draft={values[name] ?? ""}
          wrong={wrong[name]}
          onChange={(draft) => setValues({ ...values, [name]: draft })}
        />
      ))}
      {bounds && answers.includes("approve") && (
        <Tighter
          bounds={bounds}
          tools={tools}
          draft={tighter}
          wrong={boundFaults(wrong)}
          onChange={setTighter}
        />
      )}
      <div className="field">
        <label htmlFor={id}>
          Comment
          {answers.includes("reject") && <span className="muted"> (a rejection needs one)</span>}
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
      {refused !== null && <Refusal error={refused} />}
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
