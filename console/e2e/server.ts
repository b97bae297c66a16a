// A Sluice server with the demo configuration, on a port and data directory of its own.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "@playwright/test";
import type { Schemas } from "../src/api/client";

const CONFIG = fileURLToPath(new URL("../../examples/demo/config.yaml", import.meta.url));

export interface ServerOptions {
  /** Path of the `sluice` binary. */
  binary: string;
  /** File in this folder that scripts the mock gateway. */
  answers: string;
  /** Python script that gets the path of the database before the server starts; empty for none. */
  databaseScript: string;
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("the probe has no port");
  return address.port;
}

export class Server {
  readonly origin: string;
  readonly #port: number;
  readonly #dir: string;
  readonly #options: ServerOptions;
  #process: ChildProcess | null = null;

  private constructor(options: ServerOptions, port: number) {
    this.#options = options;
    this.#port = port;
    this.#dir = mkdtempSync(join(tmpdir(), "sluice-console-"));
    this.origin = `http://127.0.0.1:${port}`;
  }

  static async open(options: ServerOptions): Promise<Server> {
    const server = new Server(options, await freePort());
    execFileSync(options.binary, ["apply", "-f", CONFIG, "--data", server.#data], {
      stdio: "ignore",
    });
    if (options.databaseScript !== "") {
      execFileSync("python3", ["-c", options.databaseScript, join(server.#data, "sluice.db")]);
    }
    await server.start();
    return server;
  }

  get #data(): string {
    return join(this.#dir, "data");
  }

  get adminToken(): string {
    return readFileSync(join(this.#data, "admin.token"), "utf8").trim();
  }

  async start(): Promise<void> {
    const mock = fileURLToPath(new URL(this.#options.answers, import.meta.url));
    const listen = `127.0.0.1:${this.#port}`;
    const args = ["serve", "--data", this.#data, "--listen", listen, "--mock", mock];
    const child = spawn(this.#options.binary, args, { stdio: "ignore" });
    this.#process = child;
    const isReady = async () => {
      if (child.exitCode !== null) throw new Error(`the server exited with ${child.exitCode}`);
      return await fetch(`${this.origin}/readyz`).then(
        (response) => response.ok,
        () => false,
      );
    };
    await expect.poll(isReady, { intervals: [50], message: "the server is ready" }).toBe(true);
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  }

  async close(): Promise<void> {
    await this.kill("SIGTERM");
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async #send(method: string, path: string, token: string, body?: unknown): Promise<Response> {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const init: RequestInit = { method, headers };
    if (body !== undefined) init.body = JSON.stringify(body);
    const response = await fetch(this.origin + path, init);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response;
  }

  async get<T>(path: string, token = this.adminToken): Promise<T> {
    return (await (await this.#send("GET", path, token)).json()).data;
  }

  async post<T>(path: string, body: unknown): Promise<T> {
    return (await (await this.#send("POST", path, this.adminToken, body)).json()).data;
  }

  /** Writes a registry row: `put("agents/ada", {...})`. */
  async put(row: string, body: unknown): Promise<void> {
    await this.#send("PUT", `/api/v1/${row}`, this.adminToken, body);
  }

  run(id: string): Promise<Schemas["RunDetail"]> {
    return this.get(`/api/v1/runs/${id}`);
  }

  state(id: string): Promise<Schemas["RunState"]> {
    return this.get(`/api/v1/runs/${id}/state`);
  }

  /** The first approval request of a run. */
  async approval(run: string): Promise<Schemas["Approval"]> {
    const { approvals } = await this.get<{ approvals: Schemas["Approval"][] }>(
      `/api/v1/runs/${run}`,
    );
    const [first] = approvals;
    if (!first) throw new Error(`${run} has no approval request`);
    return first;
  }

  /** Starts a run of a document and returns its id. */
  async startDocument(document: string, args: object = {}): Promise<string> {
    const body = { document, args, default_agent: "mock" };
    return (await this.post<{ run_id: string }>("/api/v1/runs", body)).run_id;
  }

  /** Starts a run of a stored workflow and returns its id. */
  async startWorkflow(name: string, args: object = {}): Promise<string> {
    const path = `/api/v1/workflows/${name}/runs`;
    return (await this.post<{ run_id: string }>(path, { args })).run_id;
  }

  async createToken(principal: string, role: string): Promise<string> {
    const body = { principal, roles: [role] };
    return (await this.post<{ token: string }>("/api/v1/tokens", body)).token;
  }

  async waitForStatus(run: string, status: string): Promise<void> {
    const read = async () => (await this.run(run)).status;
    await expect.poll(read, { intervals: [50], message: `status of ${run}` }).toBe(status);
  }
}
