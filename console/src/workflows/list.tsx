// The workflows that can be started by name.
import { useQuery } from "@tanstack/react-query";
import { ask } from "../api/client";
import { useTitle } from "../parts/figures";
import { Empty, Loading, Refusal } from "../parts/states";
import { Link } from "../route";

export function WorkflowList() {
  useTitle("Workflows");
  const all = useQuery({
    queryKey: ["workflows"],
    queryFn: async ({ signal }) => (await ask("get", "/api/v1/workflows", { signal })).data,
  });
  return (
    <div className="page">
      <h1>Workflows</h1>
      {all.error && !all.data && <Refusal error={all.error} />}
      <div className="card">
        {!all.data && !all.error && <Loading what="workflows" />}
        {all.data?.length === 0 && (
          <Empty title="No workflows yet">
            <code>sluice apply -f FILE</code>
          </Empty>
        )}
        {all.data && all.data.length > 0 && (
          <ul className="names">
            {all.data.map((one) => (
              <li key={one.name}>
                <Link href={`/workflows/${encodeURIComponent(one.name)}`}>
                  <strong className="grow cut">{one.name}</strong>
                  <span className="muted small">
                    {one.versions.length === 1 ? `v${one.versions[0]}` : `v${one.versions.at(-1)}, ${one.versions.length} versions`}
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
