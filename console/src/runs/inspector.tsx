// The inspector of one step: inputs, outputs, decisions, attempts and cost.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { request, type Schemas } from "../api/client";
import type { Event } from "../api/follow";
import { ErrorMessage, Loading } from "../parts/feedback";
import { clock, duration, money } from "../parts/format";
import { LiveText } from "../parts/live-text";
import { Badge, ended } from "../parts/status";
import { isEmpty, Value, visible } from "../parts/value";
import { Link } from "../route";
import { Attempts } from "./attempts";
import { Decision } from "./decision";
import type { Feed } from "./feed";
import { Cause, shownStatus, waitsAtGate } from "./gate-waits";
import type { Node, RunState } from "./live-run";
import { Media } from "./media";
import { type ValueFlow, ValueFlowList } from "./value-flow";

type Detail = Schemas["StepDetail"];

/** The OpenAPI description types these as plain objects. */
const events = (list: readonly object[]): Event[] => [...(list as readonly Event[])];

interface Props {
  run: string;
  state: RunState;
  node: Node;
  feed: Feed;
  flows: readonly ValueFlow[];
  onChoose: (step: string) => void;
  onClose: () => void;
}

export function Inspector({ run, state, node, feed, flows, onChoose, onClose }: Props) {
  const step = node.node_id;
  // Do not reload the step with every delta of its text.
  const settled = node.status === "streaming" ? "streaming" : feed.touched.get(step);
  const detail = useQuery({
    queryKey: ["run", run, "step", step, settled ?? 0],
    queryFn: async ({ signal }) =>
      (await request("get", "/api/v1/runs/{run}/steps/{step}", { path: { run, step }, signal }))
        .data,
    placeholderData: (before) => (before?.node.node_id === step ? before : undefined),
  });
  return (
    <aside className="inspector" aria-label={`Step ${step}`} tabIndex={0}>
      <header>
        <div className="bar">
          <h2 className="grow cut">{node.label ?? step}</h2>
          <Badge status={shownStatus(node)} />
          <button type="button" className="plain" onClick={onClose} aria-label="Close the step">
            ✕
          </button>
        </div>
        <Figures node={node} phases={state.phases} />
        <StepNotices node={node} state={state} />
      </header>
      <Streaming node={node} feed={feed} />
      {detail.error && !detail.data && (
        <section>
          <ErrorMessage error={detail.error} />
        </section>
      )}
      {detail.isPending && !detail.error && <Loading what="the step" />}
      {detail.data && <Sections detail={detail.data} shown={node} />}
      <ValueFlowList run={run} step={step} flows={flows} onChoose={onChoose} />
    </aside>
  );
}

function Figures({ node, phases }: { node: Node; phases: RunState["phases"] }) {
  const route = node.provider_route;
  const phase = phases?.find((one) => one.id === node.phase);
  const facts: [string, string | null][] = [
    ["Phase", phase?.name ?? null],
    ["Agent", node.agent],
    ["Gateway", node.gateway],
    ["Model", route.model],
    ["Attempts", node.attempts > 0 ? String(node.attempts) : null],
    ["Duration", node.duration_ms === null ? null : duration(node.duration_ms)],
    ["First byte", node.first_byte_ms === null ? null : duration(node.first_byte_ms)],
    [
      "Tokens",
      node.input_tokens + node.output_tokens > 0
        ? `${node.input_tokens} in, ${node.output_tokens} out`
        : null,
    ],
    ["Thinking", node.thinking_tokens > 0 ? `${node.thinking_tokens} tokens` : null],
    ["Cost", node.attempts > 0 ? money(node.cost) : null],
  ];
  return (
    <dl className="facts small">
      {facts.map(([name, value]) =>
        value === null ? null : (
          <div key={name} className="pair">
            <dt>{name}</dt>
            <dd>{visible(value)}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

/** Errors and waits of a step, with their remedies. */
function StepNotices({ node, state }: { node: Node; state: RunState }) {
  const approval = state.approvals.find(
    (one) => one.node_id === node.node_id && one.status === "pending",
  );
  return (
    <>
      {node.error_code && (
        <div className="refusal">
          <a
            href={`/api/docs/errors/${encodeURIComponent(node.error_code)}`}
            target="_blank"
            rel="noreferrer"
          >
            {visible(node.error_code)}
          </a>
          {node.error_message !== node.error_code && (
            <span>{visible(node.error_message ?? "")}</span>
          )}
          {node.contract_errors.map((one) => (
            <span key={one.field + one.reason}>{visible(`${one.field}: ${one.reason}`)}</span>
          ))}
        </div>
      )}
      {node.skip_reason && <p className="note">{visible(`Skipped: ${node.skip_reason}`)}</p>}
      {approval && (
        <p className="note">
          This step needs approval.{" "}
          <Link href={`/approvals/${encodeURIComponent(approval.approval_id)}`}>
            See the request
          </Link>
        </p>
      )}
      {waitsAtGate(node) && (
        <p className="note">
          Waits at a gate: <Cause hint={node.unblock_hint} />
        </p>
      )}
      {!approval && node.unblock_hint && !waitsAtGate(node) && !ended(node.status) && (
        <p className="note">{visible(node.unblock_hint)}</p>
      )}
    </>
  );
}

function Streaming({ node, feed }: { node: Node; feed: Feed }) {
  const streamed = feed.streamed.get(node.node_id);
  if (!streamed || !["running", "streaming"].includes(node.status)) return null;
  return (
    <section>
      <h2>Live output</h2>
      {streamed.cut && (
        <p className="muted small">The beginning is missing here; the journal has it.</p>
      )}
      <LiveText text={streamed.text} label="Text so far" />
    </section>
  );
}

function Section({
  title,
  open,
  children,
}: {
  title: string;
  open?: boolean;
  children: ReactNode;
}) {
  return (
    <details open={open ?? false}>
      <summary>{title}</summary>
      {children}
    </details>
  );
}

function Sections({ detail, shown }: { detail: Detail; shown: Node }) {
  const node = detail.node;
  const decisions = events(detail.decisions).reverse();
  const newest = decisions[0];
  const troubled = shown.status !== "completed";
  const layers = node.prompt_layers ?? [];
  return (
    <>
      {!isEmpty(node.outputs) && (
        <Section title="Outputs" open>
          <Value of={node.outputs} label="Outputs" />
        </Section>
      )}
      {!isEmpty(node.output) && JSON.stringify(node.output) !== JSON.stringify(node.outputs) && (
        <Section title="Answer" open>
          <Value of={node.output} label="Answer" />
        </Section>
      )}
      {!isEmpty(node.media) && (
        <Section title="Media" open>
          <Media of={node.media} />
        </Section>
      )}
      {!isEmpty(node.metadata) && (
        <Section title="Metadata">
          <Value of={node.metadata} label="Metadata" />
        </Section>
      )}
      {!isEmpty(node.inputs) && (
        <Section title="Inputs" open={troubled}>
          <Value of={node.inputs} label="Inputs" />
        </Section>
      )}
      {node.prompt && (
        <Section title={node.agent === "shell" ? "Command" : "Prompt"}>
          <Value of={node.prompt} label="Prompt" />
        </Section>
      )}
      {layers.length > 0 && (
        <Section title={`Prompt layers (${layers.length})`}>
          <Value of={layers} label="Prompt layers" />
        </Section>
      )}
      <LabelsSection labels={detail.labels} />
      {newest && (
        <Section
          title={decisions.length > 1 ? `Decision (newest of ${decisions.length})` : "Decision"}
          open={troubled}
        >
          <Decision event={newest} />
          {decisions.slice(1).map((one) => (
            <details key={one.eventId}>
              <summary className="small">Event {one.eventId}</summary>
              <Decision event={one} />
            </details>
          ))}
        </Section>
      )}
      <Attempts events={events(detail.attempts)} />
      <Journal title="Logs" events={events(detail.logs)} />
      {detail.conversation.length > 0 && (
        <Section title={`Conversation (${detail.conversation.length})`}>
          <Conversation turns={detail.conversation} />
        </Section>
      )}
      <Journal title="Other events" events={events(detail.others)} />
    </>
  );
}

type Labels = Detail["labels"];

/** The labels of the whole result, then those of fields that differ. */
function LabelsSection({ labels }: { labels: Labels }) {
  const fields = Object.entries(labels.fields);
  const flags = [labels.untrusted && "untrusted", labels.private && "private"].filter(Boolean);
  const whole = [labelWords(labels), ...flags].filter(Boolean).join("; ");
  if (whole === "" && fields.length === 0) return null;
  return (
    <Section title="Labels">
      <dl className="facts small">
        <div className="pair">
          <dt>All</dt>
          <dd>{visible(whole || "none")}</dd>
        </div>
        {fields.map(([name, own]) => (
          <div key={name} className="pair">
            <dt>{visible(name)}</dt>
            <dd>{visible(labelWords(own) || "none")}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}

function labelWords(labels: Labels["fields"][string]): string {
  const words = [
    labels.origins.length > 0 && `from ${labels.origins.join(", ")}`,
    labels.secrecy.length > 0 && `contains ${labels.secrecy.join(", ")}`,
    labels.control && "control",
  ];
  return words.filter(Boolean).join("; ");
}

function Journal({ title, events }: { title: string; events: readonly Event[] }) {
  if (events.length === 0) return null;
  return (
    <Section title={`${title} (${events.length})`}>
      {events.map((event) => (
        <div key={event.eventId} className="small">
          <span className="muted">
            {event.eventId} · {clock(event.timestamp)} · {event.type}
          </span>
          <Value of={event.payload} label={`Event ${event.eventId}`} />
        </div>
      ))}
    </Section>
  );
}

function Conversation({ turns }: { turns: readonly Record<string, unknown>[] }) {
  return turns.map((turn, at) => {
    const { role, text, ...rest } = turn;
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: a conversation only grows
      <div key={at} className="small">
        <span className="muted">{visible(String(role ?? "?"))}</span>
        <Value of={isEmpty(rest) ? (text ?? "") : { text, ...rest }} label={`Message ${at + 1}`} />
      </div>
    );
  });
}
