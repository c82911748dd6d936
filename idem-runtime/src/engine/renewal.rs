//! Leases are renewed by a thread of their own.
//!
//! It has a runtime and a store connection of its own: a body that blocks its
//! runtime, or takes every pooled connection, keeps its lease all the same.
//! The thread also says goodbye for attempts that were dropped, so that `Drop`
//! needs neither a runtime nor I/O. It ends when its engine and every attempt
//! are gone and the goodbyes are said.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::attempt::AttemptState;
use crate::backoff;
use crate::clock::{Clock, micros};
use crate::error::{Error, StoreError, StoreErrorKind};
use crate::record::{Claim, UnknownReason};
use crate::store::{GiveBack, Lease, MarkUnknown, Renewer, Store, Written};
use crate::sync::{Arc, mpsc, oneshot};
use crate::telemetry;

/// The way to the renewal thread. Sending needs no runtime.
#[derive(Debug, Clone)]
pub(crate) struct Renewals(mpsc::UnboundedSender<Command>);

enum Command {
    Hold(Arc<AttemptState>),
    LetGo(Claim),
    Farewell(Farewell),
    /// Renews one lease now and says whether it is still held.
    Confirm(Arc<AttemptState>, oneshot::Sender<Result<bool, StoreError>>),
    /// Marks everything still held unknown, and says how many there were.
    ShutDown(oneshot::Sender<usize>),
}

/// What is left to tell the store about an attempt that was dropped.
struct Farewell {
    what: Goodbye,
    /// When nobody needs it any more, since the lease has lapsed.
    until_us: i64,
    tries: u32,
    next_us: i64,
}

enum Goodbye {
    GiveBack {
        request: GiveBack,
        /// Whether the reservation was acknowledged; if not, it may still land.
        confirmed: bool,
    },
    Unknown(Arc<AttemptState>, MarkUnknown),
}

impl Renewals {
    /// Starts the thread and opens its connection.
    pub(crate) async fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let (sender, commands) = mpsc::unbounded_channel();
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
                            let mut worker = Worker {
                                store,
                                clock,
                                renewer: Some(renewer),
                                held: HashMap::new(),
                                farewells: VecDeque::new(),
                                next_renewal_us: i64::MAX,
                            };
                            worker.run(commands).await;
                        }
                        Err(error) => {
                            opened.send(Err(error)).ok();
                        }
                    }
                });
            })
            .map_err(|_| no_thread())?;
        ready.await.map_err(|_| no_thread())??;
        Ok(Self(sender))
    }

    pub(crate) fn hold(&self, state: &Arc<AttemptState>) {
        self.send(Command::Hold(Arc::clone(state)));
    }

    pub(crate) fn let_go(&self, state: &AttemptState) {
        self.send(Command::LetGo(state.holder.claim));
    }

    /// Gives a reservation back; `until` from now nobody needs it any more.
    pub(crate) fn give_back(&self, request: GiveBack, until: Duration, confirmed: bool) {
        self.farewell(Goodbye::GiveBack { request, confirmed }, until);
    }

    pub(crate) fn mark_unknown(
        &self,
        state: &Arc<AttemptState>,
        request: MarkUnknown,
        until: Duration,
    ) {
        self.farewell(Goodbye::Unknown(Arc::clone(state), request), until);
    }

    fn farewell(&self, what: Goodbye, until: Duration) {
        self.send(Command::Farewell(Farewell {
            what,
            until_us: micros(until),
            tries: 0,
            next_us: 0,
        }));
    }

    /// Renews one lease now and says whether it is still held.
    pub(crate) async fn confirm(&self, state: &Arc<AttemptState>) -> Result<bool, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Confirm(Arc::clone(state), reply));
        Ok(answer.await.map_err(|_| Error::Store(no_thread()))??)
    }

    pub(crate) async fn shut_down(&self) -> usize {
        let (reply, answer) = oneshot::channel();
        self.send(Command::ShutDown(reply));
        answer.await.unwrap_or(0)
    }

    fn send(&self, command: Command) {
        // The thread lives as long as this sender does.
        self.0.send(command).ok();
    }
}

fn no_thread() -> StoreError {
    StoreError::new(
        StoreErrorKind::Transient,
        "the thread that renews leases could not start or ended",
    )
}

struct Worker {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// None after an error, until it is opened again.
    renewer: Option<Box<dyn Renewer>>,
    held: HashMap<Claim, Arc<AttemptState>>,
    farewells: VecDeque<Farewell>,
    next_renewal_us: i64,
}

impl Worker {
    async fn run(&mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        let mut open = true;
        while open || !self.farewells.is_empty() {
            tokio::select! {
                biased;
                () = self.until_due() => {}
                command = commands.recv(), if open => match command {
                    Some(command) => self.take(command).await,
                    None => open = false,
                },
            }
            while let Ok(command) = commands.try_recv() {
                self.take(command).await;
            }
            if self.now_us() >= self.next_renewal_us {
                self.renew_all().await;
            }
            self.say_goodbyes().await;
        }
    }

    /// Deadlines are those of this process: never a store's time.
    fn now_us(&self) -> i64 {
        micros(self.clock.monotonic())
    }

    async fn until_due(&self) {
        let farewell = self.farewells.iter().map(|f| f.next_us).min();
        let due = farewell
            .unwrap_or(i64::MAX)
            .clamp(i64::MIN, self.next_renewal_us);
        if due == i64::MAX {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(crate::clock::from_micros(due.saturating_sub(self.now_us()))).await;
    }

    async fn take(&mut self, command: Command) {
        match command {
            Command::Hold(state) => {
                let due = self.now_us().saturating_add(state.prepared.lease_us() / 3);
                if due < self.next_renewal_us {
                    self.next_renewal_us = due;
                }
                self.held.insert(state.holder.claim, state);
            }
            Command::LetGo(claim) => {
                self.held.remove(&claim);
                if self.held.is_empty() {
                    self.next_renewal_us = i64::MAX;
                }
            }
            Command::Farewell(mut farewell) => {
                farewell.until_us = farewell.until_us.saturating_add(self.now_us());
                self.farewells.push_back(farewell);
            }
            Command::Confirm(state, reply) => {
                let confirmed = self.renew(std::slice::from_ref(&state)).await;
                reply.send(confirmed.map(|held| held[0])).ok();
            }
            Command::ShutDown(reply) => {
                let held: Vec<_> = self.held.drain().map(|(_, state)| state).collect();
                self.next_renewal_us = i64::MAX;
                for state in &held {
                    let request = state.mark_unknown(UnknownReason::ShutDown);
                    let goodbye = Goodbye::Unknown(Arc::clone(state), request);
                    self.tell(&goodbye).await.ok();
                }
                reply.send(held.len()).ok();
            }
        }
    }

    async fn renew_all(&mut self) {
        let now_us = self.now_us();
        let due: Vec<_> = self
            .held
            .values()
            .filter(|state| state.is_renewed_at(now_us))
            .cloned()
            .collect();
        let shortest = due.iter().map(|state| state.prepared.lease_us()).min();
        self.next_renewal_us = shortest.map_or(i64::MAX, |lease| now_us.saturating_add(lease / 3));
        if due.is_empty() {
            return;
        }
        match self.renew(&due).await {
            Ok(held) => {
                for (state, held) in due.iter().zip(held) {
                    if !held {
                        telemetry::lease_lost(state);
                        self.held.remove(&state.holder.claim);
                    }
                }
            }
            Err(error) => {
                telemetry::renewal_failed(due.len(), &error);
                // A failed renewal is not a lost lease: try again soon.
                let soon = self.now_us().saturating_add(shortest.unwrap_or(0) / 9);
                self.next_renewal_us = std::cmp::min(self.next_renewal_us, soon);
            }
        }
    }

    /// Renews leases in one batch and says of each whether it is held.
    async fn renew(&mut self, states: &[Arc<AttemptState>]) -> Result<Vec<bool>, StoreError> {
        let leases: Vec<_> = states
            .iter()
            .map(|state| Lease {
                holder: state.holder,
                lease_us: state.prepared.lease_us(),
            })
            .collect();
        let shortest = leases.iter().map(|lease| lease.lease_us).min().unwrap_or(0);
        let sent_us = self.now_us();
        let held = self
            .call(one_try(shortest), async |renewer| {
                renewer.renew(&leases).await
            })
            .await?;
        if held.len() != states.len() {
            return Err(StoreError::new(
                StoreErrorKind::Permanent,
                "the store answered for another number of leases than it was asked for",
            ));
        }
        for (state, held) in states.iter().zip(&held) {
            if *held {
                state.renewed(sent_us);
            } else {
                state.lose();
            }
        }
        Ok(held)
    }

    async fn say_goodbyes(&mut self) {
        for _ in 0..self.farewells.len() {
            let Some(mut farewell) = self.farewells.pop_front() else {
                return;
            };
            let now_us = self.now_us();
            if farewell.next_us > now_us {
                self.farewells.push_back(farewell);
                continue;
            }
            let answered = match self.tell(&farewell.what).await {
                // Not there yet: a reservation without an answer may still land.
                Ok(Written::Gone) => !matches!(
                    farewell.what,
                    Goodbye::GiveBack {
                        confirmed: false,
                        ..
                    }
                ),
                Ok(_) => true,
                Err(_) => false,
            };
            if !answered && self.now_us() < farewell.until_us {
                farewell.tries += 1;
                farewell.next_us = now_us.saturating_add(micros(backoff::jittered(farewell.tries)));
                self.farewells.push_back(farewell);
            }
        }
    }

    async fn tell(&mut self, what: &Goodbye) -> Result<Written, StoreError> {
        self.call(Duration::from_secs(5), async |renewer| match what {
            Goodbye::GiveBack { request, .. } => renewer.give_back(request).await,
            Goodbye::Unknown(state, request) => {
                let written = renewer.mark_unknown(request).await?;
                if written == Written::Done {
                    telemetry::unknown(state, request.reason);
                }
                Ok(written)
            }
        })
        .await
    }

    /// Makes one call, opening the connection again if the last one failed.
    async fn call<T>(
        &mut self,
        limit: Duration,
        operation: impl AsyncFnOnce(&mut dyn Renewer) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let store = Arc::clone(&self.store);
        let mut renewer = self.renewer.take();
        let called = tokio::time::timeout(limit, async {
            let renewer = match &mut renewer {
                Some(renewer) => renewer,
                none => none.insert(store.renewer().await?),
            };
            operation(renewer.as_mut()).await
        })
        .await;
        match called {
            Ok(Ok(done)) => {
                self.renewer = renewer;
                Ok(done)
            }
            // What was under way on this connection is not known: close it.
            Ok(Err(error)) => Err(error),
            Err(_) => Err(StoreError::new(
                StoreErrorKind::Transient,
                "the store did not answer in time",
            )
            .ambiguous()),
        }
    }
}

/// How long one renewal may take: a third of the lease, so that there is time
/// for another try.
fn one_try(lease_us: i64) -> Duration {
    crate::clock::from_micros(lease_us / 3)
        .clamp(Duration::from_millis(250), Duration::from_secs(5))
}
