// A tool server made with the official SDK, for tests of our client.
//
//   node serve.mjs DIRECTORY stdio
//   node serve.mjs DIRECTORY http [json]
//
// DIRECTORY contains `node_modules`. Over HTTP the URL is the first line of
// standard output, responses are streams unless `json` is given, `/forget` ends all
// sessions, and the end of standard input ends the server.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { randomUUID } from "node:crypto";

const [tools, way, form] = process.argv.slice(2);
const require = createRequire(tools + "/package.json");
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { McpServer } = await load("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = await load("@modelcontextprotocol/sdk/server/stdio.js");
const { StreamableHTTPServerTransport } = await load("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { z } = await load("zod");

function server() {
  const made = new McpServer({ name: "counter", version: "1.0.0" });
  const numbers = { a: z.number(), b: z.number() };
  made.registerTool(
    "add",
    { description: "Adds.", inputSchema: numbers, outputSchema: { sum: z.number() }, annotations: { readOnlyHint: true } },
    async ({ a, b }) => ({ content: [{ type: "text", text: `${a + b}` }], structuredContent: { sum: a + b } }),
  );
  made.registerTool("fail", { description: "Fails.", inputSchema: {} }, async () => {
    throw new Error("on purpose");
  });
  made.registerTool("wait", { description: "Waits until it is given up.", inputSchema: {} }, (_, extra) => {
    return new Promise((done) => {
      extra.signal.addEventListener("abort", () => {
        process.stderr.write("given up\n");
        made.registerTool("late", { inputSchema: {} }, async () => ({ content: [{ type: "text", text: "late" }] }));
        done({ content: [] });
      });
    });
  });
  return made;
}

if (way === "stdio") {
  await server().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  const listener = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    if (request.headers.authorization !== "Bearer official-key-1") return response.writeHead(401).end();
    if (request.url === "/forget") {
      sessions.clear();
      return response.writeHead(204).end();
    }
    const known = request.headers["mcp-session-id"];
    let transport = sessions.get(known);
    if (!transport && known) return response.writeHead(404).end();
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        enableJsonResponse: form === "json",
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await server().connect(transport);
    }
    await transport.handleRequest(request, response, body ? JSON.parse(body) : undefined);
  });
  listener.listen(0, "127.0.0.1", () => {
    process.stdout.write(`http://127.0.0.1:${listener.address().port}/mcp\n`);
  });
  process.stdin.on("end", () => process.exit(0)).resume();
}
