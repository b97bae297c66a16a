// Settings: the account, the theme, the server's health, and API tokens.
import { useQuery } from "@tanstack/react-query";
import { useRefreshOnEvents } from "../connection";
import { Copyable, Moment, useTitle } from "../parts/format";
import { Badge } from "../parts/status";
import { visible } from "../parts/value";
import { usePermission, useSession } from "../session";
import { chooseTheme, type Theme, useTheme } from "../theme";
import { Tokens } from "./tokens";

const REFRESH_INTERVAL_MS = 30_000;
const never = () => false;
const nothing = () => undefined;

export default function Settings() {
  useTitle("Settings");
  const manages = usePermission("token:manage");
  // No event changes this page; the stream only shows whether the server responds.
  useRefreshOnEvents(never, nothing);
  return (
    <div className="page">
      <h1>Settings</h1>
      <div className="settings">
        <Account />
        <Server />
        <Appearance />
      </div>
      {manages && <Tokens />}
    </div>
  );
}

const PERMISSION_TEXTS: Readonly<Record<string, string>> = {
  "workflow:read": "look at workflows and runs",
  "workflow:write": "add and change workflows",
  "workflow:execute": "start runs of registered workflows and let runs go on",
  "workflow:inline": "start runs of documents that are not registered",
  "run:cancel": "stop runs and change their course",
  "governance:read": "look at agents, gateways, policies, budgets and approvals",
  "governance:approve": "answer approvals",
  "governance:write": "change policies, budgets, roles and deployments",
  "agent:write": "change agents",
  "gateway:write": "change gateways",
  "audit:read": "read the audit and verify it",
  "token:manage": "make and revoke tokens",
};

function Account() {
  const session = useSession();
  return (
    <section className="card setting" aria-label="You">
      <h2>You</h2>
      <dl className="facts">
        <dt>Name</dt>
        <dd>{visible(session.principal)}</dd>
        <dt>Organisation</dt>
        <dd>{visible(session.organisation)}</dd>
        <dt>Roles</dt>
        <dd>{visible(session.roles.join(", ")) || "none"}</dd>
        <dt>Session</dt>
        <dd>
          <Copyable text={session.token_id} />
          {session.expires_at && (
            <>
              ends <Moment at={session.expires_at} />
            </>
          )}
        </dd>
      </dl>
      <details>
        <summary>You may do {session.permissions.length} things</summary>
        <ul className="may">
          {session.permissions.map((one) => (
            <li key={one}>
              {PERMISSION_TEXTS[one] ?? one} <code className="muted">{one}</code>
            </li>
          ))}
        </ul>
      </details>
    </section>
  );
}

interface Readiness {
  status: string;
  why?: string;
}

/** Reads the server's readiness, whatever the HTTP status. */
async function fetchReadiness(path: string, signal: AbortSignal): Promise<Readiness> {
  try {
    const answer = await fetch(path, { signal, cache: "no-store" });
    return (await answer.json()) as Readiness;
  } catch (error) {
    if (signal.aborted) throw error;
    return { status: "gone" };
  }
}

function Server() {
  const session = useSession();
  const ready = useQuery({
    queryKey: ["ready"],
    queryFn: ({ signal }) => fetchReadiness("/readyz", signal),
    refetchInterval: REFRESH_INTERVAL_MS,
  });
  const status = ready.data?.status ?? "looking";
  return (
    <section className="card setting" aria-label="The server">
      <h2>The server</h2>
      <dl className="facts">
        <dt>Health</dt>
        <dd>
          <Badge
            status={status}
            as={status === "ready" ? "good" : status === "looking" ? "calm" : "bad"}
          />
          {ready.data?.why && <span> {visible(ready.data.why)}</span>}
        </dd>
        <dt>Version</dt>
        <dd>{session.version}</dd>
        <dt>Address</dt>
        <dd>{location.origin}</dd>
        <dt>API</dt>
        <dd>
          <a href="/api/docs" target="_blank" rel="noreferrer">
            its routes
          </a>
          ,{" "}
          <a href="/api/v1/openapi.json" target="_blank" rel="noreferrer">
            as OpenAPI
          </a>
        </dd>
      </dl>
    </section>
  );
}

const THEMES: readonly [string, string, Theme | null][] = [
  ["system", "As the system", null],
  ["light", "Light", "light"],
  ["dark", "Dark", "dark"],
];

function Appearance() {
  const { chosen } = useTheme();
  return (
    <section className="card setting" aria-label="How it looks">
      <h2>How it looks</h2>
      <fieldset className="themes">
        <legend className="sr">Theme</legend>
        {THEMES.map(([word, label, theme]) => (
          <label key={word}>
            <input
              type="radio"
              name="theme"
              checked={chosen === theme}
              onChange={() => chooseTheme(theme)}
            />{" "}
            {label}
          </label>
        ))}
      </fieldset>
      <p className="muted small">Kept in this browser.</p>
    </section>
  );
}
