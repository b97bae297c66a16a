// The document editor: the server validates while the user types; problems link to their lines.
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { request, type Schemas } from "../api/client";
import { Empty, ErrorMessage } from "../parts/feedback";
import { useTitle } from "../parts/format";
import { visible } from "../parts/value";
import { Link, navigate } from "../route";
import { Graph } from "../runs/graph";
import { usePermission } from "../session";
import { graphSteps, type Plan } from "./plan";
import { offsetOf } from "./text-offset";

type Report = Schemas["ReportShown"];
type Found = Report["errors"][number];
type Version = Schemas["VersionShown"];

/** Pause in typing before the document is validated. */
const REST_MS = 350;
const LISTED_MAX = 50;

const TEMPLATE = `name: hello
version: 1
args:
  who: {type: string, required: true, description: Person to greet}
steps:
  - id: greet
    command: Greet \${args.who} in one sentence.
`;

function useDelayed(text: string): string {
  const [rested, setRested] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setRested(text), REST_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return rested;
}

export default function Editor({ from }: { from: Version | null }) {
  useTitle(from ? `Edit ${from.name}` : "New workflow");
  const [text, setText] = useState(from?.document ?? TEMPLATE);
  const document = useDelayed(text);
  const format = from?.format ?? null;
  const checked = useQuery({
    queryKey: ["validate", document, format],
    queryFn: async ({ signal }) =>
      (await request("post", "/api/v1/workflows/validate", { body: { document, format }, signal }))
        .data,
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
  const current = text === document && !checked.isPlaceholderData ? checked.data : undefined;
  // Keep the last valid graph while the document is incomplete.
  const drawn = useRef<Report | null>(null);
  if (checked.data?.plan) drawn.current = checked.data;
  const shown = drawn.current;
  const steps = useMemo(() => graphSteps(shown?.plan as Plan | null, shown?.waves ?? []), [shown]);
  const area = useRef<HTMLTextAreaElement>(null);
  const show = ({ line, column }: Found) => {
    const box = area.current;
    if (!box) return;
    const at = offsetOf(text, line, column);
    box.focus();
    box.setSelectionRange(at, at);
    // Lines do not wrap, so all of them have the same height.
    box.scrollTop = Math.max(0, (line - 4) * parseFloat(getComputedStyle(box).lineHeight));
  };
  return (
    <div className="page wide">
      <div className="bar">
        <h1 className="grow cut">{from ? `Edit ${visible(from.name)}` : "New workflow"}</h1>
        <Link href={from ? `/workflows/${encodeURIComponent(from.name)}` : "/workflows"}>
          Close
        </Link>
        <Save text={text} format={format} report={current} changed={text !== from?.document} />
      </div>
      <div className="editing">
        <div className="card writing">
          <Text text={text} report={checked.data} area={area} onChange={setText} />
        </div>
        <div className="found">
          {checked.error && <ErrorMessage error={checked.error} />}
          <ProblemList report={checked.data} current={current !== undefined} onShow={show} />
          <div className={checked.data?.plan ? "card picture" : "card picture stale"}>
            {steps.length > 0 ? (
              <>
                {!checked.data?.plan && (
                  <p className="muted small">The graph of the last valid text.</p>
                )}
                <Graph steps={steps} status={null} flows={[]} chosen={null} onChoose={null} />
              </>
            ) : (
              <Empty title="No graph yet">The graph appears once the document is valid.</Empty>
            )}
          </div>
        </div>
      </div>
    </div>
  );
}

interface TextProps {
  text: string;
  report: Report | undefined;
  area: { current: HTMLTextAreaElement | null };
  onChange: (text: string) => void;
}

/** The text area with line numbers; lines with problems are marked. */
function Text({ text, report, area, onChange }: TextProps) {
  const gutter = useRef<HTMLPreElement>(null);
  const lines = useMemo(() => text.split("\n").length, [text]);
  const bad = useMemo(() => new Set(report?.errors.map((one) => one.line)), [report]);
  const numbers = useMemo(
    () =>
      Array.from({ length: lines }, (_, at) =>
        bad.has(at + 1) ? `● ${at + 1}` : String(at + 1),
      ).join("\n"),
    [lines, bad],
  );
  return (
    <>
      <pre ref={gutter} className="gutter" aria-hidden="true">
        {numbers}
      </pre>
      <textarea
        ref={area}
        className="mono"
        aria-label="Document"
        spellCheck={false}
        autoCapitalize="off"
        autoComplete="off"
        wrap="off"
        value={text}
        aria-invalid={(report?.errors.length ?? 0) > 0}
        onChange={(event) => onChange(event.target.value)}
        onScroll={({ currentTarget }) => {
          if (gutter.current) gutter.current.scrollTop = currentTarget.scrollTop;
        }}
      />
    </>
  );
}

interface ProblemListProps {
  report: Report | undefined;
  current: boolean;
  onShow: (found: Found) => void;
}

function ProblemList({ report, current, onShow }: ProblemListProps) {
  const all = report ? [...report.errors, ...report.warnings] : [];
  const errors = report?.errors.length ?? 0;
  const word =
    !report || !current
      ? "Checking…"
      : errors > 0
        ? `${errors} ${errors === 1 ? "problem" : "problems"}`
        : "The document is valid.";
  return (
    <section className="card problems" aria-label="Problems">
      <p
        role="status"
        className={current && report?.ok ? "ink-good" : errors > 0 ? "ink-bad" : "muted"}
      >
        <strong>{word}</strong>
      </p>
      <ul>
        {all.slice(0, LISTED_MAX).map((one, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two problems may be equal
          <li key={`${one.line}:${one.column}:${one.code}:${at}`}>
            <button type="button" className="link" onClick={() => onShow(one)}>
              line {one.line}, column {one.column}
            </button>{" "}
            <span className={at < errors ? "ink-bad" : "ink-wait"}>{visible(one.message)}</span>{" "}
            {one.hint && <span className="muted">({visible(one.hint)})</span>}{" "}
            <code className="muted small">{one.code}</code>
          </li>
        ))}
      </ul>
      {all.length > LISTED_MAX && <p className="muted small">{all.length - LISTED_MAX} more.</p>}
    </section>
  );
}

interface SaveProps {
  text: string;
  format: string | null;
  /** The report of exactly this text. */
  report: Report | undefined;
  changed: boolean;
}

function Save({ text, format, report, changed }: SaveProps) {
  const may = usePermission("workflow:write");
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  if (!may) return <span className="muted">Your role cannot save workflows.</span>;
  const save = async () => {
    const plan = report?.plan as Plan | null | undefined;
    if (!plan) return;
    setBusy(true);
    setRefused(null);
    try {
      await request("post", "/api/v1/workflows", { body: { document: text, format } });
      const { name } = plan;
      await queries.invalidateQueries({ queryKey: ["workflow", name] });
      await queries.invalidateQueries({ queryKey: ["workflows"] });
      navigate(`/workflows/${encodeURIComponent(name)}`);
    } catch (error) {
      setRefused(error);
      setBusy(false);
    }
  };
  return (
    <>
      <button
        type="button"
        className="primary"
        disabled={busy || !changed || !report?.ok}
        onClick={save}
      >
        {busy ? "Saving…" : "Save as a new version"}
      </button>
      {refused !== null && <ErrorMessage error={refused} />}
    </>
  );
}
