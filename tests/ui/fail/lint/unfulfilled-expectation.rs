#![deny(unfulfilled_lint_expectations)]
#![allow(dead_code)]

use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    #[expect(unused_variables, reason = "fulfilled")]
    let unused = 1;
    #[expect(unused_variables, reason = "not fulfilled")]
    let used = 1;
    Ok(id + used)
}

fn main() {}
