// Client-side routing. The server serves the console at the same paths.
import { type AnchorHTMLAttributes, type MouseEvent, useSyncExternalStore } from "react";

export type Page =
  | { name: "runs" }
  | { name: "run"; run: string }
  | { name: "approvals" }
  | { name: "approval"; approval: string }
  | { name: "workflows" }
  | { name: "workflow"; workflow: string }
  | { name: "governance"; part: GovernancePart }
  | { name: "audit" }
  | { name: "cost" }
  | { name: "settings" }
  | { name: "nowhere" };

/** Sections of the governance page, in order. */
export const GOVERNANCE = ["policies", "budgets", "agents", "gateways"] as const;
export type GovernancePart = (typeof GOVERNANCE)[number];

function decodeSegment(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

export function pageAt(path: string): Page {
  const [section = "", raw, ...more] = path.slice(1).split("/");
  const name = raw === undefined ? undefined : decodeSegment(raw);
  if (more.length > 0 || name === null || name === "") return { name: "nowhere" };
  switch (section) {
    case "":
      return name === undefined ? { name: "runs" } : { name: "nowhere" };
    case "runs":
      return name === undefined ? { name: "runs" } : { name: "run", run: name };
    case "approvals":
      return name === undefined ? { name: "approvals" } : { name: "approval", approval: name };
    case "workflows":
      return name === undefined ? { name: "workflows" } : { name: "workflow", workflow: name };
    case "governance": {
      const part = GOVERNANCE.find((one) => one === (name ?? "policies"));
      return part === undefined ? { name: "nowhere" } : { name: "governance", part };
    }
    case "audit":
    case "cost":
    case "settings":
      return name === undefined ? { name: section } : { name: "nowhere" };
    default:
      return { name: "nowhere" };
  }
}

const listeners = new Set<() => void>();
const notify = () => {
  for (const listener of listeners) listener();
};
addEventListener("popstate", notify);

/** Whether navigation adds a history entry or replaces the current one. */
export type HistoryMode = "push" | "replace";

export function navigate(path: string, mode: HistoryMode = "push"): void {
  if (mode === "push") history.pushState(null, "", path);
  else history.replaceState(null, "", path);
  notify();
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** The current path and query. */
export function useLocation(): string {
  return useSyncExternalStore(subscribe, () => location.pathname + location.search);
}

/** A query parameter and its setter. Setting it replaces the history entry. */
export function useQueryParam(name: string): [string, (value: string) => void] {
  const query = useLocation().split("?")[1] ?? "";
  const set = (value: string) => {
    const params = new URLSearchParams(location.search);
    if (value === "") params.delete(name);
    else params.set(name, value);
    navigate(params.size > 0 ? `${location.pathname}?${params}` : location.pathname, "replace");
  };
  return [new URLSearchParams(query).get(name) ?? "", set];
}

/** A link that navigates without loading a page. */
export function Link({
  href,
  ...rest
}: AnchorHTMLAttributes<HTMLAnchorElement> & { href: string }) {
  const onClick = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
      return;
    event.preventDefault();
    navigate(href);
  };
  return <a href={href} onClick={onClick} {...rest} />;
}

export const runPath = (run: string): string => `/runs/${encodeURIComponent(run)}`;
