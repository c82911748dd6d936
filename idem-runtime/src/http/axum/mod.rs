//! The parts of an annotated axum handler.

mod codec;
mod into_response;
mod json;
mod key;

pub use self::codec::Response;
pub use self::json::{BodyDigest, Json};
pub use self::key::{IdempotencyKey, ScopedKey, UnscopedKey};
