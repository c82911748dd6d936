//! A delivery in its caller's transaction.

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ended::{Apart, Cap, Sorted, handle};
use super::received::Failure;
use super::{Message, Received, Uncommitted};
use crate::answer::ErrorPolicy;
use crate::engine::TxCall;
use crate::engine::driver::Within;
use crate::error::Error;
use crate::outcome;
use crate::transaction::TxConnection;

impl<P> Message<P> {
    /// As [`receive`](Self::receive), in the transaction that has begun on
    /// `conn`: reservation, the handler's rows and its answer commit or roll back
    /// with it. **Acknowledge only after the commit**, which is why this returns
    /// an [`Uncommitted`]. Needs the feature `tx`.
    ///
    /// A handler that fails is delivered again: the caller rolls back, so that
    /// nothing has happened, and the delivery is `Retry`, after 1 second that
    /// doubles with each delivery, up to a minute. `Disposition::Store` records
    /// the error's text instead, with the rows that the handler wrote before it.
    ///
    /// With [`max_attempts`](super::Inbox::max_attempts) the broker's number of
    /// the [delivery](Self::delivery) is needed: a rollback forgets the record's.
    /// The engine's store must be the same database, and
    /// [`on_unknown`](super::Inbox::on_unknown) is refused: nothing is ever taken
    /// over here.
    ///
    /// # Concurrent calls
    /// One runs its handler. The others are [`Received::InProgress`] while its
    /// transaction is open, unless [`on_in_progress`](super::Inbox::on_in_progress)
    /// lets them wait. `MySQL` lets them wait as long as the session's
    /// `innodb_lock_wait_timeout` says.
    ///
    /// # Cancel safety
    /// Dropping the future leaves an unfinished reservation in the transaction:
    /// roll it back. If it is committed, the outcome is unknown.
    ///
    /// # Panics
    /// If the handler panics; as after a drop.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("shop.db");
    /// use idem::sqlx::{self, Connection, SqliteConnection};
    /// use idem::store::SqliteStore;
    ///
    /// let engine = idem::Engine::builder(SqliteStore::open(&path).await?).build().await?;
    /// let mut conn = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await?;
    /// sqlx::query("CREATE TABLE invoices (id TEXT)").execute(&mut conn).await?;
    ///
    /// let inbox = engine.inbox("billing.invoice-paid").max_attempts(5);
    /// for number in 1..=2 {
    ///     let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    ///     let message = inbox.message("evt_1").delivery(number);
    ///     let uncommitted = message
    ///         .receive_in(&mut tx, async |conn| {
    ///             let insert = sqlx::query("INSERT INTO invoices VALUES ('evt_1')");
    ///             insert.execute(conn).await.map(|_| ())
    ///         })
    ///         .await;
    ///     if uncommitted.must_roll_back() {
    ///         tx.rollback().await?;
    ///     } else {
    ///         tx.commit().await?;
    ///     }
    ///     // Only now.
    ///     assert!(uncommitted.ended().delivery().is_ack());
    /// }
    /// let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM invoices").fetch_one(&mut conn).await?;
    /// assert_eq!(rows, 1);
    /// # Ok(()) }
    /// ```
    pub async fn receive_in<C, T, E, F>(mut self, conn: &mut C, handler: F) -> Uncommitted<T, E>
    where
        C: TxConnection,
        T: Serialize + DeserializeOwned + Send + 'static,
        E: Display + Send + 'static,
        P: ErrorPolicy<E>,
        F: AsyncFnOnce(&mut C::Connection) -> Result<T, E>,
    {
        let Self {
            cap, deliveries, ..
        } = self;
        if cap.is_set() && deliveries.is_none() {
            self.call.fail(Error::misuse(
                "`max_attempts` in a transaction needs the broker's number of the delivery, since a rollback forgets the record's: call `message(id).delivery(number)`",
            ));
        }
        let call = TxCall {
            call: self.call,
            policy: Sorted::<P>::NEW,
            map: Apart,
            within: reservation(cap, deliveries),
            conn: conn.connection(),
            session: TxConnection::session,
        };
        let policy = self.policy;
        let body =
            async |conn: &mut C::Connection| handle(cap, deliveries, policy, handler(conn)).await;
        let (result, outcome) = outcome::observe(call.run(body)).await;
        Uncommitted(Received::of(result, outcome, Failure::Undone))
    }
}

/// A delivery that will not run its handler takes its reservation back, so that
/// the caller may commit. Others leave that to the rollback, and save statements.
fn reservation(cap: Cap, deliveries: Option<u32>) -> Within {
    if deliveries.is_some_and(|deliveries| cap.is_over(deliveries)) {
        Within::Savepoint
    } else {
        Within::Transaction
    }
}
