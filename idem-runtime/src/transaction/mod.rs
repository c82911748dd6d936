//! The same transaction: reservation, the caller's own writes and the recorded
//! answer commit or roll back together.
//!
//! This is what `tx = conn` of the attribute and
//! [`PlainCall::in_transaction`](crate::PlainCall::in_transaction) run on. The
//! caller begins and commits; the engine's store must be the same database. They
//! need the feature `tx`; `postgres` and `mysql` bring it.
//! `docs/same-transaction.md` is the guide.

mod connection;
#[cfg(feature = "tx")]
mod kind;
mod session;
mod statements;

pub use self::connection::TxConnection;
pub use self::session::Session;
pub(crate) use self::statements::Savepoint;
