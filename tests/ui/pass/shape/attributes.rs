#![deny(warnings, missing_docs, rustdoc::all)]
//! Attributes stay where they were.

use idem::{Error, idempotent};

/// Docs above.
#[must_use = "charging is not free"]
#[idempotent(key = id, ttl = "1h")]
/// Docs below.
#[inline]
#[cfg(not(any()))]
#[allow(clippy::unused_async, reason = "below")]
pub async fn charge(
    #[allow(unused_variables, reason = "on a parameter")] id: u32,
    #[expect(unused_variables, reason = "never used")] unused: u32,
) -> Result<u32, Error> {
    #![allow(unused_mut, reason = "inside")]
    let mut answer = 1;
    Ok(answer)
}

#[cfg_attr(all(), idempotent(key = id, ttl = "1h"))]
pub(crate) async fn conditional(id: u32) -> Result<u32, Error> {
    Ok(id)
}

pub fn main() {
    drop(charge(1, 2));
    drop(conditional(1));
}
