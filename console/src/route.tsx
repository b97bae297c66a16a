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
  | { name: "not-found" };

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

const NOT_FOUND: Page = { name: "not-found" };

/** Pages by the first segment of the path; `name` is the second one, if there is any. */
const SECTIONS: Readonly<Record<string, (name: string | undefined) => Page>> = {
  "": (name) => (name === undefined ? { name: "runs" } : NOT_FOUND),
  runs: (name) => (name === undefined ? { name: "runs" } : { name: "run", run: name }),
  approvals: (name) =>
    name === undefined ? { name: "approvals" } : { name: "approval", approval: name },
  workflows: (name) =>
    name === undefined ? { name: "workflows" } : { name: "workflow", workflow: name },
  governance: (name) => {
    const part = GOVERNANCE.find((one) => one === (name ?? "policies"));
    return part === undefined ? NOT_FOUND : { name: "governance", part };
  },
  audit: (name) => (name === undefined ? { name: "audit" } : NOT_FOUND),
  cost: (name) => (name === undefined ? { name: "cost" } : NOT_FOUND),
  settings: (name) => (name === undefined ? { name: "settings" } : NOT_FOUND),
};

export function pageAt(path: string): Page {
  const [section = "", raw, ...more] = path.slice(1).split("/");
  const name = raw === undefined ? undefined : decodeSegment(raw);
  if (more.length > 0 || name === null || name === "") return NOT_FOUND;
  return Object.hasOwn(SECTIONS, section) ? (SECTIONS[section]?.(name) ?? NOT_FOUND) : NOT_FOUND;
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
