#!/usr/bin/env python3
"""A whole gateway for Sluice, in Python's standard library alone. A template: put your
provider where `work` is, and keep what is around it.

    export SLUICE_BRIDGE_KEY=... SLUICE_GATEWAY_TOKEN=... SLUICE_SERVERS=https://sluice.example.com
    python3 gateway.py SPOOL [PORT]

`sluice gateways check` passes; docs/guide/adapters.md says what each case is for.
What must hold: a dispatch is in the spool before it is answered for, and its result
before anybody is told. Whatever is killed, the next start finds it there.
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


class Stay(HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # whoever sends us on must not get our tokens sent there


KEY, TOKEN = os.environ["SLUICE_BRIDGE_KEY"], os.environ["SLUICE_GATEWAY_TOKEN"]
SPOOL, PORT = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
# Results and the token go to these and nobody else: a dispatch must not choose freely.
SERVERS = [origin(url) for url in os.environ["SLUICE_SERVERS"].split()]
OUT = build_opener(ProxyHandler({}), Stay)
BODY_MAX, RUNNING_MAX = 16 * 1024 * 1024, 100
WAITS = [0.2, 1, 5, 30, 60]  # seconds between tries; the last again and again
EXPIRES = KEPT = 24 * 3600   # how long a result is tried, and remembered once it is taken
CONSTRAINTS = set()          # names of constraints that `work` keeps to: none here
LOCK = threading.RLock()
STOP = {}                    # by dispatch that is under way: an event that stops it


def work(dispatch, stop):
    """Does the work, and answers with fields of the result. `stop` is set when it is
    no longer wanted or takes too long: end soon then. `wait N` takes N seconds."""
    wait = re.fullmatch(r"wait (\d{1,4})", dispatch["command"])
    stop.wait(int(wait[1]) if wait else 0)
    # What it cost is told, or the engine keeps what it reserved.
    return {"stdout": dispatch["command"], "cost": 0}


def now():
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def name_of(body):
    """A dispatch as the name of its file, whatever its step is called."""
    ids = [body["run_id"], body["step_id"], body["dispatch_no"]]
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()


def load(name):
    try:
        with open(os.path.join(SPOOL, name + ".json"), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def save(name, kept):
    """Whole or not at all, and on the disk when this is over."""
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
    """Why a body is no dispatch that is done here; nothing if it is one."""
    texts = ["run_id", "step_id", "provider"]
    if not isinstance(body, dict) or not all(isinstance(body.get(name), str) for name in texts):
        return "the ids or the provider are missing"
    if not re.fullmatch(r"run_[0-9a-f]{32}", body["run_id"]) or not body["step_id"]:
        return "an id is none"
    for name in ["dispatch_no", "timeout_ms"]:
        if type(body.get(name)) is not int or not 1 <= body[name] <= 30 * 24 * 3600 * 1000:
            return f"`{name}` is no number that makes sense"
    if body["provider"] != "echo" or not isinstance(body.get("command", ""), str):
        return "nobody here does that"
    # A constraint that nobody keeps to must not look as if somebody did.
    asked = body.get("governance_constraints", {})
    if not isinstance(asked, dict) or set(asked) - CONSTRAINTS:
        return "a constraint is not known here"
    url, token = body.get("callback_url"), body.get("dispatch_token", "")
    try:
        ours = isinstance(url, str) and origin(url) in SERVERS
    except ValueError:
        ours = False
    if not ours or not isinstance(token, str) or not re.fullmatch("[ -~]*", token):
        return "`callback_url` is not of a server that this gateway works for"
    return None


def take(body):
    """Remembers a dispatch and begins it; says whether there was room. One that is known
    is not begun again: if it is over, whoever sends it again is brought the result again."""
    name = name_of(body)
    with LOCK:
        kept = load(name)
        if kept is None and len(STOP) >= RUNNING_MAX:
            return False
        if kept is None:
            save(name, {"state": "accepted", "dispatch": body})
            STOP[name] = threading.Event()
            threading.Thread(target=live, args=(name, body), daemon=True).start()
        elif kept["state"] == "delivered":
            save(name, {**kept, "state": "finished", "dispatch": body, "ended": time.time()})
            threading.Thread(target=deliver, args=(name,), daemon=True).start()
    return True


def live(name, body):
    stop, box, began = STOP[name], {}, now()

    def run():
        try:
            box["done"] = {"status": "completed", **work({"command": "", **body}, stop)}
        except Exception as error:  # whatever it is, the engine is told
            box["done"] = {"status": "failed", "error_code": "provider_error", "error": str(error)}

    worker = threading.Thread(target=run, daemon=True)
    until = time.monotonic() + body["timeout_ms"] / 1000
    worker.start()
    while worker.is_alive() and not stop.is_set() and time.monotonic() < until:
        worker.join(0.02)
    # Whatever it says once it was stopped: it was not wanted, or late. What it cost counts.
    failed = None
    if stop.is_set():
        failed = {"status": "failed", "error_code": "cancelled", "error": "it was cancelled"}
    elif worker.is_alive():
        failed = {"status": "timed_out", "error_code": "timeout", "error": "it took too long"}
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
    """Brings a result to the engine until it has it. 4xx is a no for good."""
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
                print(f"a result is not taken: {error.code}", file=sys.stderr)
                break
        except (OSError, HTTPException):
            pass  # the engine is away
        time.sleep(WAITS[min(tries, len(WAITS) - 1)])
        tries += 1
    with LOCK:
        save(name, {**kept, "state": "delivered"})


def recover():
    """What an earlier life left: unfinished work is told as broken off, since nobody
    knows how far it came; results that were not taken are brought."""
    for entry in os.scandir(SPOOL):
        if not entry.name.endswith(".json"):
            continue
        name = entry.name.removesuffix(".json")
        kept = load(name)
        if kept["state"] == "accepted":
            broken = {"status": "failed", "error_code": "adapter_crash", "error": "it broke off"}
            threading.Thread(target=finish, args=(name, broken), daemon=True).start()
        elif kept["state"] == "finished":
            threading.Thread(target=deliver, args=(name,), daemon=True).start()
        elif kept["ended"] < time.time() - KEPT:
            os.remove(entry.path)


class Door(BaseHTTPRequestHandler):
    protocol_version, timeout = "HTTP/1.1", 60

    def log_message(self, *_):
        pass  # a line for every request would say nothing new

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status >= 400:  # a body that was not read must not be taken for a request
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/api/v2/health":
            return self.answer(200, {"status": "healthy"})
        return self.answer(404, {"title": "there is no such place"})

    def do_POST(self):
        shown = self.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(shown, f"Bearer {KEY}".encode()):
            return self.answer(401, {"title": "the key is missing or wrong"})
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,12}", length) or int(length) > BODY_MAX:
            return self.answer(413, {"title": "the body is too long, or does not say how long"})
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            return self.answer(400, {"title": "the body is no JSON"})
        if self.path in ("/api/v2/dispatch", "/api/workflow/dispatch"):
            return self.dispatch(body)
        if self.path == "/api/v2/cancel":
            return self.cancel(body)
        return self.answer(404, {"title": "there is no such place"})

    def dispatch(self, body):
        if why := check(body):
            return self.answer(422, {"title": why})
        try:
            taken = take(body)
        except OSError:  # a full disk: nothing is answered for that is not remembered
            taken = False
        if not taken:
            return self.answer(503, {"title": "not now"})
        ids = {"run_id": body["run_id"], "step_id": body["step_id"]}
        return self.answer(202, {"status": "dispatched", **ids, "dispatched_at": now()})

    def cancel(self, body):
        try:
            name = name_of(body)
        except (KeyError, TypeError):
            return self.answer(400, {"title": "it does not say which dispatch"})
        with LOCK:
            if name in STOP:
                STOP[name].set()
                return self.answer(200, {"status": "cancelling"})
            known = load(name)
        return self.answer(*((200, {"status": "finished"}) if known else (404, {"title": "unknown"})))


if __name__ == "__main__":
    os.makedirs(SPOOL, mode=0o700, exist_ok=True)
    recover()
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Door)
    print(f"works at http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
