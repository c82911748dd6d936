//! The consumer.

use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt as _;
use idem::Delivery;

use crate::broker::BoxError;
use crate::broker::args::Options;
use crate::broker::payment::Payment;
use crate::broker::process::stopped;
use crate::broker::worker::Worker;
use crate::queue::Nats;

/// How many messages are fetched ahead. They are delivered again when a consumer dies.
const AHEAD: usize = 8;

/// Handles messages until it is told to stop.
pub(crate) async fn run(options: Options) -> Result<(), BoxError> {
    let worker = Worker::open(&options).await?;
    let nats = Nats::connect(&options.broker, &options.queue).await?;
    let consumer = nats.consumer().await?;
    let mut messages = consumer
        .stream()
        .max_messages_per_batch(AHEAD)
        .messages()
        .await?;
    println!("ready");

    let mut stop = std::pin::pin!(stopped());
    loop {
        let message = tokio::select! {
            message = messages.next() => message.ok_or("the server has ended the stream")??,
            () = &mut stop => break,
        };
        handle(&worker, &nats, &message).await?;
    }
    worker.close().await
}

async fn handle(worker: &Worker, nats: &Nats, message: &Message) -> Result<(), BoxError> {
    let delivery = match Payment::read(&message.payload) {
        Ok(payment) => worker.handle(&payment).await?,
        // Nobody will ever be able to read it.
        Err(_) => Delivery::Park,
    };
    match delivery {
        // Waits until the server has it, so that nothing is lost when this process ends.
        Delivery::Ack => message.double_ack().await,
        Delivery::Retry { after } => message.ack_with(AckKind::Nak(Some(after))).await,
        Delivery::Park => {
            // A copy first: between the two there is one too many, and never one too few.
            nats.park(&message.payload).await?;
            message.double_ack_with(AckKind::Term).await
        }
    }
}
