// The questions that are open now.
import { useQuery } from "@tanstack/react-query";
import { request } from "../api/client";
import { useMay } from "../session";

export function useApprovals() {
  const may = useMay("governance:read");
  return useQuery({
    queryKey: ["approvals"],
    queryFn: async ({ signal }) => (await request("get", "/api/v1/approvals", { signal })).data,
    enabled: may,
  });
}
