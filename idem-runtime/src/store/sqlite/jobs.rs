//! What the writer is asked to do, and the queue to it.

use crate::error::StoreError;
use crate::store::{
    Complete, MarkUnknown, Meta, RecordStep, Release, Reserve, Reserved, Settle, Sweep, Written,
};
use crate::sync::{mpsc, oneshot};

use super::gone;

/// Jobs that may wait for the writer before callers do.
const QUEUE: usize = 1024;

/// The most jobs in one transaction.
const BATCH: usize = 256;

pub(super) enum Op {
    Pin(Meta),
    Reserve(Reserve),
    Complete(Complete),
    Release(Release),
    MarkUnknown(MarkUnknown),
    Sweep(Sweep),
    Settle(Settle),
    RecordStep(RecordStep),
}

pub(super) enum Done {
    Pinned(Meta),
    Reserved(Reserved),
    Written(Written),
    Swept(u64),
}

pub(super) struct Job {
    pub(super) op: Op,
    pub(super) reply: oneshot::Sender<Result<Done, StoreError>>,
}

/// Returns both ends of the queue to a writer.
pub(super) fn queue() -> (Jobs, Inbox) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    (Jobs(sender), Inbox(receiver))
}

#[derive(Debug)]
pub(super) struct Jobs(mpsc::Sender<Job>);

impl Jobs {
    /// Asks the writer, after what waits for it already.
    pub(super) async fn ask(&self, op: Op) -> Result<Done, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Job { op, reply }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

/// The writer's end.
pub(super) struct Inbox(mpsc::Receiver<Job>);

impl Inbox {
    /// Waits for jobs. False if every sender is gone.
    pub(super) fn wait(&mut self, batch: &mut Vec<Job>) -> bool {
        self.0.blocking_recv_many(batch, BATCH) > 0
    }
}
