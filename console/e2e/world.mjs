// A server of its own and a browser before it, for tests of the console.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const PATIENCE_MS = 30_000;
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export function must(holds, what) {
  if (!holds) throw new Error(what);
}

/** Waits until `look` finds something. */
export async function until(what, look) {
  const began = Date.now();
  for (;;) {
    const found = await look();
    if (found) return found;
    must(Date.now() - began < PATIENCE_MS, `it never came to be: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

export class World {
  /** What a page complained of, beside a server that was killed. */
  complaints = [];

  /** `fill` is called with the data directory before the server starts. */
  static async open(binary, executablePath, { answers = "answers.yaml", fill = () => {} } = {}) {
    const world = new World();
    world.answers = answers;
    world.binary = binary;
    world.dir = mkdtempSync(join(tmpdir(), "sluice-console-"));
    world.data = join(world.dir, "data");
    const config = join(ROOT, "examples/demo/config.yaml");
    execFileSync(binary, ["apply", "-f", config, "--data", world.data], { stdio: "ignore" });
    fill(world.data);
    world.port = await freePort();
    world.origin = `http://127.0.0.1:${world.port}`;
    await world.serve();
    world.admin = readFileSync(join(world.data, "admin.token"), "utf8").trim();
    world.browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
    return world;
  }

  async serve() {
    const mock = fileURLToPath(new URL(this.answers, import.meta.url));
    const listen = `127.0.0.1:${this.port}`;
    const args = ["serve", "--data", this.data, "--listen", listen, "--mock", mock];
    this.server = spawn(this.binary, args, { stdio: "ignore" });
    await until("the server is ready", async () => {
      must(this.server.exitCode === null, "the server ended");
      return fetch(`${this.origin}/readyz`).then(
        (answer) => answer.ok,
        () => false,
      );
    });
  }

  async kill(signal) {
    const ended = once(this.server, "exit");
    this.server.kill(signal);
    await ended;
  }

  async api(path, body, token = this.admin) {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const request =
      body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
    const answer = await fetch(this.origin + path, request);
    must(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
    return (await answer.json()).data;
  }

  /** Writes a row of the registry. */
  async put(path, body) {
    const headers = { authorization: `Bearer ${this.admin}`, "content-type": "application/json" };
    const answer = await fetch(`${this.origin}/api/v1/${path}`, {
      method: "PUT",
      headers,
      body: JSON.stringify(body),
    });
    must(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
  }

  /** A run of a document; its id. */
  async start(document, args = {}) {
    const { run_id } = await this.api("/api/v1/runs", { document, args, default_agent: "mock" });
    return run_id;
  }

  async status(run, wanted) {
    await until(
      `${run} is ${wanted}`,
      async () => (await this.api(`/api/v1/runs/${run}`)).status === wanted,
    );
  }

  /** A page of somebody who is signed in. */
  async page({
    token = this.admin,
    colorScheme = "light",
    viewport = { width: 1360, height: 860 },
  } = {}) {
    const context = await this.browser.newContext({ colorScheme, viewport });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("pageerror", (error) => this.complaints.push(`${page.url()}: ${error}`));
    page.on("console", (message) => {
      const text = message.text();
      // A server that is killed, and the first look for a session, are no fault of the page.
      if (message.type() === "error" && !/Failed to load resource|ERR_/.test(text)) {
        this.complaints.push(`${page.url()}: ${text}`);
      }
    });
    await page.goto(this.origin);
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
    return page;
  }

  async close() {
    await this.browser?.close();
    if (this.server && this.server.exitCode === null && this.server.signalCode === null)
      await this.kill("SIGTERM");
    rmSync(this.dir, { recursive: true, force: true });
  }
}
