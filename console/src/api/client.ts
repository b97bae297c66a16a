// The one way to the API: typed by its own description, by the cookie of a session.
//
// What must hold: changes carry the session's CSRF token; whoever is not signed in
// any more is told to everybody who listens, once.
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Meta = Schemas["Meta"];

type Method = "get" | "post" | "put" | "patch" | "delete";
type Good<O> = O extends { responses: infer R }
  ? { [S in keyof R]: S extends 200 | 201 | 202 ? R[S] : never }[keyof R]
  : never;
type Json<G> = G extends { content: { "application/json": infer J } } ? J : never;

/** What a route answers: its data. */
export type Data<P extends keyof paths, M extends Method & keyof paths[P]> =
  Json<Good<paths[P][M]>> extends { data: infer D } ? D : never;

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
export const unreachable = (error: unknown): boolean =>
  error instanceof Problem && error.status === 0;

/** What stands for an answer of a server that does not give one. */
export const unreached = (): Problem =>
  new Problem(0, {
    title: "the server cannot be reached",
    code: "unreachable",
    detail: "it is tried again by itself",
  });

let csrf: string | null = null;
const strangers = new Set<() => void>();

/** Sets what changes are sent with. */
export function setCsrf(token: string | null): void {
  csrf = token;
}

/** Tells `listener` when the session counts no more. */
export function onSignedOut(listener: () => void): () => void {
  strangers.add(listener);
  return () => strangers.delete(listener);
}

/** Says that the session counts no more. */
export function signedOut(): void {
  for (const listener of strangers) listener();
}

export interface Wish {
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
export function place(template: string, wish: Pick<Wish, "path" | "query">): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(wish.path?.[name] ?? ""),
  );
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(wish.query ?? {})) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  return query.size > 0 ? `${filled}?${query}` : filled;
}

/** The problem that an answer is. */
export async function problem(answer: Response): Promise<Problem> {
  const told = (await answer.json().catch(() => ({}))) as Partial<Schemas["Problem"]>;
  return new Problem(answer.status, told);
}

/** Asks the API, and answers with data and what is said of it. */
export async function ask<
  P extends keyof paths & string,
  M extends Method & keyof paths[P] & string,
>(method: M, template: P, wish: Wish = {}): Promise<{ data: Data<P, M>; meta: Meta }> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (wish.body !== undefined) headers["content-type"] = "application/json";
  if (wish.token) headers.authorization = `Bearer ${wish.token}`;
  if (wish.key) headers["idempotency-key"] = wish.key;
  if (method !== "get" && csrf && !wish.token) headers["x-csrf-token"] = csrf;
  const request: RequestInit = {
    method: method.toUpperCase(),
    headers,
    credentials: "same-origin",
  };
  if (wish.body !== undefined) request.body = JSON.stringify(wish.body);
  if (wish.signal) request.signal = wish.signal;
  let answer: Response;
  try {
    answer = await fetch(place(template, wish), request);
  } catch (error) {
    if (wish.signal?.aborted) throw error;
    throw unreached();
  }
  if (!answer.ok) {
    const refused = await problem(answer);
    if (answer.status === 401 && !wish.token) signedOut();
    throw refused;
  }
  return (await answer.json()) as { data: Data<P, M>; meta: Meta };
}
