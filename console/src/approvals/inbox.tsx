// Questions to people: the inbox, or one of them.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { request } from "../api/client";
import type { Event } from "../api/follow";
import { useWhatHappens } from "../connection";
import { Empty, Loading, Refusal } from "../parts/feedback";
import { useTitle } from "../parts/format";
import { Link } from "../route";
import { useMay } from "../session";
import { Question } from "./approval-card";
import { useApprovals } from "./pending";

const matters = (event: Event) =>
  event.type.startsWith("approval.") || /^run\.(cancelled|timed_out|failed)$/.test(event.type);

export function Inbox({ only }: { only: string | null }) {
  const may = useMay("governance:read");
  const queries = useQueryClient();
  useTitle("Approvals");
  useWhatHappens(
    matters,
    useCallback(() => {
      void queries.invalidateQueries({ queryKey: ["approvals"] });
      void queries.invalidateQueries({ queryKey: ["approval"] });
    }, [queries]),
  );
  if (!may) return <Empty title="Your role does not read approvals" />;
  return (
    <div className="page">
      <div className="bar">
        <h1 className="grow">{only === null ? "Approvals" : "Approval"}</h1>
        {only !== null && <Link href="/approvals">All open questions</Link>}
      </div>
      {only === null ? <Open /> : <One approval={only} />}
    </div>
  );
}

function Open() {
  const open = useApprovals();
  if (open.error && !open.data) return <Refusal error={open.error} />;
  if (!open.data) return <Loading what="questions" />;
  if (open.data.length === 0) {
    return (
      <div className="card">
        <Empty title="Nobody is asked anything">
          <span>When a step needs a person, it shows here at once.</span>
        </Empty>
      </div>
    );
  }
  return (
    <ul className="inbox">
      {open.data.map((one) => (
        <li key={one.approval_id}>
          <Question asked={one} />
        </li>
      ))}
    </ul>
  );
}

function One({ approval }: { approval: string }) {
  const one = useQuery({
    queryKey: ["approval", approval],
    queryFn: async ({ signal }) =>
      (await request("get", "/api/v1/approvals/{approval}", { path: { approval }, signal })).data,
  });
  if (one.error && !one.data) return <Refusal error={one.error} />;
  if (!one.data) return <Loading what="the question" />;
  return <Question asked={one.data} />;
}
