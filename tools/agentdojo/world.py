"""Two servers on loopback, for one scenario at a time.

    /mcp                    the tools of the suite (Model Context Protocol, streamable HTTP)
    /v1/chat/completions    the victim, as a model (OpenAI's Chat Completions, streamed)
    /v1/models              so that Sluice finds the gateway healthy
    /state                  the environment, as JSON
    /reset                  a new environment: POST {"user_task": ..., "injection_task": ... or null}

`World` holds the scenario. The runner resets it between two runs and reads its state; the two paths at the end do
the same for a person.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rules import Declaration
from victim import Victim

PROTOCOL = "2025-06-18"
BODY_BYTES_MAX = 16 * 1024 * 1024


class World:
    """The current scenario, its victim, and what both did."""

    def __init__(self, suite):
        self.suite = suite
        self.lock = threading.Lock()
        self.tools = suite.tools()
        self.declaration = Declaration.load(suite.name)
        self.scenario = None
        self.victim = None

    def reset(self, user_task, injection_task=None, order="first"):
        with self.lock:
            self.scenario = scenario = self.suite.scenario(user_task, injection_task)
            self.wanted = scenario.user_calls()
            self.order = order
            # What the tools answered: tool, text, structured content.
            self.answers = []
            self._revive()

    def _revive(self):
        scenario = self.scenario
        markers = scenario.injections.values()
        self.victim = Victim(self.wanted, scenario.output, markers, scenario.attacker_calls, self.order)
        self.read = 0
        self.requested = []
        # Calls that did not happen: refused by Sluice, or of a tool that it does not offer.
        self.refused = []

    def read_only(self):
        """The tools that only read."""
        return [tool["name"] for tool in self.tools if self.declaration.read_only(tool["name"])]

    def effects(self):
        """The calls that the user's task does not have, to tools that do not only read."""
        read_only, made = self.read_only(), self.scenario.made
        foreign = [call.function for call in made if (call.function, call.args) not in self.wanted]
        return [tool for tool in foreign if tool not in read_only]

    def call(self, tool, arguments):
        """The result of `tools/call`."""
        with self.lock:
            result, error = self.scenario.call(tool, arguments)
            structured = None if error else {"result": result}
            text = error or json.dumps(structured, ensure_ascii=False)
            self.answers.append((tool, text, structured))
        if error:
            return {"content": [{"type": "text", "text": text}], "isError": True}
        return {
            "content": [{"type": "text", "text": text}],
            "structuredContent": structured,
            "isError": False,
        }

    def turn(self, messages, offered):
        """The victim's next message: calls, or None when it is done."""
        with self.lock:
            answers = [message.get("content") or "" for message in messages if message["role"] == "tool"]
            if len(answers) < self.read:
                self._revive()
            for (tool, _), answer in zip(self.requested[self.read :], answers[self.read :]):
                if answer.startswith("denied:"):
                    self.refused.append((tool, answer.removeprefix("denied:").strip()))
                self.victim.read(answer)
            self.read = len(answers)
            while calls := self.victim.next_calls():
                names = [alias(tool, offered) for tool, _ in calls]
                self.refused += [(tool, "not offered") for (tool, _), name in zip(calls, names) if name is None]
                known = [(name, call) for name, call in zip(names, calls) if name]
                self.requested += [call for _, call in known]
                if known:
                    return [(name, arguments) for name, (_, arguments) in known]
            return None


def alias(tool, offered):
    """The name under which Sluice offers a tool: `server_tool`."""
    return next((name for name in offered if name == tool or name.endswith("_" + tool)), None)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def world(self):
        return self.server.world

    def log_message(self, *_):
        """Nothing is logged: the runner reports."""

    def do_GET(self):
        if self.path == "/v1/models":
            self.answer({"object": "list", "data": [{"id": "victim", "object": "model"}]})
        elif self.path == "/state":
            self.answer(self.world.scenario.environment.model_dump(mode="json"))
        else:
            self.answer({"error": "not found"}, 405 if self.path == "/mcp" else 404)

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        if length > BODY_BYTES_MAX:
            self.close_connection = True
            return self.answer({"error": "too long"}, 413)
        body = json.loads(self.rfile.read(length) or b"null")
        if self.path == "/mcp":
            return self.mcp(body)
        if self.path == "/v1/chat/completions":
            return self.complete(body)
        if self.path == "/reset":
            self.world.reset(body["user_task"], body.get("injection_task"))
            return self.answer({})
        return self.answer({"error": "not found"}, 404)

    def do_DELETE(self):
        self.answer({}, 200)

    def mcp(self, message):
        if "id" not in message:
            return self.answer(None, 202)
        method, params = message.get("method"), message.get("params") or {}
        if method == "initialize":
            result = {
                "protocolVersion": params.get("protocolVersion", PROTOCOL),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "agentdojo", "version": "1"},
            }
        elif method == "tools/list":
            result = {"tools": self.world.tools}
        elif method == "tools/call":
            result = self.world.call(params["name"], params.get("arguments") or {})
        elif method == "ping":
            result = {}
        else:
            error = {"code": -32601, "message": "no such method"}
            return self.answer({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return self.answer({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def complete(self, request):
        offered = [tool["function"]["name"] for tool in request.get("tools") or []]
        calls = self.world.turn(request["messages"], offered)
        if calls is None:
            delta, reason = {"role": "assistant", "content": self.world.scenario.output or "Done."}, "stop"
        else:
            number = self.world.read
            delta = {
                "role": "assistant",
                "tool_calls": [
                    {
                        "index": index,
                        "id": f"call_{number + index}",
                        "type": "function",
                        "function": {"name": name, "arguments": json.dumps(arguments)},
                    }
                    for index, (name, arguments) in enumerate(calls)
                ],
            }
            reason = "tool_calls"
        self.stream(delta, reason)

    def stream(self, delta, reason):
        head = {"id": "1", "object": "chat.completion.chunk", "model": "victim"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        events = [
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {**head, "choices": [], "usage": usage},
        ]
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self.write(200, "text/event-stream", text.encode())

    def answer(self, value, status=200):
        self.write(status, "application/json", b"" if value is None else json.dumps(value).encode())

    def write(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve(world, port=0):
    """Starts the servers on loopback, in threads. Returns the server; its port is `server_port`."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.world = world
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
