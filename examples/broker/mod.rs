//! What `rabbit_worker` and `nats_worker` have in common: everything but the broker. Each of them
//! includes this folder as its module `broker`.
//!
//! Read `book.rs` first, the annotated function in the consumer's transaction, then `worker.rs`,
//! which begins and commits, and `mail.rs`, which sends what the transaction has left in the
//! outbox. `books.rs` is the database. The rest is the demo: `demo.rs` publishes and kills,
//! `watch.rs` notes what consumers do and holds one of them still to be killed, `verdict.rs` reads
//! those notes.

pub(crate) mod args;
mod book;
mod books;
pub(crate) mod demo;
pub(crate) mod mail;
pub(crate) mod payment;
pub(crate) mod process;
mod verdict;
mod watch;
pub(crate) mod worker;

use self::payment::Payment;

/// Whatever ends a process of these examples: there is nobody left to tell the cases apart.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What the demo wants of a broker.
pub(crate) trait Broker {
    /// Makes the queue. Its name is new in each demo.
    async fn declare(&self) -> Result<(), BoxError>;
    /// Publishes each of these, in this order, and returns when the broker has them.
    async fn publish(&self, payments: &[&Payment]) -> Result<(), BoxError>;
    /// Returns how many messages the broker still has, as far as it can tell: while there are
    /// consumers, it may not count what they have not acknowledged.
    async fn left(&self) -> Result<u64, BoxError>;
    /// Removes the queue.
    async fn remove(&self) -> Result<(), BoxError>;
}
