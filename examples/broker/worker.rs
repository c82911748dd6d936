//! What a consumer does with a message, whatever the broker: begin, call, commit, and only then
//! say what the broker is to be told.

use idem::{Delivery, Engine, How};

use super::BoxError;
use super::args::Options;
use super::book::BookError;
use super::books::Books;
use super::payment::Payment;
use super::watch::{Moment, Watch};

/// One consumer of the queue.
pub(crate) struct Worker {
    books: Books,
    watch: Watch,
    engine: Engine,
}

impl Worker {
    pub(crate) async fn open(options: &Options) -> Result<Self, BoxError> {
        let (books, engine) = Books::open(&options.store, &options.queue).await?;
        idem::install(engine.clone())?;
        let watch = Watch::open(&options.ledger, options.stand)?;
        Ok(Self {
            books,
            watch,
            engine,
        })
    }

    /// Handles one delivery of the message. Returns what to tell the broker.
    pub(crate) async fn handle(&self, payment: &Payment) -> Result<Delivery, BoxError> {
        self.watch.note("received", &payment.id);
        let told = match self.book(payment).await {
            Ok(()) => Delivery::Ack,
            Err(error) => {
                tracing::warn!(%error, "not booked");
                error.delivery()
            }
        };
        // For the verdict; a consumer of yours does not look.
        let booked = self.books.booked(&payment.id).await?;
        self.watch.told(told, booked, &payment.id);
        Ok(told)
    }

    async fn book(&self, payment: &Payment) -> Result<(), BookError> {
        let mut tx = self.books.begin().await?;
        let (booked, outcome) = idem::observe(tx.book(payment, &self.watch)).await;
        match booked {
            Ok(_) => tx.commit().await?,
            Err(error) => {
                tx.rollback().await?;
                return Err(error);
            }
        }
        if outcome.is_some_and(|outcome| outcome.how == How::Executed) {
            self.watch
                .stand_still(Moment::BeforeTheAck, &payment.id)
                .await;
        }
        Ok(())
    }

    pub(crate) async fn close(self) -> Result<(), BoxError> {
        self.engine
            .shutdown(std::time::Duration::from_secs(5))
            .await?;
        Ok(())
    }
}
