// The session: who is signed in, and with which permissions.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import {
  createContext,
  type FormEvent,
  type ReactNode,
  useContext,
  useEffect,
  useState,
} from "react";
import { onSignedOut, Problem, request, type Schemas, setCsrf } from "./api/client";
import { ErrorMessage } from "./parts/feedback";

export type Session = Schemas["SessionShown"];

export type Permission =
  | "workflow:read"
  | "workflow:write"
  | "workflow:execute"
  | "workflow:inline"
  | "run:cancel"
  | "governance:read"
  | "governance:approve"
  | "governance:write"
  | "agent:write"
  | "gateway:write"
  | "audit:read"
  | "token:manage";

const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("useSession is called outside a session");
  return session;
}

/** Whether the session has a permission. Pages hide what is not permitted; the server also refuses it. */
export function usePermission(permission: Permission): boolean {
  return useSession().permissions.includes(permission);
}

export async function signOut(): Promise<void> {
  await request("delete", "/api/v1/session");
  setCsrf(null);
  location.assign("/");
}

/** Renders its children in a session, and the sign-in form otherwise. */
export function RequireSession({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const session = useQuery({
    queryKey: ["session"],
    queryFn: async () => {
      const { data } = await request("get", "/api/v1/session");
      setCsrf(data.csrf_token ?? null);
      return data;
    },
    retry: (_, error) => !(error instanceof Problem && error.status === 401),
    retryDelay: 1_000,
    staleTime: Number.POSITIVE_INFINITY,
  });
  useEffect(
    () =>
      onSignedOut(() => {
        setCsrf(null);
        if (queries.getQueryData(["session"])) queries.resetQueries({ queryKey: ["session"] });
      }),
    [queries],
  );
  if (session.data) return <SessionContext value={session.data}>{children}</SessionContext>;
  if (session.error) return <SignIn onDone={() => session.refetch()} />;
  const gone = session.failureCount > 0;
  return (
    <main className="alone">
      <p role="status" className="muted">
        {gone ? "The server does not respond. Retrying…" : "Loading…"}
      </p>
    </main>
  );
}

function SignIn({ onDone }: { onDone: () => void }) {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setRefused(null);
    try {
      const { data } = await request("post", "/api/v1/session", { token: token.trim() });
      setCsrf(data.csrf_token ?? null);
      onDone();
    } catch (error) {
      setRefused(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className="alone">
      <form className="card sign-in" onSubmit={submit}>
        <h1 className="brand">
          <img src="/favicon.svg" alt="" width="28" height="28" /> Sluice
        </h1>
        <label htmlFor="token">Token</label>
        <input
          id="token"
          type="password"
          autoComplete="current-password"
          // biome-ignore lint/a11y/noAutofocus: the page has only this form
          autoFocus
          required
          spellCheck={false}
          placeholder="slk_…"
          value={token}
          onChange={(event) => setToken(event.target.value)}
        />
        <p className="muted small">
          The first start writes an admin token to <code>admin.token</code> in the data directory.
          Create more with <code>sluice tokens create</code>.
        </p>
        {refused !== null && <ErrorMessage error={refused} />}
        <button type="submit" className="primary" disabled={busy || token.trim() === ""}>
          {busy ? "Signing in…" : "Sign in"}
        </button>
      </form>
    </main>
  );
}
