"""A Sluice server for one suite: a fresh data directory, one tool server, one agent whose model is the victim."""

import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 20
POLL_SECONDS = 0.01


def _read(path):
    return path.read_text() if path.exists() else ""


class Sluice:
    """Starts on `with`, and ends its own process by its id."""

    def __init__(self, binary, suite, port, policies=None, read_only=()):
        """`policies` is a directory: its `*.cedar` files hold for every suite, its subdirectory `suite` for this one.
        `read_only` are the tools that only read, if the directory declares nothing about tools.
        """
        self.binary, self.suite, self.port = str(binary), suite, port
        self.policies, self.read_only = policies and Path(policies), sorted(read_only)
        self.process = None

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="sluice-agentdojo-")
        self.home = Path(self.directory.name)
        self._run("policies", "init", "policies")
        self._write_files()
        self._run("apply", "-f", "setup.yaml")
        log = (self.home / "serve.log").open("wb")
        self.process = subprocess.Popen(
            [self.binary, "serve", "--listen", "127.0.0.1:0"],
            cwd=self.home,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=(self.home / "serve.out").open("wb"),
            stderr=log,
        )
        self.url = self._wait_for_address()
        self.token = (self.home / "data" / "admin.token").read_text().strip()
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.directory.cleanup()

    def _write_files(self):
        """The settings and the setup. The directory of a suite may hold `*.cedar`, `tool_server.toml` (lines for the
        table of the tool server) and `setup.json` (more sections of the setup).
        """
        more, extra = "", {}
        if self.policies:
            own = self.policies / self.suite
            for file in sorted([*self.policies.glob("*.cedar"), *own.glob("*.cedar")]):
                (self.home / "policies" / file.name).write_text(file.read_text())
            more = _read(own / "tool_server.toml")
            extra = json.loads(_read(own / "setup.json") or "{}")
        here = f"http://127.0.0.1:{self.port}"
        settings = [
            'data = "data"',
            "[outbound]",
            f'allow = ["127.0.0.1:{self.port}"]',
            "[limits]",
            "rate_per_second = 1000000",
            "rate_burst = 1000000",
            f"[tool_servers.{self.suite}]",
            f'url = "{here}/mcp"',
            more or f"read_only_tools = {json.dumps(self.read_only)}",
        ]
        (self.home / "sluice.toml").write_text("\n".join(settings) + "\n")
        setup = {
            "gateways": {
                "victim": {
                    "provider": "openai",
                    "base_url": f"{here}/v1",
                    "environment": "local",
                    "default": True,
                    "tool_servers": [self.suite],
                }
            },
            "agents": {"assistant": {"trust_level": 5, "model": "victim", "gateway": "victim"}},
            "workflows": ["task.lobsterx.yaml"],
            "policy_dir": "policies",
            **extra,
        }
        (self.home / "setup.yaml").write_text(json.dumps(setup))
        document = {
            "name": "task",
            "args": {"prompt": {"type": "string", "required": True}},
            "steps": [
                {
                    "id": "do",
                    "agent": "assistant",
                    "command": "{{ args.prompt }}",
                    "tools": [f"{self.suite}.*"],
                    "timeout": 120,
                }
            ],
        }
        (self.home / "task.lobsterx.yaml").write_text(json.dumps(document))

    def _environment(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
        return {**kept, "SLUICE_LOG_LEVEL": "warn"}

    def _run(self, *arguments):
        done = subprocess.run(
            [self.binary, *arguments], cwd=self.home, env=self._environment(), capture_output=True, text=True, timeout=120
        )
        if done.returncode:
            raise RuntimeError(f"sluice {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def _wait_for_address(self):
        until = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < until and self.process.poll() is None:
            for line in (self.home / "serve.out").read_text().splitlines():
                if line.startswith("sluice serves at "):
                    return line.removeprefix("sluice serves at ").split()[0]
            time.sleep(0.05)
        raise RuntimeError("sluice serve did not start:\n" + (self.home / "serve.log").read_text())

    def request(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode(errors='replace')}") from error

    def events(self, run):
        """The events of a run."""
        cursor, found = 0, []
        while page := self.request("GET", f"/runs/{run}/journal?limit=500&cursor={cursor}")["data"]:
            found += page
            cursor = page[-1]["eventId"]
        return found

    def perform(self, prompt, approve, seconds):
        """Runs the workflow with a prompt. `approve(tool, arguments)` answers each approval."""
        run = self.request("POST", "/workflows/task/runs", {"args": {"prompt": prompt}})["data"]["run_id"]
        until = time.monotonic() + seconds
        asked, answered = [], set()
        while time.monotonic() < until:
            view = self.request("GET", f"/runs/{run}")["data"]
            if view["status"] in ("completed", "failed", "cancelled", "timed_out"):
                return view, asked
            for approval in view["approvals"]:
                if approval["status"] == "pending" and approval["approval_id"] not in answered:
                    answered.add(approval["approval_id"])
                    asked.append(self._resolve(approval["approval_id"], approve))
            time.sleep(POLL_SECONDS)
        self.request("POST", f"/runs/{run}/cancel", {})
        raise RuntimeError(f"{run} did not end within {seconds} seconds")

    def _resolve(self, approval, approve):
        shown = self.request("GET", f"/approvals/{approval}")["data"]
        action = shown["action"] or {}
        tool = ((action.get("tools") or [""])[0]).removeprefix(f"{self.suite}.")
        agreed = approve(tool, action.get("inputs") or {})
        body = {"decision": "approve"} if agreed else {"decision": "reject", "comment": "the user did not ask for this"}
        self.request("POST", f"/approvals/{approval}/resolve", body)
        return {"tool": tool, "arguments": action.get("inputs"), "reasons": shown.get("reasons"), "approved": agreed}
