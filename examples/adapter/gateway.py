#!/usr/bin/env python3
"""A complete gateway for Sluice in Python's standard library. Use it as a template: replace
`work` with a call to your provider and keep the rest.

    export SLUICE_BRIDGE_KEY=... SLUICE_GATEWAY_TOKEN=... SLUICE_SERVERS=https://sluice.example.com
    python3 gateway.py SPOOL [PORT]

It passes `sluice gateways check`; docs/guide/adapters.md explains each case.
Invariant: a dispatch is in the spool before it is answered with 202, and a result is in the
spool before it is delivered. So a restart after a crash finds both.
"""
import hashlib, hmac, json, os, re, sys, threading, time
from datetime import datetime, timezone
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener


def origin(url):
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


class NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # never send our tokens to the target of a redirect


KEY, TOKEN = os.environ["SLUICE_BRIDGE_KEY"], os.environ["SLUICE_GATEWAY_TOKEN"]
SPOOL, PORT = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
# Results and tokens go only to these servers: a dispatch cannot choose the target.
SERVERS = [origin(url) for url in os.environ["SLUICE_SERVERS"].split()]
OUT = build_opener(ProxyHandler({}), NoRedirects)
BODY_MAX, RUNNING_MAX = 16 * 1024 * 1024, 100
WAITS = [0.2, 1, 5, 30, 60]  # seconds between attempts; the last one repeats
EXPIRES = KEPT = 24 * 3600   # how long delivery is attempted, and how long a result is kept
CONSTRAINTS = set()          # names of constraints that `work` enforces: none
LOCK = threading.RLock()
STOP = {}                    # running dispatches: an event that stops each


def work(dispatch, stop):
    """Does the work and returns fields of the result. `stop` is set when the dispatch is
    cancelled or times out: return soon then. `wait N` takes N seconds."""
    wait = re.fullmatch(r"wait (\d{1,4})", dispatch["command"])
    stop.wait(int(wait[1]) if wait else 0)
    # Without a cost the engine keeps the money reserved.
    return {"stdout": dispatch["command"], "cost": 0}


def now():
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def name_of(body):
    """Returns the file name of a dispatch; a hash, because step ids are arbitrary text."""
    ids = [body["run_id"], body["step_id"], body["dispatch_no"]]
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()


def load(name):
    try:
        with open(os.path.join(SPOOL, name + ".json"), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def save(name, kept):
    """Writes a file atomically and durably."""
    path = os.path.join(SPOOL, name)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(kept, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path + ".json")
    directory = os.open(SPOOL, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def check(body):
    """Returns why a dispatch is refused, or None if it is valid."""
    texts = ["run_id", "step_id", "provider"]
    if not isinstance(body, dict) or not all(isinstance(body.get(name), str) for name in texts):
        return "the ids or the provider are missing"
    if not re.fullmatch(r"run_[0-9a-f]{32}", body["run_id"]) or not body["step_id"]:
        return "`run_id` or `step_id` is not valid"
    for name in ["dispatch_no", "timeout_ms"]:
        if type(body.get(name)) is not int or not 1 <= body[name] <= 30 * 24 * 3600 * 1000:
            return f"`{name}` is not a valid number"
    if body["provider"] != "echo" or not isinstance(body.get("command", ""), str):
        return "the provider or the command is not supported"
    # Refuse a constraint that `work` does not enforce.
    constraints = body.get("governance_constraints", {})
    if not isinstance(constraints, dict) or set(constraints) - CONSTRAINTS:
        return "a constraint is not known"
    url, token = body.get("callback_url"), body.get("dispatch_token", "")
    try:
        ours = isinstance(url, str) and origin(url) in SERVERS
    except ValueError:
        ours = False
    if not ours or not isinstance(token, str) or not re.fullmatch("[ -~]*", token):
        return "`callback_url` does not belong to a server of this gateway"
    return None


def accept(body):
    """Stores a dispatch and starts it; returns False if too many are running. A known dispatch
    does not start again: if its result was delivered, it is delivered again."""
    name = name_of(body)
    with LOCK:
        kept = load(name)
        if kept is None and len(STOP) >= RUNNING_MAX:
            return False
        if kept is None:
            save(name, {"state": "accepted", "dispatch": body})
            STOP[name] = threading.Event()
            threading.Thread(target=execute, args=(name, body), daemon=True).start()
        elif kept["state"] == "delivered":
            save(name, {**kept, "state": "finished", "dispatch": body, "ended": time.time()})
            threading.Thread(target=deliver, args=(name,), daemon=True).start()
    return True


def execute(name, body):
    stop, box, began = STOP[name], {}, now()

    def run():
        try:
            box["done"] = {"status": "completed", **work({"command": "", **body}, stop)}
        except Exception as error:  # report every failure to the engine
            box["done"] = {"status": "failed", "error_code": "provider_error", "error": str(error)}

    worker = threading.Thread(target=run, daemon=True)
    until = time.monotonic() + body["timeout_ms"] / 1000
    worker.start()
    while worker.is_alive() and not stop.is_set() and time.monotonic() < until:
        worker.join(0.02)
    # Ignore the result of a stopped worker, except for its cost.
    failed = None
    if stop.is_set():
        failed = {"status": "failed", "error_code": "cancelled", "error": "the dispatch was cancelled"}
    elif worker.is_alive():
        failed = {"status": "timed_out", "error_code": "timeout", "error": "the dispatch timed out"}
    if failed:
        stop.set()
        worker.join(1)
        failed.update({k: v for k, v in box.get("done", {}).items() if k == "cost"})
    finish(name, {**(failed or box["done"]), "started_at": began, "completed_at": now()})


def finish(name, result):
    with LOCK:
        kept = load(name)
        ids = {field: kept["dispatch"][field] for field in ["run_id", "step_id", "dispatch_no"]}
        kept = {**kept, "ended": time.time(), "result": {**ids, **result}}
        save(name, {**kept, "state": "finished"})
        STOP.pop(name, None)
    deliver(name)


def deliver(name):
    """Delivers a result until the engine accepts it. A 4xx is final."""
    kept, tries = load(name), 0
    body, until = json.dumps(kept["result"]).encode(), kept["ended"] + EXPIRES
    headers = {"Content-Type": "application/json", "X-Gateway-Token": TOKEN,
               "X-Dispatch-Token": kept["dispatch"].get("dispatch_token", "")}
    while time.time() < until:
        try:
            with OUT.open(Request(kept["dispatch"]["callback_url"], body, headers), timeout=30):
                break
        except HTTPError as error:
            if 400 <= error.code < 500 and error.code not in (408, 425, 429):
                print(f"the engine refused a result: {error.code}", file=sys.stderr)
                break
        except (OSError, HTTPException):
            pass  # the engine is unreachable
        time.sleep(WAITS[min(tries, len(WAITS) - 1)])
        tries += 1
    with LOCK:
        save(name, {**kept, "state": "delivered"})


def recover():
    """Continues after a restart: reports unfinished work as `adapter_crash`, because its state
    is unknown, and delivers undelivered results."""
    for entry in os.scandir(SPOOL):
        if not entry.name.endswith(".json"):
            continue
        name = entry.name.removesuffix(".json")
        kept = load(name)
        if kept["state"] == "accepted":
            broken = {"status": "failed", "error_code": "adapter_crash", "error": "the gateway was restarted"}
            threading.Thread(target=finish, args=(name, broken), daemon=True).start()
        elif kept["state"] == "finished":
            threading.Thread(target=deliver, args=(name,), daemon=True).start()
        elif kept["ended"] < time.time() - KEPT:
            os.remove(entry.path)


class Handler(BaseHTTPRequestHandler):
    protocol_version, timeout = "HTTP/1.1", 60

    def log_message(self, *_):
        pass  # no log line per request

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status >= 400:  # an unread body must not be parsed as the next request
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/api/v2/health":
            return self.answer(200, {"status": "healthy"})
        return self.answer(404, {"title": "no such route"})

    def do_POST(self):
        given = self.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(given, f"Bearer {KEY}".encode()):
            return self.answer(401, {"title": "the key is missing or wrong"})
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,12}", length) or int(length) > BODY_MAX:
            return self.answer(413, {"title": "the body is too long or has no Content-Length"})
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            return self.answer(400, {"title": "the body is not JSON"})
        if self.path in ("/api/v2/dispatch", "/api/workflow/dispatch"):
            return self.dispatch(body)
        if self.path == "/api/v2/cancel":
            return self.cancel(body)
        return self.answer(404, {"title": "no such route"})

    def dispatch(self, body):
        if why := check(body):
            return self.answer(422, {"title": why})
        try:
            accepted = accept(body)
        except OSError:  # a full disk: do not acknowledge a dispatch that is not stored
            accepted = False
        if not accepted:
            return self.answer(503, {"title": "the gateway is overloaded"})
        ids = {"run_id": body["run_id"], "step_id": body["step_id"]}
        return self.answer(202, {"status": "dispatched", **ids, "dispatched_at": now()})

    def cancel(self, body):
        try:
            name = name_of(body)
        except (KeyError, TypeError):
            return self.answer(400, {"title": "the ids of the dispatch are missing"})
        with LOCK:
            if name in STOP:
                STOP[name].set()
                return self.answer(200, {"status": "cancelling"})
            known = load(name)
        return self.answer(*((200, {"status": "finished"}) if known else (404, {"title": "unknown"})))


if __name__ == "__main__":
    os.makedirs(SPOOL, mode=0o700, exist_ok=True)
    recover()
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    print(f"works at http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
