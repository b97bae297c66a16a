// API tokens. A secret is shown once, when the token is created.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { request, type Schemas } from "../api/client";
import { Confirm } from "../parts/confirm";
import { Dialog } from "../parts/dialog";
import { Empty, ErrorMessage, Loading } from "../parts/feedback";
import { Copyable, Moment } from "../parts/format";
import { Badge } from "../parts/status";
import { visible } from "../parts/value";
import { useSession } from "../session";

type Token = Schemas["TokenShown"];

const ROLES = ["viewer", "operator", "approver", "admin"] as const;
const LIFETIMES: readonly [string, string][] = [
  ["86400", "1 day"],
  ["2592000", "30 days"],
  ["31536000", "1 year"],
  ["", "No expiry"],
];

export function Tokens() {
  const [sessions, setSessions] = useState(false);
  const [making, setMaking] = useState(false);
  const tokens = useQuery({
    queryKey: ["tokens"],
    queryFn: async ({ signal }) => (await request("get", "/api/v1/tokens", { signal })).data,
  });
  const shown = (tokens.data ?? []).filter((one) => sessions || !one.session);
  const hidden = (tokens.data ?? []).length - shown.length;
  return (
    <section className="card" aria-label="Tokens">
      <div className="bar card-head">
        <h2>Tokens</h2>
        <span className="grow" />
        <label className="choice">
          <input
            type="checkbox"
            checked={sessions}
            onChange={(event) => setSessions(event.target.checked)}
          />{" "}
          Console sessions{hidden > 0 && ` (${hidden})`}
        </label>
        <button type="button" onClick={() => setMaking(true)}>
          Create a token…
        </button>
      </div>
      {tokens.error && !tokens.data && <ErrorMessage error={tokens.error} />}
      {!tokens.data && !tokens.error && <Loading what="tokens" />}
      {tokens.data && shown.length === 0 && <Empty title="No tokens" />}
      {shown.length > 0 && <TokenTable tokens={shown} all={tokens.data ?? []} />}
      {making && <CreateToken onClose={() => setMaking(false)} />}
    </section>
  );
}

/** Ids of the tokens that a token was derived from: revoking any of them revokes it. */
export function ancestors(
  all: readonly Pick<Token, "token_id" | "parent">[],
  id: string,
): string[] {
  const found: string[] = [];
  let at = all.find((one) => one.token_id === id)?.parent;
  while (at && !found.includes(at)) {
    found.push(at);
    at = all.find((one) => one.token_id === found.at(-1))?.parent;
  }
  return found;
}

function TokenTable({ tokens, all }: { tokens: readonly Token[]; all: readonly Token[] }) {
  const session = useSession();
  const needed = ancestors(all, session.token_id);
  return (
    <div className="table stacks">
      <table>
        <thead>
          <tr>
            <th>Principal</th>
            <th>Roles</th>
            <th>Token</th>
            <th>Created</th>
            <th>Expires</th>
            <th>
              <span className="sr">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {tokens.map((one) => (
            <TokenRow key={one.token_id} token={one} needed={needed.includes(one.token_id)} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function TokenRow({ token, needed }: { token: Token; needed: boolean }) {
  const session = useSession();
  const queries = useQueryClient();
  const [confirming, setConfirming] = useState(false);
  const own = token.token_id === session.token_id;
  const over = token.permissions.length === 0;
  const revoke = async () => {
    await request("delete", "/api/v1/tokens/{token}", { path: { token: token.token_id } });
    await queries.invalidateQueries({ queryKey: ["tokens"] });
  };
  return (
    <tr>
      <td>
        <strong>{visible(token.principal)}</strong>
        {own && <span className="muted"> this session</span>}
        {needed && <span className="muted"> used to sign in</span>}
        {token.session && !own && <span className="muted"> console session</span>}
      </td>
      <td className="wraps">
        {visible([...token.roles, ...token.groups].join(", "))}{" "}
        {over && <Badge status="not valid" as="bad" />}
      </td>
      <td className="mono muted">{token.token_id}</td>
      <td data-label="Created">
        <Moment at={token.created_at} />
      </td>
      <td data-label="Expires">
        {token.expires_at ? <Moment at={token.expires_at} /> : <span className="muted">never</span>}
      </td>
      <td className="right">
        {!own && (
          <button
            type="button"
            onClick={() => setConfirming(true)}
            aria-label={`Revoke ${token.token_id}`}
          >
            Revoke…
          </button>
        )}
        {confirming && (
          <Confirm
            title={`Revoke the token of ${token.principal}?`}
            act="Revoke token"
            danger
            onClose={() => setConfirming(false)}
            onAct={revoke}
          >
            <p>
              <code>{token.token_id}</code> stops working at once, as do all tokens and sessions
              created with it. This cannot be undone.
            </p>
            {needed && (
              <p className="note">You signed in with this token: your session ends too.</p>
            )}
          </Confirm>
        )}
      </td>
    </tr>
  );
}

function NewToken({ secret, onClose }: { secret: string; onClose: () => void }) {
  return (
    <Dialog title="New token" onClose={onClose}>
      <p className="note">Copy it now: the server stores only its hash.</p>
      <p className="secret">
        <Copyable text={secret} />
      </p>
      <button type="button" className="primary" onClick={onClose}>
        Done
      </button>
    </Dialog>
  );
}

function Roles({
  roles,
  onChange,
}: {
  roles: readonly string[];
  onChange: (roles: readonly string[]) => void;
}) {
  return (
    <fieldset className="choices">
      <legend>Roles</legend>
      {ROLES.map((one) => (
        <label key={one}>
          <input
            type="checkbox"
            checked={roles.includes(one)}
            onChange={(event) =>
              onChange(
                event.target.checked ? [...roles, one] : roles.filter((role) => role !== one),
              )
            }
          />
          {one}
        </label>
      ))}
    </fieldset>
  );
}

function CreateToken({ onClose }: { onClose: () => void }) {
  const id = useId();
  const queries = useQueryClient();
  const [principal, setPrincipal] = useState("");
  const [roles, setRoles] = useState<readonly string[]>(["viewer"]);
  const [groups, setGroups] = useState("");
  const [life, setLife] = useState("2592000");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  const [made, setMade] = useState<string | null>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setRefused(null);
    try {
      const body = {
        principal: principal.trim(),
        roles,
        groups: groups
          .split(",")
          .map((one) => one.trim())
          .filter(Boolean),
        ...(life === "" ? {} : { expires_in_s: Number(life) }),
      };
      const { data } = await request("post", "/api/v1/tokens", { body });
      setMade(data.token);
      void queries.invalidateQueries({ queryKey: ["tokens"] });
    } catch (error) {
      setRefused(error);
    } finally {
      setBusy(false);
    }
  };
  if (made !== null) return <NewToken secret={made} onClose={onClose} />;
  return (
    <Dialog title="Create a token" onClose={onClose}>
      <form className="make" onSubmit={submit}>
        <div className="field">
          <label htmlFor={`${id}-who`}>Principal</label>
          <input
            id={`${id}-who`}
            required
            maxLength={128}
            value={principal}
            onChange={(event) => setPrincipal(event.target.value)}
          />
        </div>
        <Roles roles={roles} onChange={setRoles} />
        <div className="field">
          <label htmlFor={`${id}-groups`}>
            Approver groups <span className="muted small">separated by commas</span>
          </label>
          <input
            id={`${id}-groups`}
            value={groups}
            onChange={(event) => setGroups(event.target.value)}
          />
        </div>
        <div className="field">
          <label htmlFor={`${id}-life`}>Lifetime</label>
          <select id={`${id}-life`} value={life} onChange={(event) => setLife(event.target.value)}>
            {LIFETIMES.map(([word, label]) => (
              <option key={word} value={word}>
                {label}
              </option>
            ))}
          </select>
        </div>
        {refused !== null && <ErrorMessage error={refused} />}
        <div className="bar">
          <button
            type="submit"
            className="primary"
            disabled={busy || principal.trim() === "" || roles.length === 0}
          >
            Create token
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
