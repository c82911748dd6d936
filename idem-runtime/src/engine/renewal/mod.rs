//! Leases are renewed by a thread of their own.
//!
//! It has a runtime and a store connection of its own: a body that blocks its
//! runtime, or takes every pooled connection, keeps its lease all the same.
//! The thread also says goodbye for attempts that were dropped, so that `Drop`
//! needs neither a runtime nor I/O. It ends when its engine and every attempt
//! are gone and the goodbyes are said.

mod farewell;
mod held;
mod worker;

use std::time::Duration;

use self::farewell::{Farewell, Goodbye};
use self::held::Held;
use self::worker::Worker;
use super::attempt::AttemptState;
use crate::clock::Clock;
use crate::error::{Error, StoreError, StoreErrorKind};
use crate::store::{GiveBack, MarkUnknown, Renewer, Store};
use crate::sync::{Arc, mpsc, oneshot};

/// The way to the renewal thread. Sending needs no runtime.
#[derive(Debug, Clone)]
pub(crate) struct Renewals {
    commands: mpsc::UnboundedSender<Command>,
    held: Arc<Held>,
}

/// The worker's end.
pub(crate) struct Commands {
    commands: mpsc::UnboundedReceiver<Command>,
    held: Arc<Held>,
}

impl Commands {
    /// Serves them until every sender is gone and the goodbyes are said.
    pub(crate) async fn serve(
        self,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        renewer: Box<dyn Renewer>,
    ) {
        let worker = Worker::new(store, clock, renewer, self.held);
        worker.run(self.commands).await;
    }
}

enum Command {
    /// A lease is to be renewed earlier than was planned.
    Earlier,
    Farewell(Farewell),
    /// Renews one lease now and says whether it is still held.
    Confirm(Arc<AttemptState>, oneshot::Sender<Result<bool, StoreError>>),
    /// Marks everything still held unknown, and says how many there were.
    ShutDown(oneshot::Sender<usize>),
    /// Renews everything held now, and says which lease of it is the shortest.
    #[cfg(feature = "testing")]
    RenewNow(std::sync::mpsc::Sender<Option<Duration>>),
}

impl Renewals {
    /// Starts the thread and opens its connection.
    pub(crate) async fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let (renewals, commands) = Self::channel(&clock);
        let (opened, ready) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|_| no_thread())?;
        std::thread::Builder::new()
            .name("idem-renewal".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    match store.renewer().await {
                        Ok(renewer) => {
                            opened.send(Ok(())).ok();
                            commands.serve(store, clock, renewer).await;
                        }
                        Err(error) => drop(opened.send(Err(error))),
                    }
                });
            })
            .map_err(|_| no_thread())?;
        ready.await.map_err(|_| no_thread())??;
        Ok(renewals)
    }

    /// Creates the way to a worker, and its other end.
    pub(crate) fn channel(clock: &Arc<dyn Clock>) -> (Self, Commands) {
        let (sender, commands) = mpsc::unbounded_channel();
        let held = Arc::new(Held::new(Arc::clone(clock)));
        let worker = Commands {
            commands,
            held: Arc::clone(&held),
        };
        let renewals = Self {
            commands: sender,
            held,
        };
        (renewals, worker)
    }

    /// Renews a lease from now on; again, to have its new end looked at.
    pub(crate) fn hold(&self, state: &Arc<AttemptState>) {
        if self.held.add(state) {
            self.send(Command::Earlier);
        }
    }

    pub(crate) fn let_go(&self, state: &AttemptState) {
        self.held.remove(&state.holder.claim);
    }

    /// Gives a reservation back; `until` from now nobody needs it any more.
    pub(crate) fn give_back(&self, request: GiveBack, until: Duration, confirmed: bool) {
        let goodbye = Goodbye::GiveBack { request, confirmed };
        self.send(Command::Farewell(Farewell::new(goodbye, until)));
    }

    pub(crate) fn mark_unknown(
        &self,
        state: &Arc<AttemptState>,
        request: MarkUnknown,
        until: Duration,
    ) {
        let goodbye = Goodbye::Unknown(Arc::clone(state), request);
        self.send(Command::Farewell(Farewell::new(goodbye, until)));
    }

    /// Renews one lease now and says whether it is still held.
    pub(crate) async fn confirm(&self, state: &Arc<AttemptState>) -> Result<bool, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Confirm(Arc::clone(state), reply));
        Ok(answer.await.map_err(|_| Error::Store(no_thread()))??)
    }

    /// Marks everything still held unknown, and says how many there were.
    pub(crate) async fn shut_down(&self) -> usize {
        let (reply, answer) = oneshot::channel();
        self.send(Command::ShutDown(reply));
        answer.await.unwrap_or(0)
    }

    /// Renews everything held now, and returns the shortest lease of it.
    ///
    /// Blocks, which a thread and a runtime of their own make harmless.
    #[cfg(feature = "testing")]
    pub(crate) fn renew_now(&self) -> Option<Duration> {
        let (reply, answer) = std::sync::mpsc::channel();
        self.send(Command::RenewNow(reply));
        answer.recv().ok().flatten()
    }

    fn send(&self, command: Command) {
        // The thread lives as long as this sender does.
        self.commands.send(command).ok();
    }
}

fn no_thread() -> StoreError {
    StoreError::new(
        StoreErrorKind::Transient,
        "the thread that renews leases could not start or ended",
    )
}
