// The only HTTP client of the console: typed by the OpenAPI description, authenticated by the
// session cookie.
//
// INVARIANT: every request that changes something carries the session's CSRF token. A 401
// notifies the listeners of `onSignedOut`.
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Meta = Schemas["Meta"];

type Method = "get" | "post" | "put" | "patch" | "delete";
type SuccessResponse<O> = O extends { responses: infer R }
  ? { [S in keyof R]: S extends 200 | 201 | 202 ? R[S] : never }[keyof R]
  : never;
type Json<G> = G extends { content: { "application/json": infer J } } ? J : never;

/** The `data` field of a route's response. */
export type Data<P extends keyof paths, M extends Method & keyof paths[P]> =
  Json<SuccessResponse<paths[P][M]>> extends { data: infer D } ? D : never;

/** A problem response of the API, or a stand-in when the server did not respond. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  /** What the user can do. */
  readonly remedy: string;
  readonly errors: readonly string[];
  readonly requestId: string | null;

  constructor(status: number, body: Partial<Schemas["ProblemDetails"]>) {
    super(body.title ?? `the server responded with status ${status}`);
    this.status = status;
    this.code = body.code ?? "unknown";
    this.remedy = body.detail ?? "";
    this.errors = body.errors ?? [];
    this.requestId = body.request_id ?? null;
  }
}

/** Whether the server did not respond at all. */
export const isUnreachable = (error: unknown): boolean =>
  error instanceof Problem && error.status === 0;

/** The stand-in for a missing response. */
export const unreachableProblem = (): Problem =>
  new Problem(0, {
    title: "the server cannot be reached",
    code: "unreachable",
    detail: "the console retries automatically",
  });

let csrf: string | null = null;
const signOutListeners = new Set<() => void>();

/** Sets the CSRF token of later requests. */
export function setCsrf(token: string | null): void {
  csrf = token;
}

/** Calls `listener` when the session has expired or was revoked. Returns a function that removes it. */
export function onSignedOut(listener: () => void): () => void {
  signOutListeners.add(listener);
  return () => signOutListeners.delete(listener);
}

/** Notifies the listeners that the session is no longer valid. */
export function notifySignedOut(): void {
  for (const listener of signOutListeners) listener();
}

export interface RequestOptions {
  path?: Record<string, string>;
  query?: Record<string, string | number | null | undefined>;
  body?: unknown;
  /** Bearer token to use instead of the session cookie. */
  token?: string;
  /** Idempotency key: the server performs requests with the same key once. */
  key?: string;
  signal?: AbortSignal;
}

/** The URL of a route: path parameters are filled in, empty query parameters are left out. */
export function apiUrl(template: string, options: Pick<RequestOptions, "path" | "query">): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(options.path?.[name] ?? ""),
  );
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  return query.size > 0 ? `${filled}?${query}` : filled;
}

export async function readProblem(response: Response): Promise<Problem> {
  const body = (await response.json().catch(() => ({}))) as Partial<Schemas["ProblemDetails"]>;
  return new Problem(response.status, body);
}

/** Sends a request to the API. Throws a `Problem` unless the server answers with success. */
export async function request<
  P extends keyof paths & string,
  M extends Method & keyof paths[P] & string,
>(method: M, template: P, options: RequestOptions = {}): Promise<{ data: Data<P, M>; meta: Meta }> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (options.body !== undefined) headers["content-type"] = "application/json";
  if (options.token) headers.authorization = `Bearer ${options.token}`;
  if (options.key) headers["idempotency-key"] = options.key;
  if (method !== "get" && csrf && !options.token) headers["x-csrf-token"] = csrf;
  const init: RequestInit = {
    method: method.toUpperCase(),
    headers,
    credentials: "same-origin",
  };
  if (options.body !== undefined) init.body = JSON.stringify(options.body);
  if (options.signal) init.signal = options.signal;
  let response: Response;
  try {
    response = await fetch(apiUrl(template, options), init);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw unreachableProblem();
  }
  if (!response.ok) {
    const failure = await readProblem(response);
    if (response.status === 401 && !options.token) notifySignedOut();
    throw failure;
  }
  return (await response.json()) as { data: Data<P, M>; meta: Meta };
}
