//! What the writer is asked to do, and the queue to it.

use crate::error::StoreError;
use crate::store::{
    Complete, MarkUnknown, Meta, RecordStep, Release, Reserve, Reserved, Settle, Sweep, Written,
};
use crate::sync::{Arc, Mutex, lock, mpsc, oneshot};

use super::gone;

/// Jobs that may wait for the writer before callers do.
const QUEUE: usize = 1024;

/// The most jobs in one transaction.
const BATCH: usize = 256;

pub(super) enum Op {
    Pin(Meta),
    /// A reservation that nobody has looked at yet: it may need no transaction.
    Look(Reserve),
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
    let idle = Arc::new(Mutex::new(false));
    let jobs = Jobs {
        sender,
        idle: Arc::clone(&idle),
    };
    (jobs, Inbox { receiver, idle })
}

#[derive(Debug)]
pub(super) struct Jobs {
    sender: mpsc::Sender<Job>,
    /// Whether the writer waits for the next job. Jobs are put into the queue
    /// under its lock, so that the next one is the first one.
    idle: Arc<Mutex<bool>>,
}

impl Jobs {
    /// Asks the writer, after what waits for it already.
    pub(super) async fn ask(&self, op: Op) -> Result<Done, StoreError> {
        let room = self.sender.reserve().await.map_err(|_| gone())?;
        let (reply, answer) = oneshot::channel();
        {
            let mut idle = lock(&self.idle);
            *idle = false;
            room.send(Job { op, reply });
        }
        answer.await.map_err(|_| gone())?
    }

    /// Asks the writer if it has nothing to do, so that nothing is in the way
    /// of the answer: no transaction, and no wait for a lock.
    pub(super) async fn ask_if_idle(
        &self,
        op: impl FnOnce() -> Op + Send,
    ) -> Option<Result<Done, StoreError>> {
        let answer = {
            let mut idle = lock(&self.idle);
            if !*idle {
                return None;
            }
            let room = self.sender.try_reserve().ok()?;
            *idle = false;
            let (reply, answer) = oneshot::channel();
            room.send(Job { op: op(), reply });
            answer
        };
        Some(answer.await.unwrap_or_else(|_| Err(gone())))
    }
}

/// The writer's end.
pub(super) struct Inbox {
    receiver: mpsc::Receiver<Job>,
    idle: Arc<Mutex<bool>>,
}

impl Inbox {
    /// Waits for jobs, and is idle if it can look at once. False if every
    /// sender is gone.
    pub(super) fn wait(&mut self, batch: &mut Vec<Job>, can_look: bool) -> bool {
        {
            let mut idle = lock(&self.idle);
            *idle = can_look && self.receiver.is_empty();
        }
        self.receiver.blocking_recv_many(batch, BATCH) > 0
    }
}
