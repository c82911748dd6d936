#![deny(warnings)]

use idem::{Error, idempotent};

/// Names that an expansion might use for itself.
#[idempotent(key = (key, ttl), payload = (store, result), ttl = "1h")]
async fn names(
    key: u32,
    ttl: u32,
    store: u32,
    result: u32,
    mut debug: u32,
    e: u32,
    call: u32,
    ops: u32,
    body: u32,
    run: u32,
    private: u32,
    never: u32,
) -> Result<u32, Error> {
    debug += 1;
    Ok(key + ttl + store + result + debug + e + call + ops + body + run + private + never)
}

#[idempotent(key = (r#type, r#match.r#fn), ttl = "1h", label = r#type)]
async fn r#loop(r#type: u32, r#match: Raw, mut r#mod: u32) -> Result<u32, Error> {
    r#mod += r#match.r#fn;
    Ok(r#type + r#mod)
}

struct Raw {
    r#fn: u32,
}

pub fn main() {
    drop(names(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    drop(r#loop(1, Raw { r#fn: 2 }, 3));
}
