#!/usr/bin/env python3
"""Checks vectors.json against a canonicaliser and digests of its own.

    python3 check.py [vectors.json]

Needs Python 3.11 and nothing else. Prints how many vectors hold, or what does
not and exits with 1.
"""

import hashlib
import hmac
import json
import math
import pathlib
import struct
import sys

PUBLIC_KEY = b"idem/1 public key"


class Refused(Exception):
    """A value without a canonical form."""


def canonical(value):
    """The canonical text of a value as json.loads returns it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            if not -(2**127) <= value < 2**128:
                raise Refused("an integer of more than 128 bits")
            return str(value)
        case float():
            return float_text(value)
        case str():
            return string_text(value)
        case list():
            return "[" + ",".join(map(canonical, value)) + "]"
        case dict():
            # The order of UTF-16 code units is that of its big-endian bytes.
            names = sorted(value, key=lambda name: name.encode("utf-16-be"))
            entries = (f"{string_text(name)}:{canonical(value[name])}" for name in names)
            return "{" + ",".join(entries) + "}"
    raise Refused(f"a {type(value).__name__}")


def string_text(text):
    """As json.dumps, which escapes the same but U+007F and beyond."""
    escapes = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    out = []
    for char in text:
        if 0xD800 <= ord(char) < 0xE000:
            raise Refused("half of a surrogate pair")
        if char < " " and char not in escapes:
            out.append(f"\\u{ord(char):04x}")
        else:
            out.append(escapes.get(char, char))
    return '"' + "".join(out) + '"'


def float_text(value):
    """Number::toString of ECMAScript, from the same digits as repr."""
    if not math.isfinite(value):
        raise Refused("NaN or infinite")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The value is 0.DIGITS times ten to this power.
    power = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if len(digits) <= power <= 21:
        return sign + digits + "0" * (power - len(digits))
    if 0 < power <= 21:
        return sign + digits[:power] + "." + digits[power:]
    if -6 < power <= 0:
        return sign + "0." + "0" * -power + digits
    exponent = power - 1
    fraction = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent)}"


def some(text):
    """The text of Rust's Some around a value with this text."""
    inner = text
    while inner.startswith('{"Some":') and inner.endswith("}"):
        inner = inner[len('{"Some":') : -1]
    return '{"Some":' + text + "}" if inner == "null" else text


def digest(secret, *fields):
    """HMAC-SHA-256 over the fields, each behind its length."""
    mac = hmac.new(secret, digestmod=hashlib.sha256)
    for field in (b"idem/1", *fields):
        mac.update(number(len(field)))
        mac.update(field)
    return mac.digest()


def number(value):
    return value.to_bytes(8, "big")


def canonical_text(vector):
    if "ieee754" in vector:
        value = struct.unpack(">d", bytes.fromhex(vector["ieee754"]))[0]
    else:
        value = vector["input"]
    text = canonical(value)
    for _ in range(vector.get("some", 0)):
        text = some(text)
    return text


def check_canonical(vector):
    try:
        text = canonical_text(vector)
    except Refused as reason:
        return None if "refused" in vector else f"refused: {reason}"
    if "refused" in vector:
        return f"written as {text}, to be refused"
    if text != vector["canonical"]:
        return f"written as {text}, not {vector['canonical']}"
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return None if sha256 == vector["sha256"] else f"SHA-256 is {sha256}"


def check_digest(vector):
    secret = PUBLIC_KEY if vector["secret"] is None else bytes.fromhex(vector["secret"])

    def text(name):
        return (vector[name] or "").encode()

    def record_id():
        return bytes.fromhex(vector["record_id"])

    purpose = vector["purpose"]
    match purpose:
        case "record":
            fields = [text("namespace"), text("operation"), text("scope"), text("key")]
        case "payload":
            elements = [element.encode() for element in vector["elements"]]
            fields = [record_id(), number(len(elements)), *elements]
        case "element":
            fields = [record_id(), number(vector["position"]), text("value")]
        case "scope":
            fields = [text("namespace"), text("scope")]
        case "check":
            fields = []
        case "downstream":
            fields = [record_id(), text("label")]
        case _:
            return f"an unknown purpose: {purpose}"
    found = digest(secret, purpose.encode(), *fields)
    if purpose == "element":
        found = found[:8]
    return None if found.hex() == vector["digest"] else f"digest is {found.hex()}"


def check_relations(file):
    texts = {vector["name"]: vector.get("canonical") for vector in file["canonical"]}
    for names in file["equal"]:
        yield names, None if len({texts[name] for name in names}) == 1 else "not equal"
    for names in file["different"]:
        yield names, None if len({texts[name] for name in names}) == len(names) else "not different"


def main():
    own = pathlib.Path(__file__).with_name("vectors.json")
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else own
    file = json.loads(path.read_text(encoding="utf-8"))
    if file["format"] != "idem/1":
        sys.exit(f"{path}: format {file['format']} is not idem/1")
    results = [(v["name"], check_canonical(v)) for v in file["canonical"]]
    results += [(v["name"], check_digest(v)) for v in file["digests"]]
    results += check_relations(file)
    wrong = [(name, problem) for name, problem in results if problem]
    for name, problem in wrong:
        print(f"{name}: {problem}", file=sys.stderr)
    if wrong or not results:
        sys.exit(f"{len(wrong)} of {len(results)} vectors do not hold")
    print(f"{len(results)} vectors hold")


if __name__ == "__main__":
    main()
