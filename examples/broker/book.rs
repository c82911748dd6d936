//! The function that handles a message: where `#[idempotent]` stands.

use std::time::Duration;

use idem::transaction::TxConnection;
use idem::{Delivery, idempotent, sqlx};

use super::books;
use super::payment::Payment;
use super::watch::{Moment, Watch};

/// Books a payment and leaves an e-mail in the outbox, both in the caller's transaction. Returns
/// the cents that were booked.
#[idempotent(
    name = "payments.book",
    // The sender's id; never the broker's number of the delivery.
    key = payment.id,
    // The same id with another content is a mistake of the sender, and is refused.
    payload = (payment.customer, payment.cents),
    // Longer than any copy may still be on its way.
    ttl = "14d",
    // A consumer that waits handles nothing else, and the broker can wait for it.
    on_in_progress = reject,
    // Rows, record and answer commit together or not at all.
    tx = tx,
)]
pub(super) async fn book<C: TxConnection>(
    tx: &mut C,
    payment: &Payment,
    watch: &Watch,
) -> Result<i64, BookError> {
    watch.note("begin", &payment.id);
    let mut session = tx.session();
    books::book(&mut session, payment).await?;
    // Not sent from here: a rollback does not take back an e-mail.
    books::post(&mut session, payment).await?;
    watch.stand_still(Moment::InTheBody, &payment.id).await;
    watch.note("end", &payment.id);
    Ok(payment.cents)
}

/// Why a payment was not booked. The transaction is rolled back, so nothing has happened.
#[derive(Debug)]
pub(crate) enum BookError {
    /// The database failed. If it was the commit, it may have happened: the next delivery finds
    /// the record, or runs.
    Database(sqlx::Error),
    /// `idem` has no answer: still running, store away, and so on.
    Idem(idem::Error),
}

impl BookError {
    /// What to tell the broker.
    pub(super) fn delivery(&self) -> Delivery {
        match self {
            Self::Database(_) => Delivery::Retry {
                after: Duration::from_secs(1),
            },
            Self::Idem(error) => error.delivery(),
        }
    }
}

impl std::fmt::Display for BookError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Database(error) => write!(f, "the database: {error}"),
            Self::Idem(error) => error.fmt(f),
        }
    }
}

impl From<idem::Error> for BookError {
    fn from(error: idem::Error) -> Self {
        Self::Idem(error)
    }
}

impl From<sqlx::Error> for BookError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}
