//! The side of a store for calls inside of their caller's transaction.

use async_trait::async_trait;

use super::{Complete, Reserve, Reserved, Written};
use crate::error::StoreError;
#[cfg(all(feature = "_sql", feature = "tx"))]
use crate::error::StoreErrorKind;
use crate::transaction::Session;

/// What [`Transactional::reserve_in`] came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entrance {
    /// As an ordinary reservation.
    Answered(Reserved),
    /// Another transaction, which has not ended, holds the key.
    Held {
        /// Whether the server has waited for it as long as it is set to: then
        /// nobody should ask again.
        waited: bool,
    },
}

/// A store that keeps records in its caller's transaction, too.
///
/// Both steps are statements on the caller's connection, and become final with
/// its transaction. Neither may end the transaction or leave it broken, but
/// where the server does so itself.
///
/// # Concurrent calls
/// Of two open transactions only one wins a key; the other is told
/// [`Entrance::Held`], or waits inside of the server until the first has ended.
///
/// # Cancel safety
/// A dropped future may have written: what it wrote goes with the transaction.
#[async_trait]
pub trait Transactional: Send + Sync {
    /// Takes the key, or returns what stands there:
    /// [`transition::reserve_in_transaction`](crate::transition::reserve_in_transaction).
    ///
    /// One statement if the key is fresh.
    ///
    /// # Errors
    /// If the session is of another kind of database, or its meta row has
    /// another instance id: then nothing was written.
    async fn reserve_in(
        &self,
        session: Session<'_>,
        instance: &[u8; 16],
        request: &Reserve,
    ) -> Result<Entrance, StoreError>;

    /// Records how the body ended, in one statement guarded by claim and fence:
    /// [`transition::complete`](crate::transition::complete).
    ///
    /// Anything but [`Written::Done`] means that the reservation is not there
    /// any more, and nothing was written.
    ///
    /// # Errors
    /// If the statement failed.
    async fn complete_in(
        &self,
        session: Session<'_>,
        request: &Complete,
    ) -> Result<Written, StoreError>;
}

/// The transaction is on something else.
#[cfg(all(feature = "_sql", feature = "tx"))]
pub(super) fn other_database() -> StoreError {
    StoreError::new(
        StoreErrorKind::Misconfigured,
        "the transaction is on another database than the engine's store: begin it on the store's own",
    )
}

/// One server's transaction cannot be used with another kind of store.
#[cfg(all(feature = "_sql", feature = "tx"))]
pub(super) fn other_kind() -> StoreError {
    StoreError::new(
        StoreErrorKind::Misconfigured,
        "the transaction is of another kind of database than the engine's store: begin it on the store's own",
    )
}
