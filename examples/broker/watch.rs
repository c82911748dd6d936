//! What the demo sees of a consumer, and where it holds one still. A consumer of yours has none of
//! this.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use idem::Delivery;

use super::BoxError;

/// Where a consumer stands still to be killed: the worst moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The rows are written, and nothing is committed.
    InTheBody,
    /// Everything is committed, and the broker does not know.
    BeforeTheAck,
}

impl Moment {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::InTheBody => "in-the-body",
            Self::BeforeTheAck => "before-the-ack",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::InTheBody, Self::BeforeTheAck]
            .into_iter()
            .find(|moment| moment.name() == name)
    }
}

/// Lines of all processes in one file, in the order in which they were written: each is one write
/// at the file's end.
pub(crate) struct Watch {
    file: File,
    stand: Option<Moment>,
}

impl Watch {
    pub(super) fn open(path: &Path, stand: Option<Moment>) -> Result<Self, BoxError> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, stand })
    }

    /// A line of this process about a message.
    pub(super) fn note(&self, event: &str, message: &str) {
        self.note_of(std::process::id(), event, message);
    }

    /// A line about another process, or of it.
    pub(super) fn note_of(&self, pid: u32, event: &str, message: &str) {
        let line = format!("{pid} {event} {message}\n");
        if let Err(error) = (&self.file).write_all(line.as_bytes()) {
            // The verdict will miss it.
            eprintln!("the ledger: {error}");
        }
    }

    /// What the broker is about to be told, and how often the payment is booked by then.
    pub(super) fn told(&self, told: Delivery, booked: i64, message: &str) {
        match told {
            Delivery::Ack => self.note(&format!("ack:{booked}"), message),
            Delivery::Retry { .. } => self.note("retry", message),
            Delivery::Park => self.note("park", message),
        }
    }

    /// Goes no further if this is where this consumer is to be killed.
    pub(super) async fn stand_still(&self, moment: Moment, message: &str) {
        if self.stand == Some(moment) {
            println!("standing still with {message}");
            std::future::pending::<()>().await;
        }
    }
}
