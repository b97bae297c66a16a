// Which page is shown: the path says it, and the server answers the same paths.
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

/** The parts of the governance room, in their order. */
export const GOVERNANCE = ["policies", "budgets", "agents", "gateways"] as const;
export type GovernancePart = (typeof GOVERNANCE)[number];

function decoded(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

/** The page at a path. */
export function page(path: string): Page {
  const [room = "", raw, ...more] = path.slice(1).split("/");
  const name = raw === undefined ? undefined : decoded(raw);
  if (more.length > 0 || name === null || name === "") return { name: "nowhere" };
  switch (room) {
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
      return name === undefined ? { name: room } : { name: "nowhere" };
    default:
      return { name: "nowhere" };
  }
}

const listeners = new Set<() => void>();
const tell = () => {
  for (const listener of listeners) listener();
};
addEventListener("popstate", tell);

/** How the address changes: as a step that one can go back from, or in place. */
export type Step = "push" | "replace";

/** Goes to a path. */
export function go(path: string, step: Step = "push"): void {
  if (step === "push") history.pushState(null, "", path);
  else history.replaceState(null, "", path);
  tell();
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** The path and query that are shown. */
export function useAddress(): string {
  return useSyncExternalStore(subscribe, () => location.pathname + location.search);
}

/** One word of the query, and how it is set. */
export function useWord(name: string): [string, (value: string) => void] {
  const query = useAddress().split("?")[1] ?? "";
  const set = (value: string) => {
    const words = new URLSearchParams(location.search);
    if (value === "") words.delete(name);
    else words.set(name, value);
    go(words.size > 0 ? `${location.pathname}?${words}` : location.pathname, "replace");
  };
  return [new URLSearchParams(query).get(name) ?? "", set];
}

/** A link that stays in the page. */
export function Link({
  href,
  ...rest
}: AnchorHTMLAttributes<HTMLAnchorElement> & { href: string }) {
  const onClick = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
      return;
    event.preventDefault();
    go(href);
  };
  return <a href={href} onClick={onClick} {...rest} />;
}

/** The path of a run. */
export const runPath = (run: string): string => `/runs/${encodeURIComponent(run)}`;
