// Drives an official client of the Model Context Protocol line by line.
//
//   node drive.mjs DIRECTORY OPTIONS
//
// DIRECTORY contains `node_modules`; OPTIONS is JSON: `client` is `legacy` (SDK 1, with
// a handshake) or `modern` (SDK 2, the protocol of 2026-07-28), and either
// `http` {url, token, headers} or `stdio` {command, args, env, cwd} is the target.
// Each line of standard input is a request ({"list": true} or
// {"call": NAME, "args": {…}, "progress": true}); each line of standard output
// is a response. The first response is about the connection itself.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [directory, text] = process.argv.slice(2);
const options = JSON.parse(text);
const require = createRequire(pathToFileURL(join(directory, "package.json")));

function load() {
  if (options.client === "modern") {
    const sdk = require("@modelcontextprotocol/client");
    const stdio = require("@modelcontextprotocol/client/stdio");
    return { ...sdk, ...stdio };
  }
  return {
    ...require("@modelcontextprotocol/sdk/client/index.js"),
    ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    ...require("@modelcontextprotocol/sdk/client/stdio.js"),
  };
}

const { Client, StreamableHTTPClientTransport, StdioClientTransport } = load();

function transport() {
  if (options.stdio) {
    return new StdioClientTransport({ stderr: "inherit", ...options.stdio });
  }
  const headers = { ...options.http.headers };
  if (options.http.token) headers.authorization = `Bearer ${options.http.token}`;
  return new StreamableHTTPClientTransport(new URL(options.http.url), { requestInit: { headers } });
}

const about = { name: "drive", version: "1" };
const modern = { versionNegotiation: { mode: { pin: "2026-07-28" } } };
const client = new Client(about, options.client === "modern" ? modern : {});

const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const failed = (error) => ({
  failed: { message: String(error?.message ?? error), code: error?.code ?? null },
});

async function call(asked) {
  const progress = [];
  const told = asked.progress ? { onprogress: (one) => progress.push(one) } : {};
  const params = { name: asked.call, arguments: asked.args ?? {} };
  const result =
    options.client === "modern"
      ? await client.callTool(params, told)
      : await client.callTool(params, undefined, told);
  return { result, progress };
}

async function answer(asked) {
  if (asked.list) return await client.listTools();
  return await call(asked);
}

try {
  await client.connect(transport());
  say({ connected: { server: client.getServerVersion(), instructions: client.getInstructions() } });
} catch (error) {
  say(failed(error));
  process.exit(0);
}
for await (const line of createInterface({ input: process.stdin })) {
  try {
    say(await answer(JSON.parse(line)));
  } catch (error) {
    say(failed(error));
  }
}
await client.close();
process.exit(0);
