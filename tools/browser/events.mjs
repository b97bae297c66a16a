// Tests EventSource in a real browser: the server is killed and restarted, and the page misses
// no event and sees none twice.
//
//   node events.mjs BINARY CHROMIUM
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [binary, executablePath] = process.argv.slice(2);
const TIMEOUT_MS = 90_000;
const NAMES =
  "run.started run.status.changed run.completed run.failed run.cancelled run.timed_out run.recovered " +
  "node.queued node.waiting node.started node.stream.delta node.log node.retried node.completed " +
  "node.failed node.cancelled node.skipped node.timed_out node.blocked node.invalidated " +
  "node.provenance node.endorsed moderation.flagged contract.violated governance.decided " +
  "approval.requested approval.reminded approval.resolved budget.alert";

function must(holds, what) {
  if (!holds) throw new Error(what);
}

async function until(what, look) {
  const began = Date.now();
  for (;;) {
    const found = await look();
    if (found) return found;
    must(Date.now() - began < TIMEOUT_MS, `timed out: ${what}`);
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

const dir = mkdtempSync(join(tmpdir(), "sluice-browser-"));
const data = join(dir, "data");
const parts = Array.from({ length: 60 }, (_, n) => `part ${n} `);
writeFileSync(join(dir, "mock.yaml"), JSON.stringify({ "*": { chunks: parts, chunk_delay_ms: 60 } }));
const port = await freePort();
const origin = `http://127.0.0.1:${port}`;
let server;

async function serve() {
  const args = ["serve", "--data", data, "--listen", `127.0.0.1:${port}`, "--mock", join(dir, "mock.yaml")];
  server = spawn(binary, args, { stdio: "ignore" });
  await until("the server is ready", async () => {
    must(server.exitCode === null, "the server ended");
    return fetch(`${origin}/readyz`).then((answer) => answer.ok, () => false);
  });
}

async function kill(signal) {
  const ended = once(server, "exit");
  server.kill(signal);
  await ended;
}

let browser;
try {
  await serve();
  const token = readFileSync(join(data, "admin.token"), "utf8").trim();
  const authorization = `Bearer ${token}`;
  const api = async (path, options = {}) => {
    const headers = { authorization, "content-type": "application/json" };
    const answer = await fetch(origin + path, { headers, ...options });
    must(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
    return (await answer.json()).data;
  };
  const document = "name: long\nsteps:\n  - {id: one, command: Talk.}\n  - {id: two, depends_on: [one], command: Talk.}\n";
  const body = JSON.stringify({ document, default_agent: "mock" });
  const { run_id: run } = await api("/api/v1/runs", { method: "POST", body });

  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  // The content security policy of the API page forbids scripts; bypass it for the test.
  const context = await browser.newContext({ bypassCSP: true });
  const page = await context.newPage();
  await page.goto(`${origin}/api/docs`);
  const status = await page.evaluate(async (authorization) => {
    const answer = await fetch("/api/v1/session", { method: "POST", headers: { authorization } });
    return answer.status;
  }, authorization);
  must(status === 201, `signing in: ${status}`);
  must((await page.evaluate(() => document.cookie)) === "", "a script can read the cookie");
  await page.evaluate(([run, names]) => {
    window.seen = [];
    window.opened = 0;
    window.source = new EventSource(`/api/v1/runs/${run}/events`);
    window.source.onopen = () => (window.opened += 1);
    for (const name of names) {
      window.source.addEventListener(name, (event) => {
        const envelope = JSON.parse(event.data);
        window.seen.push([Number(event.lastEventId), envelope.eventId, event.type, envelope.type]);
        if (name === "run.completed") window.source.close();
      });
    }
  }, [run, NAMES.split(" ")]);
  const seen = () => page.evaluate(() => window.seen);
  await until("the page sees parts", async () => (await seen()).some((one) => one[2] === "node.stream.delta"));

  await kill("SIGKILL");
  const before = (await seen()).length;
  await until("the page notices", () => page.evaluate(() => window.source.readyState === EventSource.CONNECTING));
  await serve();
  await until("the run ends", async () => (await seen()).at(-1)[2] === "run.completed");

  const all = await seen();
  must(await page.evaluate(() => window.opened >= 2), "the connection was never closed");
  must(before > 0 && before < all.length, `killed after ${before} of ${all.length}`);
  all.forEach(([last, id, type, told], at) => {
    must(last === at + 1 && id === at + 1, `event ${at + 1} has the id ${last}, and its envelope ${id}`);
    must(type === told, `event ${last} has the type ${type}, and its envelope ${told}`);
  });
  const { last_event_id: last } = await api(`/api/v1/runs/${run}`);
  must(last === all.length, `the journal has ${last}, the page saw ${all.length}`);

  // An idle stream sends heartbeats that the page sees.
  await page.evaluate(() => {
    window.beats = [];
    window.source = new EventSource("/api/v1/events");
    window.source.addEventListener("heartbeat", (event) => {
      window.beats.push([event.lastEventId, JSON.parse(event.data).type]);
    });
  });
  const beats = await until("an idle stream sends a heartbeat", async () => {
    const beats = await page.evaluate(() => window.beats);
    return beats.length > 0 && beats;
  });
  must(JSON.stringify(beats[0]) === '["","heartbeat"]', `the heartbeat is ${JSON.stringify(beats[0])}`);
  console.log(`the page saw all ${all.length} events once, ${before} of them before the server was killed`);
} finally {
  await browser?.close();
  if (server && server.exitCode === null && server.signalCode === null) await kill("SIGTERM");
  rmSync(dir, { recursive: true, force: true });
}
