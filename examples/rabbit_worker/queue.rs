//! The queues, and publishing into them.
//!
//! Beside the queue of payments there are two: `later`, whose messages go back to it when their
//! time is over, and `dead`, for those that are parked.

use std::time::Duration;

use lapin::options::{
    BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};

use crate::broker::payment::Payment;
use crate::broker::{BoxError, Broker};

/// The longest delay that `later` is asked for. It gives its messages back in their order, so that
/// one with a long delay holds up those behind it.
const LONGEST: Duration = Duration::from_secs(30);
/// Written to disk.
const PERSISTENT: u8 = 2;

/// A connection, a channel on which the broker confirms what it got, and a queue.
pub(crate) struct Rabbit {
    pub(crate) connection: Connection,
    pub(crate) channel: Channel,
    pub(crate) queue: String,
}

impl Rabbit {
    pub(crate) async fn connect(url: &str, queue: &str) -> Result<Self, BoxError> {
        let connection = Connection::connect(url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await?;
        Ok(Self {
            connection,
            channel,
            queue: queue.to_owned(),
        })
    }

    fn later(&self) -> String {
        format!("{}.later", self.queue)
    }

    fn dead(&self) -> String {
        format!("{}.dead", self.queue)
    }

    /// Makes a queue whose messages go to another one when they are rejected or too old.
    async fn make(&self, name: String, then: Option<String>) -> Result<(), BoxError> {
        let mut arguments = FieldTable::default();
        if let Some(then) = then {
            let text = |text: String| AMQPValue::LongString(text.into());
            arguments.insert("x-dead-letter-exchange".into(), text(String::new()));
            arguments.insert("x-dead-letter-routing-key".into(), text(then));
        }
        let options = QueueDeclareOptions::durable();
        let declared = self.channel.queue_declare(name.into(), options, arguments);
        declared.await?;
        Ok(())
    }

    /// How many messages of a queue are with no consumer.
    async fn count(&self, name: String) -> Result<u64, BoxError> {
        let options = QueueDeclareOptions::durable().passive();
        let declared = self
            .channel
            .queue_declare(name.into(), options, FieldTable::default());
        Ok(declared.await?.message_count().into())
    }

    /// Delivers a message again after a while. Returns when the broker has this copy, so that the
    /// delivery may be acknowledged.
    pub(crate) async fn publish_later(&self, body: &[u8], after: Duration) -> Result<(), BoxError> {
        let delay = after.min(LONGEST).as_millis().to_string();
        let properties = BasicProperties::default()
            .with_delivery_mode(PERSISTENT)
            .with_expiration(delay.into());
        let options = BasicPublishOptions::default();
        let sent =
            self.channel
                .basic_publish("".into(), self.later().into(), options, body, properties);
        match sent.await?.await?.is_ack() {
            true => Ok(()),
            false => Err("the broker did not take a message".into()),
        }
    }
}

impl Broker for Rabbit {
    async fn declare(&self) -> Result<(), BoxError> {
        self.make(self.dead(), None).await?;
        self.make(self.queue.clone(), Some(self.dead())).await?;
        self.make(self.later(), Some(self.queue.clone())).await
    }

    async fn publish(&self, payments: &[&Payment]) -> Result<(), BoxError> {
        let mut confirms = Vec::new();
        for payment in payments {
            let body = payment.write()?;
            let properties = BasicProperties::default().with_delivery_mode(PERSISTENT);
            let options = BasicPublishOptions::default();
            let queue = self.queue.as_str().into();
            let sent = self
                .channel
                .basic_publish("".into(), queue, options, &body, properties);
            confirms.push(sent.await?);
        }
        for confirm in confirms {
            if !confirm.await?.is_ack() {
                return Err("the broker did not take a message".into());
            }
        }
        Ok(())
    }

    async fn left(&self) -> Result<u64, BoxError> {
        let mut left = 0;
        for name in [self.queue.clone(), self.later(), self.dead()] {
            left += self.count(name).await?;
        }
        Ok(left)
    }

    async fn remove(&self) -> Result<(), BoxError> {
        for name in [self.queue.clone(), self.later(), self.dead()] {
            let options = QueueDeleteOptions::default();
            self.channel.queue_delete(name.into(), options).await?;
        }
        Ok(self.connection.close(200, "done".into()).await?)
    }
}
