// The list of stored workflows.
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { request } from "../api/client";
import { Empty, ErrorMessage, Loading } from "../parts/feedback";
import { useTitle } from "../parts/format";
import { Link, useQueryParam } from "../route";
import { usePermission } from "../session";

const Editor = lazy(() => import("./editor"));

export function WorkflowList() {
  const [making] = useQueryParam("new");
  if (making === "") return <All />;
  return (
    <Suspense fallback={<Loading what="the editor" />}>
      <Editor from={null} />
    </Suspense>
  );
}

function All() {
  useTitle("Workflows");
  const may = usePermission("workflow:write");
  const all = useQuery({
    queryKey: ["workflows"],
    queryFn: async ({ signal }) => (await request("get", "/api/v1/workflows", { signal })).data,
  });
  return (
    <div className="page">
      <div className="bar">
        <h1 className="grow">Workflows</h1>
        {may && (
          <Link href="/workflows?new=yes" className="button primary">
            New workflow
          </Link>
        )}
      </div>
      {all.error && !all.data && <ErrorMessage error={all.error} />}
      <div className="card">
        {!all.data && !all.error && <Loading what="workflows" />}
        {all.data?.length === 0 && (
          <Empty title="No workflows yet">
            <span>
              Create one here, or load files: <code>sluice apply -f FILE</code>
            </span>
          </Empty>
        )}
        {all.data && all.data.length > 0 && (
          <ul className="names">
            {all.data.map((one) => (
              <li key={one.name}>
                <Link href={`/workflows/${encodeURIComponent(one.name)}`}>
                  <strong className="grow cut">{one.name}</strong>
                  <span className="muted small">
                    {one.versions.length === 1
                      ? `v${one.versions[0]}`
                      : `v${one.versions.at(-1)}, ${one.versions.length} versions`}
                  </span>
                </Link>
              </li>
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}
