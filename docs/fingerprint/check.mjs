// Checks vectors.json against a canonicaliser and digests of its own.
//
//     node check.mjs [vectors.json]
//
// Needs Node 20 and nothing else. Prints how many vectors hold, or what does
// not and exits with 1.

import { createHash, createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const PUBLIC_KEY = "idem/1 public key";

class Refused extends Error {}

/// Reads JSON without loss: integers as BigInt, other numbers as Number,
/// objects as Map.
function read(text) {
  let at = 0;
  const fail = () => {
    throw new SyntaxError(`no JSON at ${at}: ${text.slice(at, at + 20)}`);
  };
  const take = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  };
  const skip = (char) => {
    take(/\s*/y);
    if (text[at] !== char) return false;
    at += 1;
    take(/\s*/y);
    return true;
  };
  const string = () => JSON.parse(take(/"(?:[^"\\]|\\.)*"/y) ?? fail());
  const value = () => {
    if (skip("[")) {
      const items = [];
      if (skip("]")) return items;
      do items.push(value());
      while (skip(","));
      return skip("]") ? items : fail();
    }
    if (skip("{")) {
      const entries = new Map();
      if (skip("}")) return entries;
      do {
        const name = string();
        if (entries.has(name)) throw new SyntaxError(`a repeated key: ${name}`);
        entries.set(name, skip(":") ? value() : fail());
      } while (skip(","));
      return skip("}") ? entries : fail();
    }
    if (text[at] === '"') return string();
    const number = take(/-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/y);
    if (number !== undefined) return /^-?\d+$/.test(number) ? BigInt(number) : Number(number);
    const literal = take(/null|true|false/y) ?? fail();
    return JSON.parse(literal);
  };
  take(/\s*/y);
  const whole = value();
  take(/\s*/y);
  return at === text.length ? whole : fail();
}

/// The canonical text of a value as `read` returns it.
function canonical(value) {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "bigint") {
    if (value < -(2n ** 127n) || value >= 2n ** 128n) throw new Refused("an integer of more than 128 bits");
    return String(value);
  }
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new Refused("NaN or infinite");
    return String(value);
  }
  if (typeof value === "string") {
    // JSON.stringify escapes as RFC 8785 does, and lone surrogates besides.
    if (/\p{Surrogate}/u.test(value)) throw new Refused("half of a surrogate pair");
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  // Without a comparison, `sort` compares UTF-16 code units.
  const names = [...value.keys()].sort();
  return `{${names.map((name) => `${canonical(name)}:${canonical(value.get(name))}`).join(",")}}`;
}

/// The text of Rust's `Some` around a value with this text.
function some(text) {
  return /^(\{"Some":)*null\}*$/.test(text) ? `{"Some":${text}}` : text;
}

function number(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

/// HMAC-SHA-256 over the fields, each behind its length.
function digest(secret, fields) {
  const mac = createHmac("sha256", secret);
  for (const field of ["idem/1", ...fields]) {
    const bytes = Buffer.from(field);
    mac.update(number(bytes.length)).update(bytes);
  }
  return mac.digest();
}

function canonicalText(vector) {
  const bits = vector.get("ieee754");
  let text = canonical(bits === undefined ? vector.get("input") : Buffer.from(bits, "hex").readDoubleBE());
  for (let times = vector.get("some") ?? 0n; times > 0n; times -= 1n) text = some(text);
  return text;
}

function checkCanonical(vector) {
  let text;
  try {
    text = canonicalText(vector);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return vector.has("refused") ? undefined : `refused: ${error.message}`;
  }
  if (vector.has("refused")) return `written as ${text}, to be refused`;
  if (text !== vector.get("canonical")) return `written as ${text}, not ${vector.get("canonical")}`;
  const sha256 = createHash("sha256").update(text).digest("hex");
  return sha256 === vector.get("sha256") ? undefined : `SHA-256 is ${sha256}`;
}

function checkDigest(vector) {
  const text = (name) => vector.get(name) ?? "";
  const recordId = () => Buffer.from(vector.get("record_id"), "hex");
  const layouts = {
    record: () => [text("namespace"), text("operation"), text("scope"), text("key")],
    payload: () => [recordId(), number(vector.get("elements").length), ...vector.get("elements")],
    element: () => [recordId(), number(vector.get("position")), text("value")],
    scope: () => [text("namespace"), text("scope")],
    check: () => [],
    downstream: () => [recordId(), text("label")],
  };
  const purpose = vector.get("purpose");
  if (!Object.hasOwn(layouts, purpose)) return `an unknown purpose: ${purpose}`;
  const secret = vector.get("secret");
  const key = secret === null ? PUBLIC_KEY : Buffer.from(secret, "hex");
  const whole = digest(key, [purpose, ...layouts[purpose]()]);
  const found = (purpose === "element" ? whole.subarray(0, 8) : whole).toString("hex");
  return found === vector.get("digest") ? undefined : `digest is ${found}`;
}

function checkRelations(file) {
  const texts = new Map(file.get("canonical").map((vector) => [vector.get("name"), vector.get("canonical")]));
  const count = (names) => new Set(names.map((name) => texts.get(name))).size;
  const equal = (names) => (count(names) === 1 ? undefined : "not equal");
  const different = (names) => (count(names) === names.length ? undefined : "not different");
  return [
    ...file.get("equal").map((names) => [names, equal(names)]),
    ...file.get("different").map((names) => [names, different(names)]),
  ];
}

const path = process.argv[2] ?? fileURLToPath(new URL("vectors.json", import.meta.url));
const file = read(readFileSync(path, "utf8"));
const results = [
  ...file.get("canonical").map((vector) => [vector.get("name"), checkCanonical(vector)]),
  ...file.get("digests").map((vector) => [vector.get("name"), checkDigest(vector)]),
  ...checkRelations(file),
];
const wrong = results.filter(([, problem]) => problem !== undefined);
for (const [name, problem] of wrong) console.error(`${name}: ${problem}`);
if (file.get("format") !== "idem/1") {
  console.error(`${path}: format ${file.get("format")} is not idem/1`);
  process.exitCode = 1;
} else if (wrong.length > 0 || results.length === 0) {
  console.error(`${wrong.length} of ${results.length} vectors do not hold`);
  process.exitCode = 1;
} else {
  console.log(`${results.length} vectors hold`);
}
