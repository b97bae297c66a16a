// The audit chain: the newest seal, and verification of everything under it.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { request, type Schemas } from "../api/client";
import { ErrorMessage } from "../parts/feedback";
import { Copyable, Moment, useNow } from "../parts/format";
import { Badge, words } from "../parts/status";
import { formatValue, visible } from "../parts/value";
import { Link, runPath, useQueryParam } from "../route";

type Report = Schemas["AuditReport"];
interface Finding {
  place: {
    seal?: number;
    writer?: string;
    seq?: number;
    run_id?: string;
    event_id?: number;
    table?: string;
    key?: string;
  };
  trouble: string;
  detail: string;
}

interface Checked {
  report: Report;
  at: string;
  run: string;
  /** Number of the newest seal at that time. */
  upto: number;
}

export function Verification() {
  const queries = useQueryClient();
  const [run] = useQueryParam("run");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  const [checked, setChecked] = useState<Checked | null>(null);
  const sealed = useQuery({
    queryKey: ["seal"],
    queryFn: async ({ signal }) => (await request("get", "/api/v1/audit/seal", { signal })).data,
  });
  const verify = async () => {
    setBusy(true);
    setRefused(null);
    try {
      const [{ data: report }, newest] = await Promise.all([
        request("get", "/api/v1/audit/verify", { query: { run } }),
        request("get", "/api/v1/audit/seal"),
      ]);
      setChecked({ report, at: new Date().toISOString(), run, upto: newest.data.number });
      queries.setQueryData(["seal"], newest.data);
    } catch (error) {
      setRefused(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <section className="card chain" aria-label="Audit chain">
      <div className="bar">
        <h2>Audit chain</h2>
        <VerifyBadge checked={checked} busy={busy} />
        <span className="grow" />
        <SealButton />
        <button type="button" className="primary" onClick={verify} disabled={busy}>
          {busy ? "Verifying…" : run === "" ? "Verify everything" : "Verify this run"}
        </button>
      </div>
      {sealed.error && !sealed.data && <ErrorMessage error={sealed.error} />}
      <p className="muted">
        {sealed.data === undefined ? (
          "\u00a0"
        ) : sealed.data.number === 0 ? (
          "Nothing is sealed yet."
        ) : (
          <>
            Seal {sealed.data.number}
            {sealed.data.at && (
              <>
                , made <Moment at={sealed.data.at} />
              </>
            )}
            {sealed.data.key && (
              <>
                , signed by <code title={sealed.data.key}>{sealed.data.key.slice(0, 16)}…</code>
              </>
            )}
            : it covers everything before it.
          </>
        )}
      </p>
      {refused !== null && <ErrorMessage error={refused} />}
      <div aria-live="polite">{checked && <VerifyResult checked={checked} />}</div>
    </section>
  );
}

function VerifyBadge({ checked, busy }: { checked: Checked | null; busy: boolean }) {
  if (busy) return <Badge status="running" />;
  if (!checked) return <Badge status="not verified yet" />;
  return checked.report.ok ? (
    <Badge status="verified" as="good" />
  ) : (
    <Badge status="broken" as="bad" />
  );
}

function VerifyResult({ checked }: { checked: Checked }) {
  useNow(10_000);
  const { report } = checked;
  const findings = report.findings as unknown as Finding[];
  return (
    <>
      <p>
        {report.ok
          ? "Every hash, chain and signature is valid"
          : `${findings.length + report.more} problems found`}
        {checked.run === "" ? "" : ` for ${visible(checked.run)}`}, up to seal {checked.upto}:{" "}
        {report.events} events of {report.runs} {report.runs === 1 ? "run" : "runs"},{" "}
        {report.entries} entries, {report.seals} seals.{" "}
        <span className="muted">
          Verified <Moment at={checked.at} />.
        </span>
      </p>
      {findings.length > 0 && (
        <table className="findings">
          <thead>
            <tr>
              <th>Problem</th>
              <th>Location</th>
              <th>Detail</th>
            </tr>
          </thead>
          <tbody>
            {findings.map((one) => (
              <tr key={JSON.stringify(one)}>
                <td>
                  <Badge status={words(one.trouble)} as="bad" />
                </td>
                <td>
                  {one.place.run_id === undefined ? (
                    formatValue(
                      Object.entries(one.place)
                        .map(([name, value]) => `${name} ${value}`)
                        .join(", "),
                    )
                  ) : (
                    <Link href={`${runPath(one.place.run_id)}?view=events`}>
                      {one.place.run_id}, event {one.place.event_id}
                    </Link>
                  )}
                </td>
                <td>{visible(one.detail)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

/** Shows the newest seal for safekeeping: a copy outside the server reveals a rollback of everything. */
function SealButton() {
  const queries = useQueryClient();
  const [seal, setSeal] = useState<Schemas["SealShown"] | null>(null);
  const [refused, setRefused] = useState<unknown>(null);
  const fetchSeal = async () => {
    setRefused(null);
    try {
      setSeal((await request("post", "/api/v1/audit/seal")).data);
      void queries.invalidateQueries({ queryKey: ["seal"] });
    } catch (error) {
      setRefused(error);
    }
  };
  if (refused !== null) return <ErrorMessage error={refused} />;
  if (seal) {
    return (
      <span className="small">
        Store it outside this server: <Copyable text={seal.seal} shown={`seal ${seal.number}`} />
      </span>
    );
  }
  return (
    <button type="button" onClick={fetchSeal}>
      Get the newest seal
    </button>
  );
}
