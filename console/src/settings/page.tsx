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
  "workflow:read": "view workflows and runs",
  "workflow:write": "create and change workflows",
  "workflow:execute": "start runs of stored workflows, and resume runs",
  "workflow:inline": "start runs of documents that are not stored",
  "run:cancel": "stop runs and change their course",
  "governance:read": "view agents, gateways, policies, budgets and approvals",
  "governance:approve": "decide approvals",
  "governance:write": "change policies, budgets, roles and deployments",
  "agent:write": "change agents",
  "gateway:write": "change gateways",
  "audit:read": "read and verify the audit log",
  "token:manage": "create and revoke tokens",
};

function Account() {
  const session = useSession();
  return (
    <section className="card setting" aria-label="Your account">
      <h2>Your account</h2>
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
        <summary>{session.permissions.length} permissions</summary>
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
    return { status: "unreachable" };
  }
}

function Server() {
  const session = useSession();
  const ready = useQuery({
    queryKey: ["ready"],
    queryFn: ({ signal }) => fetchReadiness("/readyz", signal),
    refetchInterval: REFRESH_INTERVAL_MS,
  });
  const status = ready.data?.status ?? "checking";
  return (
    <section className="card setting" aria-label="Server">
      <h2>Server</h2>
      <dl className="facts">
        <dt>Health</dt>
        <dd>
          <Badge
            status={status}
            as={status === "ready" ? "good" : status === "checking" ? "calm" : "bad"}
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
            Routes
          </a>
          ,{" "}
          <a href="/api/v1/openapi.json" target="_blank" rel="noreferrer">
            OpenAPI
          </a>
        </dd>
      </dl>
    </section>
  );
}

const THEMES: readonly [string, string, Theme | null][] = [
  ["system", "System", null],
  ["light", "Light", "light"],
  ["dark", "Dark", "dark"],
];

function Appearance() {
  const { chosen } = useTheme();
  return (
    <section className="card setting" aria-label="Appearance">
      <h2>Appearance</h2>
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
      <p className="muted small">Stored in this browser.</p>
    </section>
  );
}
