//! The consumer.

use futures_util::StreamExt as _;
use idem::Delivery;
use lapin::message::Delivery as Message;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions};
use lapin::types::FieldTable;

use crate::broker::BoxError;
use crate::broker::args::Options;
use crate::broker::payment::Payment;
use crate::broker::process::stopped;
use crate::broker::worker::Worker;
use crate::queue::Rabbit;

/// How many messages the broker sends ahead. They are delivered again when a consumer dies.
const AHEAD: u16 = 8;

/// Handles messages until it is told to stop.
pub(crate) async fn run(options: Options) -> Result<(), BoxError> {
    let worker = Worker::open(&options).await?;
    let rabbit = Rabbit::connect(&options.broker, &options.queue).await?;
    let channel = &rabbit.channel;
    channel.basic_qos(AHEAD, BasicQosOptions::default()).await?;
    let mut messages = channel
        .basic_consume(
            options.queue.as_str().into(),
            "".into(),
            // Nothing is acknowledged by being delivered.
            BasicConsumeOptions::default(),
            FieldTable::default(),
        )
        .await?;
    println!("ready");

    let mut stop = std::pin::pin!(stopped());
    loop {
        let message = tokio::select! {
            message = messages.next() => message.ok_or("the broker has closed the channel")??,
            () = &mut stop => break,
        };
        handle(&worker, &rabbit, &message).await?;
    }
    // Also sends what is still on its way, so that no acknowledgement is lost.
    rabbit.connection.close(200, "done".into()).await?;
    worker.close().await
}

async fn handle(worker: &Worker, rabbit: &Rabbit, message: &Message) -> Result<(), BoxError> {
    let delivery = match Payment::read(&message.data) {
        Ok(payment) => worker.handle(&payment).await?,
        // Nobody will ever be able to read it.
        Err(_) => Delivery::Park,
    };
    match delivery {
        Delivery::Ack => message.ack(BasicAckOptions::default()).await?,
        Delivery::Retry { after } => {
            // A copy first, then the acknowledgement: between the two there is one too many, which
            // is harmless, and never one too few.
            rabbit.publish_later(&message.data, after).await?;
            message.ack(BasicAckOptions::default()).await?
        }
        // Not requeued, so it goes to the dead letters.
        Delivery::Park => message.nack(BasicNackOptions::default()).await?,
    };
    Ok(())
}
