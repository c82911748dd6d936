//! The streams, and publishing into them.
//!
//! A work queue: what is acknowledged is removed from the stream. Beside it there is a stream of
//! what is parked. `JetStream` can drop a message whose `Nats-Msg-Id` it has seen within the last
//! minutes; a publisher that tries again an hour later gets past that, and so do these.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::{Config, RetentionPolicy};
use async_nats::jetstream::{self, Context};

use crate::broker::payment::Payment;
use crate::broker::{BoxError, Broker};

/// After so long without an acknowledgement, a message is delivered again: that is how the server
/// learns that a consumer is dead. Longer than it ever takes to handle what was fetched ahead.
const ACK_WAIT: Duration = Duration::from_secs(5);
/// The name of the consumer that all processes share.
const BOOKS: &str = "books";

/// A connection, and a stream.
pub(crate) struct Nats {
    context: Context,
    stream: String,
}

impl Nats {
    pub(crate) async fn connect(url: &str, queue: &str) -> Result<Self, BoxError> {
        let client = async_nats::connect(url).await?;
        Ok(Self {
            context: jetstream::new(client),
            stream: queue.to_owned(),
        })
    }

    fn dead(&self) -> String {
        format!("{}-dead", self.stream)
    }

    pub(crate) async fn consumer(&self) -> Result<PullConsumer, BoxError> {
        let stream = self.context.get_stream(&self.stream).await?;
        stream.get_consumer(BOOKS).await
    }

    /// Puts a message aside for people. Returns when the server has it.
    pub(crate) async fn park(&self, body: &[u8]) -> Result<(), BoxError> {
        let sent = self.context.publish(self.dead(), body.to_vec().into());
        sent.await?.await?;
        Ok(())
    }
}

impl Broker for Nats {
    async fn declare(&self) -> Result<(), BoxError> {
        for (name, retention) in [
            (self.stream.clone(), RetentionPolicy::WorkQueue),
            (self.dead(), RetentionPolicy::Limits),
        ] {
            let config = Config {
                subjects: vec![name.clone()],
                name,
                retention,
                ..Config::default()
            };
            self.context.create_stream(config).await?;
        }
        let stream = self.context.get_stream(&self.stream).await?;
        let consumer = stream.create_consumer(pull::Config {
            durable_name: Some(BOOKS.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            ..pull::Config::default()
        });
        consumer.await?;
        Ok(())
    }

    async fn publish(&self, payments: &[&Payment]) -> Result<(), BoxError> {
        let mut confirms = Vec::new();
        for payment in payments {
            let body = payment.write()?.into();
            confirms.push(self.context.publish(self.stream.clone(), body).await?);
        }
        for confirm in confirms {
            confirm.await?;
        }
        Ok(())
    }

    async fn left(&self) -> Result<u64, BoxError> {
        let mut left = 0;
        for name in [self.stream.clone(), self.dead()] {
            let stream = self.context.get_stream(name).await?;
            left += stream.cached_info().state.messages;
        }
        Ok(left)
    }

    async fn remove(&self) -> Result<(), BoxError> {
        for name in [self.stream.clone(), self.dead()] {
            self.context.delete_stream(name).await?;
        }
        Ok(())
    }
}
