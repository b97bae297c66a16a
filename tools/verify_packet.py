#!/usr/bin/env python3
"""Checks packets and seals of Sluice with Python's standard library only.

    verify_packet.py PACKET...           check packets that `sluice audit export` wrote
    verify_packet.py --seals FILE...     check lines that `sluice audit seal` wrote
    --key KEY                            trust only this public key

Exit code: 0 if everything verifies, 1 if something does not, 2 for wrong usage.

It shares no code with Sluice. docs/guide/evidence.md describes each step; each step is
a function in this file.
"""

import hashlib
import json
import sys

FORMAT = "sluice/packet/1"
ZEROS = bytes(32)
HEX = set("0123456789abcdef")


class Broken(Exception):
    """A check failed."""


def need(condition, what):
    if not condition:
        raise Broken(what)


def sha256(*parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def unhex(text, length):
    """Decodes exactly `length` bytes of lower-case hexadecimal digits."""
    need(isinstance(text, str) and len(text) == 2 * length and set(text) <= HEX, "bad digits")
    return bytes.fromhex(text)


def number(value):
    need(type(value) is int and 0 <= value < 2**64, "bad number")
    return value


def canonical(value):
    """Serialises a value canonically: sorted keys, no whitespace."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def read(text, keys, what):
    """Parses canonical JSON of an object with exactly these keys."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Broken(f"{what} is not JSON: {error}") from error
    need(isinstance(value, dict) and set(value) == keys, f"{what} has unexpected or missing fields")
    need(canonical(value) == text, f"{what} is not canonical JSON")
    return value


# Ed25519, RFC 8032, section 6, slow but easy to read.

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def recover(y, sign):
    """Returns the x coordinate of a point from y and the sign of x, or None."""
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    return P - x if x & 1 != sign else x


def point(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    x = recover(y, sign)
    return None if x is None else (x, y, 1, x * y % P)


def add(a, b):
    left, right = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = right - left, d - c, d + c, right + left
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(scalar, base):
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = add(result, base)
        base, scalar = add(base, base), scalar >> 1
    return result


def same(a, b):
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = (recover(BASE_Y, 0), BASE_Y, 1, recover(BASE_Y, 0) * BASE_Y % P)


def signed(key, text, signature):
    """Returns whether the key signed the text."""
    a, r = point(key), point(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    # A key of small order would accept any text.
    if a is None or r is None or s >= L or same(times(8, a), (0, 1, 1, 0)):
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + text).digest(), "little") % L
    return same(times(s, BASE), add(r, times(k, a)))


def check_seal(line, trusted):
    """Checks that a trusted key signed the seal. Returns its fields."""
    fields = {"at", "key", "leaves", "number", "prev", "root", "signature", "v"}
    seal = read(line, fields, "the seal")
    need(seal["v"] == 1, "the seal has an unknown version")
    for name in ("at", "leaves", "number"):
        number(seal[name])
    unhex(seal["prev"], 32), unhex(seal["root"], 32)
    key, signature = unhex(seal["key"], 32), unhex(seal["signature"], 64)
    need(not trusted or seal["key"] in trusted, "the seal has a key that is not trusted")
    unsigned = {name: value for name, value in seal.items() if name != "signature"}
    text = ("sluice/seal/1\n" + canonical(unsigned)).encode()
    need(signed(key, text, signature), "the seal is not signed by its key")
    return seal


def commitment(event):
    """Returns the commitment of an event; an erased event contains it."""
    if set(event) == {"id", "at", "type", "hash", "commitment"}:
        return unhex(event["commitment"], 32)
    need(
        set(event) - {"blobs"} == {"id", "at", "type", "hash", "salt", "payload"},
        f"event {event.get('id')} has unexpected or missing fields",
    )
    texts = [event["payload"], event.get("blobs", "")]
    need(all(isinstance(text, str) for text in texts), "a payload is not a text")
    need(event.get("blobs") != "", "`blobs` is an empty text")
    payload, blobs = (text.encode() for text in texts)
    return sha256(b"sluice/payload/1\n", unhex(event["salt"], 16), payload, b"\n", blobs)


def check_events(packet):
    """Checks the hash of every event and their chain. Returns the last id and hash."""
    events, run = packet["events"], packet["run"]
    need(isinstance(events, list) and events, "there are no events")
    previous, expected = ZEROS, number(events[0].get("id"))
    for event in events:
        where = f"event {expected}"
        need(event.get("id") == expected and type(event["id"]) is int, f"{where} is missing")
        need(isinstance(event.get("type"), str), f"{where} has no type")
        lines = ["sluice/event/1", run, str(expected), event["type"], str(number(event.get("at")))]
        header = "".join(line + "\n" for line in lines).encode()
        previous = sha256(header, commitment(event), previous)
        need(unhex(event.get("hash"), 32) == previous, f"{where} does not match its hash")
        expected += 1
    return expected - 1, previous


def root_of(leaf, index, size, path):
    """Returns the root of a leaf and its audit path (RFC 6962)."""
    need(index < size, "the index of the proof is out of range")
    node, last, path = leaf, size - 1, list(path)
    while last:
        if index % 2:
            need(path, "the proof is too short")
            node = sha256(b"\1", path.pop(0), node)
        elif index < last:
            need(path, "the proof is too short")
            node = sha256(b"\1", node, path.pop(0))
        index, last = index // 2, last // 2
    need(not path, "the proof is too long")
    return node


def references(packet):
    """Returns the hashes that events refer to: required ones, and optional ones."""
    must, may = set(), set()
    for event in packet["events"]:
        if "payload" not in event:
            continue
        payload = json.loads(event["payload"])
        must.update(json.loads(event.get("blobs", "{}")).values())
        if event["type"] == "run.started":
            must.update(filter(None, [payload.get("definition")]))
            must.update(payload.get("children", {}).values())
        if event["type"] == "governance.decided":
            shadow = payload.get("shadow")
            shadow = shadow.get("policyHash") if isinstance(shadow, dict) else None
            for name in (payload.get("policyHash"), shadow):
                if isinstance(name, str) and len(name) == 64 and set(name) <= HEX:
                    may.add(name)
    return must, may


def check_values(packet):
    """Checks that every value has its hash and is referenced. Returns the number of missing policy sets."""
    values, (must, may) = packet["values"], references(packet)
    need(isinstance(values, dict), "`values` is not an object")
    for name, value in values.items():
        need(isinstance(value, str), f"value {name} is not a text")
        need(sha256(value.encode()) == unhex(name, 32), f"value {name} does not match its hash")
        need(name in must | may, f"no event refers to value {name}")
    for name in sorted(must - set(values)):
        raise Broken(f"value {name} is missing")
    return len(may - must - set(values))


def check_packet(text, trusted):
    fields = {"format", "run", "events", "values", "seal", "proof"}
    packet = read(text.removesuffix("\n"), fields, "the packet")
    need(packet["format"] == FORMAT, "the format is unknown")
    run = packet["run"]
    need(isinstance(run, str) and run.startswith("run_"), "the run id is not valid")
    identity = unhex(run[4:], 16)
    seal = check_seal(packet["seal"], trusted)
    version, head = check_events(packet)
    proof = packet["proof"]
    need(isinstance(proof, dict) and set(proof) == {"index", "path"}, "the proof is not valid")
    leaf = sha256(b"\0", b"r", identity, version.to_bytes(8, "big"), head)
    path = [unhex(step, 32) for step in proof["path"]]
    root = root_of(leaf, number(proof["index"]), seal["leaves"], path)
    need(root == unhex(seal["root"], 32), "the seal does not cover the run's last event")
    lacking = check_values(packet)
    note = f"; {lacking} policy sets are missing" if lacking else ""
    return f"{run}, {version} events, under seal {seal['number']} of key {seal['key']}: verified{note}"


def check_seals(text, trusted):
    """Checks lines of seals: consecutive seals are chained, and each number has one seal."""
    lines, before, count, seen = text.splitlines(), None, 0, {}
    for line in lines:
        if line.startswith("{") and not line.endswith("}"):
            continue  # the writer ended while it wrote the line
        seal = check_seal(line, trusted)
        need(
            seen.setdefault(seal["number"], line) == line,
            f"seal {seal['number']} is forked: two different seals of this number were kept",
        )
        if before and seal["number"] == before["number"] + 1:
            digest = sha256(canonical(before).encode()).hex()
            need(seal["prev"] == digest, f"seal {seal['number']} does not follow the previous seal")
        before, count = seal, count + 1
    need(count, "the file has no seal")
    return f"{count} seals, the last is number {before['number']}: verified"


def main(arguments):
    trusted, files, check = set(), [], check_packet
    while arguments:
        word = arguments.pop(0)
        if word == "--key" and arguments:
            trusted.add(arguments.pop(0))
        elif word == "--seals":
            check = check_seals
        elif word.startswith("-"):
            print(__doc__, file=sys.stderr)
            return 2
        else:
            files.append(word)
    if not files:
        print(__doc__, file=sys.stderr)
        return 2
    code = 0
    for name in files:
        try:
            with open(name, "rb") as file:
                report = check(file.read().decode("utf-8"), trusted)
        except (Broken, OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            report, code = f"NOT VERIFIED: {error}", 1
        print(f"{name}: {report}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
