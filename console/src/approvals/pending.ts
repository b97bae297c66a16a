// The pending approval requests.
import { useQuery } from "@tanstack/react-query";
import { request } from "../api/client";
import { usePermission } from "../session";

export function usePendingApprovals() {
  const may = usePermission("governance:read");
  return useQuery({
    queryKey: ["approvals"],
    queryFn: async ({ signal }) => (await request("get", "/api/v1/approvals", { signal })).data,
    enabled: may,
  });
}
