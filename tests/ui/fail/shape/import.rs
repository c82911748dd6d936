use idem::idempotent;

#[idempotent(key = id, ttl = "24h")]
use std::fmt;

fn main() {}
