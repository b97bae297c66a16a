// Approval requests: the inbox, or a single one.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { request } from "../api/client";
import type { Event } from "../api/follow";
import { useRefreshOnEvents } from "../connection";
import { Empty, ErrorMessage, Loading } from "../parts/feedback";
import { useTitle } from "../parts/format";
import { Link } from "../route";
import { usePermission } from "../session";
import { ApprovalCard } from "./approval-card";
import { usePendingApprovals } from "./pending";

const isRelevant = (event: Event) =>
  event.type.startsWith("approval.") || /^run\.(cancelled|timed_out|failed)$/.test(event.type);

export function Inbox({ only }: { only: string | null }) {
  const may = usePermission("governance:read");
  const queries = useQueryClient();
  useTitle("Approvals");
  useRefreshOnEvents(
    isRelevant,
    useCallback(() => {
      void queries.invalidateQueries({ queryKey: ["approvals"] });
      void queries.invalidateQueries({ queryKey: ["approval"] });
    }, [queries]),
  );
  if (!may) return <Empty title="Your role cannot view approvals" />;
  return (
    <div className="page">
      <div className="bar">
        <h1 className="grow">{only === null ? "Approvals" : "Approval"}</h1>
        {only !== null && <Link href="/approvals">All pending approvals</Link>}
      </div>
      {only === null ? <PendingList /> : <SingleApproval approval={only} />}
    </div>
  );
}

function PendingList() {
  const open = usePendingApprovals();
  if (open.error && !open.data) return <ErrorMessage error={open.error} />;
  if (!open.data) return <Loading what="approvals" />;
  if (open.data.length === 0) {
    return (
      <div className="card">
        <Empty title="No pending approvals">
          <span>Requests appear here as soon as a step needs approval.</span>
        </Empty>
      </div>
    );
  }
  return (
    <ul className="inbox">
      {open.data.map((one) => (
        <li key={one.approval_id}>
          <ApprovalCard approval={one} />
        </li>
      ))}
    </ul>
  );
}

function SingleApproval({ approval }: { approval: string }) {
  const one = useQuery({
    queryKey: ["approval", approval],
    queryFn: async ({ signal }) =>
      (await request("get", "/api/v1/approvals/{approval}", { path: { approval }, signal })).data,
  });
  if (one.error && !one.data) return <ErrorMessage error={one.error} />;
  if (!one.data) return <Loading what="the approval" />;
  return <ApprovalCard approval={one.data} />;
}
