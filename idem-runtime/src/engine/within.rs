//! A call without an annotated function, in its caller's transaction.

use super::call::Call;
use super::driver::{self, Within};
use crate::answer::{Answer, policy};
use crate::codec::Json;
use crate::transaction::Session;

/// A call in its caller's transaction, from
/// [`PlainCall::in_transaction`](super::PlainCall::in_transaction).
#[must_use = "call `run`"]
pub struct TxCall<'c, C, P, M> {
    pub(crate) call: Call,
    pub(crate) policy: P,
    pub(crate) map: M,
    pub(crate) within: Within,
    pub(crate) conn: &'c mut C,
    /// What `C` can do, so that a type that can not is one error, where it is given.
    pub(crate) session: fn(&mut C) -> Session<'_>,
}

impl<C, P, M> std::fmt::Debug for TxCall<'_, C, P, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TxCall")
            .field("call", &self.call)
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

impl<'c, C, M> TxCall<'c, C, policy::Unknown, M> {
    /// Sets what is recorded when the body returns `Err`. Default: nothing.
    ///
    /// Where nothing is recorded, the caller must roll back: if the transaction
    /// is committed all the same, the outcome is unknown.
    pub fn on_error<Q>(self, policy: Q) -> TxCall<'c, C, Q, M> {
        TxCall {
            call: self.call,
            policy,
            map: self.map,
            within: self.within,
            conn: self.conn,
            session: self.session,
        }
    }
}

impl<C, P, M> TxCall<'_, C, P, M> {
    /// Puts reservation and body into a savepoint: an `Err` that is not recorded
    /// undoes both, and the rest of the transaction goes on. Two statements more.
    pub fn savepoint(mut self) -> Self {
        self.within = Within::Savepoint;
        self
    }

    /// Runs the body once, on the caller's connection, or replays its answer.
    ///
    /// # Concurrent calls
    /// One runs; the others wait until its transaction has ended, as long as
    /// `on_in_progress` says (on `MySQL`: as the session's
    /// `innodb_lock_wait_timeout` says).
    ///
    /// # Cancel safety
    /// Dropping the future leaves an unfinished reservation in the transaction:
    /// roll it back. If it is committed, the outcome is unknown.
    ///
    /// # Errors
    /// Those of the body, and [`Error`](crate::Error) through `E: From<Error>`.
    /// After [`Error::NotRecorded`](crate::Error::NotRecorded) the body has run:
    /// roll back.
    ///
    /// # Panics
    /// If the body panics; as after a drop.
    pub async fn run<R, F>(self, body: F) -> R
    where
        C: Send,
        R: Answer<Json, P, M>,
        F: AsyncFnOnce(&mut C) -> R,
    {
        let ops = R::ops_within(self.policy, self.map);
        let entered = driver::tx_enter(self.call, ops, self.within, self.conn, self.session).await;
        let mut permit = match entered {
            std::ops::ControlFlow::Break(answer) => return answer,
            std::ops::ControlFlow::Continue(permit) => permit,
        };
        let ended = {
            let (run, conn) = permit.split();
            run.run(std::pin::pin!(body(conn))).await
        };
        permit.complete(ended).await
    }
}
