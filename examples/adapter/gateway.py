#!/usr/bin/env python3
"""A whole gateway for Sluice, in Python's standard library alone. A template: put your
provider where `work` is, and keep what is around it.

    SLUICE_BRIDGE_KEY=... SLUICE_GATEWAY_TOKEN=... python3 gateway.py SPOOL [PORT]

`sluice gateways check` passes; docs/guide/adapters.md says what each case is for.
What must hold: a dispatch is in the spool before it is answered for, and its result
before anybody is told. Whatever is killed, the next start finds it there.
"""
import hashlib, hmac, json, os, re, sys, threading, time
import urllib.error, urllib.request
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY, TOKEN = os.environ["SLUICE_BRIDGE_KEY"], os.environ["SLUICE_GATEWAY_TOKEN"]
SPOOL, PORT = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
# Results and the token go to these and nobody else: a dispatch must not choose freely.
SERVERS = os.environ.get("SLUICE_SERVERS", "http://127.0.0.1").split(",")
BODY_MAX = 16 * 1024 * 1024
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
    if set(body.get("governance_constraints") or {}) - CONSTRAINTS:
        return "a constraint is not known here"
    url = body.get("callback_url")
    if not isinstance(url, str) or not any(re.match(re.escape(s) + "[:/]", url) for s in SERVERS):
        return "`callback_url` is not of a server that this gateway works for"
    return None


def take(body):
    """Remembers a dispatch and begins it. One that is known is not begun again; if
    it is over, whoever sends it again has no result, and is brought it once more."""
    name = name_of(body)
    with LOCK:
        kept = load(name)
        if kept is None:
            save(name, {"state": "accepted", "dispatch": body, "at": now()})
            STOP[name] = threading.Event()
            threading.Thread(target=live, args=(name, body), daemon=True).start()
        elif kept["state"] == "delivered":
            save(name, {**kept, "state": "finished", "dispatch": body})
            threading.Thread(target=deliver, args=(name,), daemon=True).start()


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
    if "done" in box:
        result = box["done"]
    elif stop.is_set():
        result = {"status": "failed", "error_code": "cancelled", "error": "it was cancelled"}
    else:
        stop.set()
        result = {"status": "timed_out", "error_code": "timeout", "error": "it took too long"}
    finish(name, {**result, "started_at": began, "completed_at": now()})


def finish(name, result):
    with LOCK:
        kept = load(name)
        ids = {field: kept["dispatch"][field] for field in ["run_id", "step_id", "dispatch_no"]}
        save(name, {**kept, "state": "finished", "result": {**ids, **result}})
        STOP.pop(name, None)
    deliver(name)


def deliver(name):
    """Brings a result to the engine until it has it. 4xx is a no for good."""
    kept, until = load(name), time.time() + EXPIRES
    body, tries = json.dumps(kept["result"]).encode(), 0
    headers = {"Content-Type": "application/json", "X-Gateway-Token": TOKEN,
               "X-Dispatch-Token": kept["dispatch"].get("dispatch_token") or ""}
    while time.time() < until:
        try:
            request = urllib.request.Request(kept["dispatch"]["callback_url"], body, headers)
            with urllib.request.urlopen(request, timeout=30):
                break
        except urllib.error.HTTPError as error:
            if 400 <= error.code < 500 and error.code not in (408, 425, 429):
                print(f"a result is not taken: {error.code}", file=sys.stderr)
                break
        except OSError:
            pass  # the engine is away
        time.sleep(WAITS[min(tries, len(WAITS) - 1)])
        tries += 1
    with LOCK:
        save(name, {**kept, "state": "delivered"})


def recover():
    """What an earlier life left: unfinished work is told as broken off, since nobody
    knows how far it came; results that were not taken are brought."""
    for entry in os.scandir(SPOOL):
        name, kept = entry.name.removesuffix(".json"), None
        if entry.name.endswith(".json"):
            kept = load(name)
        elif entry.name.endswith(".new"):
            os.remove(entry.path)
        if kept and kept["state"] == "accepted":
            broken = {"status": "failed", "error_code": "adapter_crash", "error": "it broke off"}
            threading.Thread(target=finish, args=(name, broken), daemon=True).start()
        elif kept and kept["state"] == "finished":
            threading.Thread(target=deliver, args=(name,), daemon=True).start()
        elif kept and entry.stat().st_mtime < time.time() - KEPT:
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
        if not length.isdigit() or int(length) > BODY_MAX:
            return self.answer(413, {"title": "the body is too long"})
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
            take(body)
        except OSError:
            return self.answer(503, {"title": "it cannot be remembered"})
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
