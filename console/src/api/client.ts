// The one way to the API: typed by its own description, by the cookie of a session.
//
// What must hold: changes carry the session's CSRF token; whoever is not signed in
// any more is told to everybody who listens, once.
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Meta = Schemas["Meta"];

type Method = "get" | "post" | "put" | "patch" | "delete";
type SuccessResponse<O> = O extends { responses: infer R }
  ? { [S in keyof R]: S extends 200 | 201 | 202 ? R[S] : never }[keyof R]
  : never;
type Json<G> = G extends { content: { "application/json": infer J } } ? J : never;

/** What a route answers: its data. */
export type Data<P extends keyof paths, M extends Method & keyof paths[P]> =
  Json<SuccessResponse<paths[P][M]>> extends { data: infer D } ? D : never;

/** A refusal as the API sends it, or what stands for one when nothing was answered. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  /** What to do about it. */
  readonly remedy: string;
  readonly errors: readonly string[];
  readonly requestId: string | null;

  constructor(status: number, told: Partial<Schemas["Problem"]>) {
    super(told.title ?? `the server answered ${status}`);
    this.status = status;
    this.code = told.code ?? "unknown";
    this.remedy = told.detail ?? "";
    this.errors = told.errors ?? [];
    this.requestId = told.request_id ?? null;
  }
}

/** Whether the server was not reached at all. */
export const isUnreachable = (error: unknown): boolean =>
  error instanceof Problem && error.status === 0;

/** What stands for an answer of a server that does not give one. */
export const unreachableProblem = (): Problem =>
  new Problem(0, {
    title: "the server cannot be reached",
    code: "unreachable",
    detail: "it is tried again by itself",
  });

let csrf: string | null = null;
const signOutListeners = new Set<() => void>();

/** Sets what changes are sent with. */
export function setCsrf(token: string | null): void {
  csrf = token;
}

/** Tells `listener` when the session counts no more. */
export function onSignedOut(listener: () => void): () => void {
  signOutListeners.add(listener);
  return () => signOutListeners.delete(listener);
}

/** Says that the session counts no more. */
export function notifySignedOut(): void {
  for (const listener of signOutListeners) listener();
}

export interface RequestOptions {
  path?: Record<string, string>;
  query?: Record<string, string | number | null | undefined>;
  body?: unknown;
  /** A token instead of the cookie: to sign in. */
  token?: string;
  /** The same key means the same change. */
  key?: string;
  signal?: AbortSignal;
}

/** A path of the API with its names filled in. */
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

/** The problem that an answer is. */
export async function readProblem(response: Response): Promise<Problem> {
  const body = (await response.json().catch(() => ({}))) as Partial<Schemas["Problem"]>;
  return new Problem(response.status, body);
}

/** Asks the API, and answers with data and what is said of it. */
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
