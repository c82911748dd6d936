//! Messages of a queue, each handled once.
//!
//! Brokers deliver a message again whenever an acknowledgement is lost. An
//! [`Inbox`] knows each message of one consumer by its id, and says of every
//! delivery what to do with it:
//!
//! | delivery | [`Received`] | [`Delivery`] |
//! |---|---|---|
//! | the first one; its handler returned `Ok` | `First` | `Ack` |
//! | of what was handled before | `Duplicate`, with the recorded answer | `Ack` |
//! | while another consumer handles it | `InProgress` | `Retry`: never acknowledge it, the other one may fail |
//! | after a handler that died, panicked or failed | `Unknown` | `Park`: its effect may have happened |
//! | its handler returned `Err` | `Failed` | `Park`, or `Retry` if [`on_error`](Inbox::on_error) says `Release` |
//! | of what failed for good before | `Rejected` | `Park` |
//! | one more than [`max_attempts`](Inbox::max_attempts) | `OverLimit` | `Park`, without running |
//! | the engine has no answer | `Refused` | [`Error::delivery`] |
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let engine = idem::Engine::builder(idem::store::MemoryStore::new()).build().await?;
//! use idem::Delivery;
//!
//! # struct Message { id: &'static str, amount: u64 }
//! # async fn book(amount: u64) -> Result<u64, std::io::Error> { Ok(amount) }
//! let inbox = engine.inbox("billing.invoice-paid").max_attempts(5);
//! for message in [Message { id: "m-1", amount: 42 }, Message { id: "m-1", amount: 42 }] {
//!     let received = inbox.receive(&message.id, book(message.amount)).await;
//!     match received.delivery() {
//!         Delivery::Ack => println!("acknowledge"),
//!         Delivery::Retry { after } => println!("nack, with a delay of {after:?}"),
//!         Delivery::Park => println!("to the dead letters"),
//!     }
//! #   assert!(received.delivery().is_ack());
//! }
//! # Ok(()) }
//! ```
//!
//! # What it stands on
//!
//! A delivery is a call whose operation is the consumer and whose key is the
//! message's id, so an annotated function and an inbox of that name share their
//! records, and everything said of calls holds: one recorded answer, at most one
//! run of the handler until the TTL ends, unless `Release` or
//! [`rerun`](Inbox::on_unknown) was chosen. A different consumer of the same
//! message is a different name.
//!
//! # In a transaction
//!
//! A handler that writes to the database of the engine's store, and does nothing
//! else, is best received in a transaction:
//! [`receive_in`](Message::receive_in). Its rows and its answer then commit
//! together, a failure undoes both, and nothing is ever in doubt.
//!
//! # What it does not promise
//!
//! Outside of a transaction the handler's own effect is not undone when it fails:
//! what it wrote before is there, and the outcome is unknown. And nothing after
//! the TTL: keep it longer than the broker can deliver again, dead letters
//! included.

mod ended;
mod forget;
mod message;
mod received;
mod uncommitted;
mod unseen;
#[cfg(feature = "tx")]
mod within;
#[cfg(not(feature = "tx"))]
mod without;

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;

use self::ended::Cap;
pub use self::message::Message;
pub use self::received::Received;
pub use self::uncommitted::Uncommitted;
pub use self::unseen::Unseen;
use crate::answer::policy::{ClassifyText, Unknown};
#[cfg(doc)]
use crate::delivery::Delivery;
use crate::engine::Engine;
use crate::engine::call::Call;
use crate::error::Error;
use crate::policy::{Disposition, OnInProgress, OnUnknown, Ttl};

/// Longer than the brokers in use keep a message by themselves: SQS at most 14
/// days, Kafka 7 unless told.
const TTL: Duration = Duration::from_secs(14 * 86_400);

/// The messages of one consumer; see the [module page](self).
///
/// Make one at start-up, and clone it into each worker: it is cheap, and holds
/// no connection.
#[derive(Clone)]
#[must_use = "call `receive`"]
pub struct Inbox<P = Unknown> {
    engine: Option<Engine>,
    consumer: Cow<'static, str>,
    scope: Option<Result<Vec<u8>, Error>>,
    ttl: Ttl,
    cap: Cap,
    on_in_progress: OnInProgress,
    on_unknown: OnUnknown,
    policy: P,
}

impl<P> std::fmt::Debug for Inbox<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the scope: it is the user's.
        f.debug_struct("Inbox")
            .field("consumer", &self.consumer)
            .finish_non_exhaustive()
    }
}

/// Makes the inbox of a consumer, on the engine that an annotated function would
/// find: the task's, or the installed one.
///
/// `consumer` is its stable name, 1 to 128 bytes, such as
/// `"billing.invoice-paid"`: who handles what. A mistake in it, and a missing
/// engine, is told at each delivery.
pub fn inbox(consumer: impl Into<Cow<'static, str>>) -> Inbox {
    Inbox {
        engine: None,
        consumer: consumer.into(),
        scope: None,
        ttl: Ttl::For(TTL),
        cap: Cap::NONE,
        on_in_progress: OnInProgress::Reject,
        on_unknown: OnUnknown::Refuse,
        policy: Unknown,
    }
}

impl Engine {
    /// Makes the [inbox](mod@crate::inbox) of a consumer on this engine.
    ///
    /// `consumer` is its stable name, 1 to 128 bytes.
    pub fn inbox(&self, consumer: impl Into<Cow<'static, str>>) -> Inbox {
        Inbox {
            engine: Some(self.clone()),
            ..inbox(consumer)
        }
    }
}

impl<P> Inbox<P> {
    /// Sets how long a handled message is known, from the end of its handler: by
    /// default 14 days. At least as long as the broker can deliver a message
    /// again, replays of dead letters included: a duplicate that comes later is
    /// handled again.
    pub fn ttl(mut self, ttl: impl Into<Ttl>) -> Self {
        self.ttl = ttl.into();
        self
    }

    /// Sets the tenant or source in which ids are unique, part of the identity.
    pub fn scope<T: Serialize + ?Sized>(mut self, scope: &T) -> Self {
        self.scope = Some(Call::encode_scope(scope));
        self
    }

    /// Sets how many deliveries of a message may run its handler, at least 1; by
    /// default there is no limit of this library's. One more is
    /// [`Received::OverLimit`], and parked. What was handled stays a duplicate,
    /// however often it comes.
    ///
    /// A delivery's number is the broker's where the consumer
    /// [passes it](Message::delivery), and the record's attempts otherwise.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.cap = Cap::of(attempts.max(1));
        self
    }

    /// Sets what a delivery does while another consumer handles the message. By
    /// default it is rejected: a consumer that waits handles nothing else, and
    /// the broker can wait for it.
    pub fn on_in_progress(mut self, choice: OnInProgress) -> Self {
        self.on_in_progress = choice;
        self
    }

    /// Sets what a delivery does after a handler that ended without an answer.
    /// By default it is refused, and parked. `Rerun` handles the message again
    /// (at least once): choose it if the handler's effect may happen twice.
    /// `Recover` is refused: there is nobody to ask.
    pub fn on_unknown(mut self, choice: OnUnknown) -> Self {
        self.on_unknown = choice;
        self
    }

    /// Sets what an `Err` of the handler says about its effect; by default
    /// nothing, so that the outcome is unknown and the delivery parked.
    ///
    /// - `Disposition::Release`: nothing happened. The delivery is
    ///   [`Retry`](crate::Delivery::Retry), after 1 second that doubles with each
    ///   attempt, up to a minute.
    /// - `Disposition::Store`: the message itself is at fault. It is parked, and
    ///   later deliveries are [`Received::Rejected`] with the error's text, of
    ///   which 4 KiB are kept, until [`forget`](Self::forget).
    /// - `Disposition::Unknown`: the effect may have happened.
    pub fn on_error<E, F>(self, classify: F) -> Inbox<ClassifyText<F>>
    where
        F: Fn(&E) -> Disposition + Clone + Send + Sync + 'static,
    {
        Inbox {
            engine: self.engine,
            consumer: self.consumer,
            scope: self.scope,
            ttl: self.ttl,
            cap: self.cap,
            on_in_progress: self.on_in_progress,
            on_unknown: self.on_unknown,
            policy: ClassifyText(classify),
        }
    }

    /// The call that a message of this id is.
    fn call<K: Serialize + ?Sized>(&self, id: &K) -> Call {
        let mut call = Call::plain(self.consumer.clone()).ttl(self.ttl).key(id);
        if let Some(engine) = &self.engine {
            call = call.engine(engine);
        }
        if let Some(scope) = &self.scope {
            call = call.encoded_scope(scope.clone());
        }
        call.on_in_progress(self.on_in_progress);
        call.on_unknown(self.on_unknown);
        if self.on_unknown == OnUnknown::Recover {
            call.fail(Error::misuse(
                "an inbox has nobody to ask: use an annotated function with `on_unknown = recover(..)` and `Error::delivery()`",
            ));
        }
        call
    }
}
