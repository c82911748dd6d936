//! The key of a request, as an extractor.

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use http::request::Parts;
use serde::{Serialize, Serializer};

use crate::http::IDEMPOTENCY_KEY;
use crate::http::key::{Grammar, KeyMistake, KeyText};
use crate::http::problem::Problem;

/// The `Idempotency-Key` of a request.
///
/// The client has chosen it, so it is no key by itself: together with who the
/// client is, [`scoped_to`](Self::scoped_to), it is one. It cannot be written
/// into `key = …` as it is:
///
/// ```compile_fail
/// # use idem::http::IdempotencyKey;
/// #[idem::idempotent(name = "pay", key = key, ttl = "24h")]
/// async fn pay(key: IdempotencyKey) -> Result<(), idem::Error> { Ok(()) }
/// ```
///
/// A missing or malformed header is a problem with status 400; the grammar is
/// the layer's. As `Option<IdempotencyKey>` it may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(KeyText);

impl IdempotencyKey {
    /// Makes it the key of this tenant or caller. A blank or missing scope is
    /// [`Error::InvalidKey`](crate::Error::InvalidKey).
    ///
    /// ```
    /// # use idem::http::IdempotencyKey;
    /// #[idem::idempotent(name = "pay", key = key.scoped_to(&user), ttl = "24h")]
    /// async fn pay(user: String, key: IdempotencyKey) -> Result<(), idem::Error> { Ok(()) }
    /// ```
    #[must_use]
    pub fn scoped_to<S: ToOwned + ?Sized>(&self, scope: &S) -> ScopedKey<S::Owned> {
        ScopedKey {
            scope: scope.to_owned(),
            key: self.0.clone(),
        }
    }

    /// Makes it a key that all callers share: whoever sends another's key gets
    /// the other's answer.
    #[must_use]
    pub fn unscoped(&self) -> UnscopedKey {
        UnscopedKey(self.0.clone())
    }
}

/// A key of one tenant or caller.
#[derive(Clone, PartialEq, Eq)]
pub struct ScopedKey<S> {
    scope: S,
    key: KeyText,
}

// Neither scope nor key: they are the client's.
impl<S> std::fmt::Debug for ScopedKey<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScopedKey(..)")
    }
}

impl<S: Serialize> Serialize for ScopedKey<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        (&self.scope, self.key.as_str()).serialize(serializer)
    }
}

/// A key that all callers share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnscopedKey(KeyText);

impl Serialize for UnscopedKey {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

fn find(parts: &Parts) -> Result<Option<IdempotencyKey>, KeyMistake> {
    Grammar::default()
        .find(&parts.headers, &IDEMPOTENCY_KEY)
        .map(|key| key.map(IdempotencyKey))
}

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        find(parts)
            .map_err(Problem::key_invalid)?
            .ok_or_else(Problem::key_missing)
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Problem> {
        find(parts).map_err(Problem::key_invalid)
    }
}
