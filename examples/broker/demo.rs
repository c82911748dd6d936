//! The demo: a publisher that repeats itself, three consumers of which one is killed again and
//! again, two senders of e-mails, and the verdict.

use std::time::Duration;

use tokio::time::Instant;

use super::args::{Demo, Options};
use super::books::Books;
use super::mail::taken;
use super::payment::Payment;
use super::process::Process;
use super::verdict::{self, Seen};
use super::watch::{Moment, Watch};
use super::{BoxError, Broker};

const PAYMENTS: usize = 1_000;
const KILLS: usize = 10;
/// So long the others may meet the message of a consumer that stands still: an opportunity, on
/// which nothing depends.
const HOLD: Duration = Duration::from_millis(100);
/// How often to ask whether everything is done, and for how long.
const PAUSE: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs the demo with the broker that `connect` returns for a queue's name.
pub(crate) async fn run<B: Broker>(
    demo: Demo,
    connect: impl AsyncFnOnce(&str, &str) -> Result<B, BoxError>,
) -> Result<(), BoxError> {
    let folder = tempfile::Builder::new().prefix("payments-").tempdir()?;
    let name = folder.path().file_name();
    let queue = name
        .ok_or("the folder has a name")?
        .to_string_lossy()
        .into_owned();
    let in_folder = |name: &str| folder.path().join(name);
    let options = Options {
        store: demo
            .store
            .unwrap_or_else(|| format!("sqlite://{}", in_folder("books.db").display())),
        ledger: in_folder("ledger"),
        mailbox: in_folder("mailbox"),
        broker: demo.broker,
        queue,
        stand: None,
    };

    let (books, _engine) = Books::open(&options.store, &options.queue).await?;
    books.clear().await?;
    let broker = connect(&options.broker, &options.queue).await?;
    broker.declare().await?;

    let mut others = Vec::new();
    for command in ["consume", "consume", "mail", "mail"] {
        others.push(Process::start(command, &options).await?);
    }
    let copies = publish_and_kill(&broker, &options).await?;
    others.push(Process::start("consume", &options).await?);

    // Nobody is stopped before everything is done, or a process has failed to do it in time.
    let began = Instant::now();
    let is_done = async || {
        let acked = verdict::acknowledged(&options.ledger)? >= copies;
        Ok::<_, BoxError>(acked && books.open_mails().await? == 0 && broker.left().await? == 0)
    };
    while !is_done().await? && began.elapsed() < PATIENCE {
        tokio::time::sleep(PAUSE).await;
    }
    for process in others {
        process.stop().await?;
    }

    let left = broker.left().await?;
    broker.remove().await?;
    verdict::tell(&Seen {
        payments: PAYMENTS,
        copies,
        kills: KILLS,
        ledger: verdict::read(&options.ledger)?,
        effects: books.effects().await?,
        mails: taken(&options.mailbox)?,
        left,
    })
}

/// Publishes the payments in as many parts as there are kills. In each part one consumer stands
/// still at its first payment, and is killed there. Returns how many messages were published.
async fn publish_and_kill(broker: &impl Broker, options: &Options) -> Result<usize, BoxError> {
    let watch = Watch::open(&options.ledger, None)?;
    let payments: Vec<Payment> = (0..PAYMENTS).map(Payment::number).collect();
    let mut copies = 0;
    for (part, payments) in payments.chunks(PAYMENTS / KILLS).enumerate() {
        let moment = match part % 2 {
            0 => Moment::InTheBody,
            _ => Moment::BeforeTheAck,
        };
        let options = Options {
            stand: Some(moment),
            ..options.clone()
        };
        let mut doomed = Process::start("consume", &options).await?;
        let messages = repeated(payments);
        copies += messages.len();
        broker.publish(&messages).await?;
        doomed.says("standing still").await?;
        tokio::time::sleep(HOLD).await;
        // From this line on it no longer counts as working: it stands still, and never goes on.
        watch.note_of(doomed.pid(), "kill", moment.name());
        doomed.kill().await?;
    }
    Ok(copies)
}

/// Each of these one to five times, out of order and the same in each run.
fn repeated(payments: &[Payment]) -> Vec<&Payment> {
    let mut messages: Vec<(u32, &Payment)> = Vec::new();
    let mut draw: u32 = 1;
    for (payment, copies) in payments.iter().zip((1..=5).cycle()) {
        for _ in 0..copies {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            messages.push((draw >> 8, payment));
        }
    }
    messages.sort_by_key(|(place, _)| *place);
    messages.into_iter().map(|(_, payment)| payment).collect()
}
