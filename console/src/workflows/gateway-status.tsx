// The gateway of a workflow's runs and its health: the deployment's gateway, or the organisation's default.
import { useQuery } from "@tanstack/react-query";
import { request } from "../api/client";
import { Moment } from "../parts/format";
import { Badge } from "../parts/status";
import { visible } from "../parts/value";
import { usePermission } from "../session";

interface Row {
  id: string;
  workflow?: string;
  gateway?: string | null;
  active?: boolean;
  default?: boolean;
}

const REFRESH_INTERVAL_MS = 15_000;

export function GatewayStatus({ workflow }: { workflow: string }) {
  const may = usePermission("governance:read");
  const name = useQuery({
    queryKey: ["gateway of", workflow],
    queryFn: async ({ signal }) => {
      const [deployments, gateways] = await Promise.all([
        request("get", "/api/v1/deployments", { signal }),
        request("get", "/api/v1/gateways", { signal }),
      ]);
      const deployed = (deployments.data as unknown as Row[]).find(
        (one) => one.workflow === workflow && one.active !== false,
      );
      return (
        deployed?.gateway ??
        (gateways.data as unknown as Row[]).find((one) => one.default)?.id ??
        null
      );
    },
    enabled: may,
  });
  const health = useQuery({
    queryKey: ["gateway", name.data, "health"],
    queryFn: async ({ signal }) =>
      (
        await request("get", "/api/v1/gateways/{name}/health", {
          path: { name: name.data ?? "" },
          signal,
        })
      ).data,
    enabled: may && typeof name.data === "string",
    refetchInterval: REFRESH_INTERVAL_MS,
  });
  if (!may || !name.data) return null;
  const since = health.data?.history.at(-1)?.at;
  return (
    <p className="bar small">
      <span className="muted">Gateway</span> {visible(name.data)}
      {health.data && <Badge status={health.data.health} />}
      {since && (
        <span className="muted">
          since <Moment at={since} />
        </span>
      )}
    </p>
  );
}
