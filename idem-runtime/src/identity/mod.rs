//! Digests: how a call is told from another without keeping what it was called with.
//!
//! 1. A digest is HMAC-SHA-256 under the engine's [`Secret`], or under a fixed
//!    public key if there is none.
//! 2. Its input is a list of fields, each with its length in front (eight
//!    bytes, big endian), so that `("ab", "c")` and `("a", "bc")` differ. The
//!    first field is `idem/1`, the second what the digest is for.
//! 3. The [`RecordId`] covers namespace, operation, scope and key. Every other
//!    digest of a call covers the record id, so that equal arguments of two
//!    calls cannot be linked.
//!
//! What it does not promise: without a secret, whoever reads the store can
//! guess a value that has few possibilities (a postcode, a card number) and
//! check the guess. `docs/fingerprint.md` describes every input byte by byte.
//!
//! # Examples
//!
//! ```
//! use idem::identity::{Identity, Secret};
//!
//! let secret = Secret::new(*b"0123456789abcdef").unwrap();
//! let identity = Identity::new(Some(&secret), "shop");
//! let id = identity.record_id("payments.charge", None, br#""order-7""#);
//!
//! assert_eq!(id, identity.record_id("payments.charge", None, br#""order-7""#));
//! assert_ne!(id, identity.record_id("payments.refund", None, br#""order-7""#));
//! assert_eq!(id.to_string().len(), 12);
//! ```

mod id;
mod mac;

use std::fmt;

pub use id::{Fingerprint, ParseRecordIdError, RecordId};

pub(crate) use id::hex;
use mac::{Mac, number};

/// The format of every digest, which never changes its meaning.
pub const FORMAT: &str = "idem/1";
const PUBLIC_KEY: &[u8] = b"idem/1 public key";

/// What makes digests unguessable for those who only see the store.
///
/// At least 16 bytes, better 32 random ones. Every engine on one store needs
/// the same secret; another one does not find the records.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// The fewest bytes a secret can have.
    pub const MIN_LEN: usize = 16;

    /// Takes the bytes of a secret.
    ///
    /// # Errors
    ///
    /// If there are fewer than [`MIN_LEN`](Self::MIN_LEN).
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, SecretTooShort> {
        let bytes = bytes.into();
        if bytes.len() < Self::MIN_LEN {
            return Err(SecretTooShort(()));
        }
        Ok(Self(bytes))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A [`Secret`] of fewer than 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretTooShort(());

impl fmt::Display for SecretTooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a secret has at least {} bytes", Secret::MIN_LEN)
    }
}

impl std::error::Error for SecretTooShort {}

/// Computes the digests of one engine.
#[derive(Clone)]
pub struct Identity {
    /// Keyed, so that a digest does not pay for the key again. Those that each
    /// call needs have their first fields in them too.
    mac: Mac,
    record: Mac,
    payload: Mac,
    element: Mac,
    namespace: String,
    has_secret: bool,
}

impl Identity {
    /// Makes the identity of an engine with this secret and namespace.
    #[must_use]
    pub fn new(secret: Option<&Secret>, namespace: impl Into<String>) -> Self {
        let key = secret.map_or(PUBLIC_KEY, |secret| &secret.0);
        let mac = Mac::new(key).with(FORMAT.as_bytes());
        let namespace = namespace.into();
        Self {
            record: mac.with(b"record").with(namespace.as_bytes()),
            payload: mac.with(b"payload"),
            element: mac.with(b"element"),
            mac,
            namespace,
            has_secret: secret.is_some(),
        }
    }

    /// Whether digests are under a secret, and so cannot be guessed.
    #[must_use]
    pub fn has_secret(&self) -> bool {
        self.has_secret
    }

    /// The namespace, which separates applications that share a store.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Names the record of a call. `scope` and `key` are canonical JSON.
    #[must_use]
    pub fn record_id(&self, operation: &str, scope: Option<&[u8]>, key: &[u8]) -> RecordId {
        let mut digest = self.record.clone();
        digest.add(operation.as_bytes());
        // Canonical JSON is never empty: no scope is no other scope.
        digest.add(scope.unwrap_or_default());
        digest.add(key);
        RecordId::from_bytes(digest.finish())
    }

    /// Digests a payload. `elements` are canonical JSON; none is a payload of
    /// its own, equal to no other.
    #[must_use]
    pub fn fingerprint(&self, id: &RecordId, elements: &[&[u8]]) -> Fingerprint {
        self.fingerprint_of(id, elements.iter().copied())
    }

    /// As [`fingerprint`](Self::fingerprint), of elements that lie in no list.
    #[inline]
    pub(crate) fn fingerprint_of<'a>(
        &self,
        id: &RecordId,
        elements: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Fingerprint {
        let mut digest = self.payload.clone();
        digest.add_place(id.as_bytes(), number(elements.len()));
        for element in elements {
            digest.add(element);
        }
        Fingerprint::from_bytes(digest.finish())
    }

    /// Digests one element of a payload, for naming the elements that differ.
    #[must_use]
    pub fn element_digest(&self, id: &RecordId, position: usize, value: &[u8]) -> [u8; 8] {
        let mut digest = self.element.clone();
        digest.add_place(id.as_bytes(), number(position));
        digest.add(value);
        let [a, b, c, d, e, f, g, h, ..] = digest.finish();
        [a, b, c, d, e, f, g, h]
    }

    /// Digests a scope within the namespace, so that the records of one tenant
    /// can be found. `scope` is canonical JSON.
    #[must_use]
    pub fn scope_digest(&self, scope: &[u8]) -> [u8; 32] {
        self.digest("scope", &[self.namespace.as_bytes(), scope])
    }

    /// Proves which secret this is without revealing it; the same in every
    /// namespace, since all of them share the store that keeps it.
    #[must_use]
    pub fn check_value(&self) -> [u8; 32] {
        self.digest("check", &[])
    }

    /// Makes the idempotency key for a call to another service: 64 lowercase
    /// hexadecimal characters, the same in every attempt.
    #[must_use]
    pub fn downstream_key(&self, id: &RecordId, label: &str) -> String {
        hex(&self.digest("downstream", &[id.as_bytes(), label.as_bytes()]))
    }

    fn digest(&self, purpose: &str, fields: &[&[u8]]) -> [u8; 32] {
        let mut digest = self.mac.clone();
        digest.add(purpose.as_bytes());
        for field in fields {
            digest.add(field);
        }
        digest.finish()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("namespace", &self.namespace)
            .field("has_secret", &self.has_secret)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_is_shown() {
        let secret = Secret::new(*b"sixteen bytes ok").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert_eq!(
            Secret::new(*b"fifteen bytes..").unwrap_err(),
            SecretTooShort(())
        );
        let shown = format!("{:?}", Identity::new(Some(&secret), "shop"));
        assert_eq!(
            shown,
            r#"Identity { namespace: "shop", has_secret: true, .. }"#
        );
    }

    #[test]
    fn fields_do_not_run_into_each_other() {
        let identity = Identity::new(None, "shop");
        let id = identity.record_id("op", None, b"1");
        assert_ne!(id, identity.record_id("op", Some(b"1"), b""));
        assert_ne!(id, identity.record_id("o", Some(b"p"), b"1"));
        assert_ne!(id, Identity::new(None, "shopo").record_id("p", None, b"1"));

        let print = |elements: &[&[u8]]| identity.fingerprint(&id, elements);
        assert_ne!(print(&[]), print(&[b""]));
        assert_ne!(print(&[b"ab", b"c"]), print(&[b"a", b"bc"]));
        assert_ne!(print(&[b"1", b"2"]), print(&[b"2", b"1"]));
        let element = |position| identity.element_digest(&id, position, b"1");
        assert_ne!(element(0), element(1));
    }
}
