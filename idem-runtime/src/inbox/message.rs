//! One delivery of a message.

use std::borrow::Cow;
use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ended::{Apart, Cap, Ended, Sorted, handle};
use super::received::Failure;
use super::{Inbox, Received};
use crate::answer::{Answer, ErrorPolicy};
use crate::codec::Json;
use crate::engine::call::Call;
use crate::engine::driver;
use crate::outcome;

/// A delivery that [`Inbox::message`] describes.
#[derive(Debug)]
#[must_use = "call `receive` or `receive_in`"]
pub struct Message<P> {
    pub(super) call: Call,
    pub(super) cap: Cap,
    pub(super) deliveries: Option<u32>,
    pub(super) policy: P,
}

impl<P: Clone> Inbox<P> {
    /// Describes a delivery of the message with this id, to say more about it
    /// than the id; then [`receive`](Message::receive) it, or, in a transaction,
    /// [`receive_in`](Message::receive_in).
    ///
    /// `id` is the sender's: the same in every delivery, and unique among the
    /// messages of this consumer and scope. A broker's delivery tag is not.
    pub fn message<K: Serialize + ?Sized>(&self, id: &K) -> Message<P> {
        Message {
            call: self.call(id),
            cap: self.cap,
            deliveries: None,
            policy: self.policy.clone(),
        }
    }

    /// Runs the handler if this is the first delivery of the message, and says
    /// what to do with it: [`message`](Self::message) with nothing but an id.
    ///
    /// # Concurrent calls
    /// One runs its handler; the others are [`Received::InProgress`] at once,
    /// unless [`on_in_progress`](Self::on_in_progress) lets them wait.
    ///
    /// # Cancel safety
    /// As [`Message::receive`].
    ///
    /// # Panics
    /// As [`Message::receive`].
    pub async fn receive<K, T, E, F>(&self, id: &K, handler: F) -> Received<T, E>
    where
        K: Serialize + ?Sized,
        T: Serialize + DeserializeOwned + Send + 'static,
        E: Display + Send + 'static,
        P: ErrorPolicy<E>,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.message(id).receive(handler).await
    }
}

impl<P> Message<P> {
    /// Sets which delivery of the message this is by the broker's count, from 1:
    /// what [`max_attempts`](Inbox::max_attempts) compares with.
    pub fn delivery(mut self, number: u32) -> Self {
        self.deliveries = Some(number);
        self
    }

    /// Sets what must be equal in every delivery of this id. Another one is
    /// parked: two messages share an id. The elements of a tuple of several are
    /// named by their position when they differ.
    pub fn payload<T: Serialize + ?Sized>(mut self, payload: &T) -> Self {
        self.call = self.call.payload_element(Cow::Borrowed(""), payload);
        self
    }

    /// Sets text for operators, stored in clear, cut to 128 bytes.
    pub fn label(mut self, label: &(impl Display + ?Sized)) -> Self {
        self.call = self.call.label(label);
        self
    }

    /// Runs the handler if this is the first delivery of the message, and says
    /// what to do with it.
    ///
    /// The handler's answer is recorded and goes to every duplicate. Its error
    /// needs a text and nothing else: no conversion from [`Error`](crate::Error),
    /// which comes as [`Received::Refused`]. A consumer has one handler: with
    /// other types of answer or error it is refused, since one would be read as
    /// the other ([`Error::Misuse`](crate::Error::Misuse)).
    ///
    /// # Concurrent calls
    /// As [`Inbox::receive`].
    ///
    /// # Cancel safety
    /// Dropping the future before the handler's first poll runs nothing. After
    /// that the handler goes on in its own task, and its answer is recorded: the
    /// next delivery of what was not acknowledged is a duplicate.
    ///
    /// # Panics
    /// If the handler panics; the outcome is then unknown.
    pub async fn receive<T, E, F>(self, handler: F) -> Received<T, E>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        E: Display + Send + 'static,
        P: ErrorPolicy<E>,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let body = handle(self.cap, self.deliveries, self.policy, handler);
        let ops = <Result<T, Ended<E>> as Answer<Json, Sorted<P>, Apart>>::ops(Sorted::NEW, Apart);
        let call = driver::detached(self.call, ops, body);
        let (result, outcome) = outcome::observe(call).await;
        Received::of(result, outcome, Failure::Kept)
    }
}
