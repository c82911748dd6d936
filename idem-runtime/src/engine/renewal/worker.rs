//! The renewal thread's loop: one store call at a time, renewals first.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use super::Command;
use super::farewell::{Farewell, Goodbye, Latch};
use super::held::{Held, shortest};
use crate::clock::{Clock, from_micros};
use crate::engine::attempt::{AttemptState, Phase};
use crate::error::{StoreError, StoreErrorKind};
use crate::panic::CatchPanic;
use crate::record::{Claim, UnknownReason};
use crate::store::{Lease, Renewer, Store};
use crate::sync::{Arc, mpsc, oneshot, sleep, timeout};
use crate::telemetry::{self, StoreStep};

/// The longest that one call to the store may take.
const LONGEST: Duration = Duration::from_secs(5);
/// The shortest: a store that flushes to disk needs as much.
const SHORTEST: Duration = Duration::from_millis(50);

type Confirm = (Arc<AttemptState>, oneshot::Sender<Result<bool, StoreError>>);

pub(super) struct Worker {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// None after an error, until it is opened again.
    renewer: Option<Box<dyn Renewer>>,
    held: Arc<Held>,
    /// Those of `held` that were warned about: longer than `max_run`.
    overdue: HashSet<Claim>,
    confirms: Vec<Confirm>,
    farewells: VecDeque<Farewell>,
    #[cfg(feature = "testing")]
    asked: Vec<std::sync::mpsc::Sender<Option<Duration>>>,
}

impl Worker {
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        renewer: Box<dyn Renewer>,
        held: Arc<Held>,
    ) -> Self {
        Self {
            store,
            clock,
            renewer: Some(renewer),
            held,
            overdue: HashSet::new(),
            confirms: Vec::new(),
            farewells: VecDeque::new(),
            #[cfg(feature = "testing")]
            asked: Vec::new(),
        }
    }

    pub(super) async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        let mut open = true;
        while open || !self.farewells.is_empty() {
            tokio::select! {
                biased;
                command = commands.recv(), if open => match command {
                    Some(command) => self.take(command),
                    None => open = false,
                },
                () = self.until_due() => {}
            }
            while let Ok(command) = commands.try_recv() {
                self.take(command);
            }
            // Each of these is one store call of bounded length, so a renewal
            // that is due never waits for more than one of them.
            if self.is_renewal_due() {
                self.renew_all().await;
                #[cfg(feature = "testing")]
                self.say_shortest();
            } else if !self.confirms.is_empty() {
                self.confirm_all().await;
            } else {
                self.say_goodbye().await;
            }
        }
    }

    fn now_us(&self) -> i64 {
        self.held.now_us()
    }

    fn is_renewal_due(&self) -> bool {
        #[cfg(feature = "testing")]
        if !self.asked.is_empty() {
            return true;
        }
        self.now_us() >= self.held.next_us()
    }

    /// Answers those who asked for the renewal that was just made.
    #[cfg(feature = "testing")]
    fn say_shortest(&mut self) {
        let now_us = self.now_us();
        let held = self.held.all();
        let shortest = shortest(held.iter().filter(|held| held.is_renewed_at(now_us)));
        for reply in self.asked.drain(..) {
            reply.send(shortest.map(from_micros)).ok();
        }
    }

    async fn until_due(&self) {
        if !self.confirms.is_empty() {
            return;
        }
        let farewells = self.farewells.iter().map(|farewell| farewell.next_us);
        let due = farewells.fold(self.held.next_us(), std::cmp::min);
        if due == i64::MAX {
            std::future::pending::<()>().await;
        }
        sleep(from_micros(due.saturating_sub(self.now_us()))).await;
    }

    /// Takes a command up, without a store call.
    fn take(&mut self, command: Command) {
        let now_us = self.now_us();
        match command {
            // It has only to look again.
            Command::Earlier => {}
            Command::Farewell(mut farewell) => {
                farewell.start(now_us);
                self.farewells.push_back(farewell);
            }
            Command::Confirm(state, reply) => self.confirms.push((state, reply)),
            #[cfg(feature = "testing")]
            Command::RenewNow(reply) => self.asked.push(reply),
            Command::ShutDown(reply) => {
                let held = self.held.drain();
                let latch = Latch::new(reply, held.len());
                for state in held {
                    let request = state.mark_unknown(UnknownReason::ShutDown);
                    let until = from_micros(state.prepared.lease_us());
                    let mut farewell =
                        Farewell::new(Goodbye::Unknown(state, request), until).with_latch(&latch);
                    farewell.start(now_us);
                    self.farewells.push_back(farewell);
                }
            }
        }
    }

    /// Warns once about each body whose lease is no longer renewed.
    fn warn_of_overdue(&mut self, now_us: i64) {
        self.overdue.retain(|claim| self.held.contains(claim));
        for state in self.held.all() {
            // One that has returned is renewed again until its end is told.
            let overdue = !state.is_renewed_at(now_us) && state.phase() != Phase::Returned;
            if overdue && self.overdue.insert(state.holder.claim) {
                telemetry::max_run_over(&state);
            }
        }
    }

    async fn renew_all(&mut self) {
        let now_us = self.now_us();
        let planned_us = self.held.next_us();
        self.warn_of_overdue(now_us);
        let due = self.held.take_due(now_us);
        if due.is_empty() {
            return;
        }
        // One that a test asked for was not planned.
        if now_us >= planned_us {
            telemetry::renewal_lag(from_micros(now_us - planned_us));
        }
        match self.renew(&due).await {
            Ok(held) => {
                for (state, _) in due.iter().zip(held).filter(|(_, held)| !held) {
                    telemetry::lease_lost(state);
                    self.held.remove(&state.holder.claim);
                }
            }
            Err(error) => {
                telemetry::renewal_failed(due.len(), &error);
                // A failed renewal is not a lost lease: try again soon.
                let wait_us = shortest(&due).unwrap_or(0) / 9;
                self.held.look_at(self.now_us().saturating_add(wait_us));
            }
        }
    }

    /// Answers everybody who waits for a confirmation, by one renewal.
    async fn confirm_all(&mut self) {
        let (states, replies): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.confirms).into_iter().unzip();
        let confirmed = self.renew(&states).await;
        for (at, reply) in replies.into_iter().enumerate() {
            let held = confirmed.as_ref().map(|held| held[at]);
            reply.send(held.map_err(Clone::clone)).ok();
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
        let limit = self.one_try(shortest(states));
        let sent_us = self.now_us();
        let held = self
            .call(StoreStep::Renew, limit, async |renewer| {
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

    /// Says the first goodbye that is due.
    async fn say_goodbye(&mut self) {
        let now_us = self.now_us();
        let due = self.farewells.iter().position(|f| f.next_us <= now_us);
        let Some(mut farewell) = due.and_then(|at| self.farewells.remove(at)) else {
            return;
        };
        let limit = self.one_try(None);
        let said = self
            .call(farewell.step(), limit, async |renewer| {
                farewell.say(renewer).await
            })
            .await;
        if farewell.again(&said, self.now_us()) {
            self.farewells.push_back(farewell);
        }
    }

    /// How long one call may take: a sixth of the shortest lease, so that there
    /// is time for other tries, between 50 ms and 5 s.
    fn one_try(&self, lease_us: Option<i64>) -> Duration {
        let held = self.held.shortest().into_iter();
        held.chain(lease_us).min().map_or(LONGEST, |lease| {
            from_micros(lease / 6).clamp(SHORTEST, LONGEST)
        })
    }

    /// Makes one call and measures it, opening the connection again if the last
    /// one failed.
    async fn call<T>(
        &mut self,
        step: StoreStep,
        limit: Duration,
        operation: impl AsyncFnOnce(&mut dyn Renewer) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let started = self.clock.monotonic();
        let answer = self.call_once(limit, operation).await;
        let took = self.clock.monotonic().saturating_sub(started);
        telemetry::store_call(step, took, &answer);
        answer
    }

    async fn call_once<T>(
        &mut self,
        limit: Duration,
        operation: impl AsyncFnOnce(&mut dyn Renewer) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let store = Arc::clone(&self.store);
        let mut renewer = self.renewer.take();
        let called = {
            let called = std::pin::pin!(async {
                let renewer = match &mut renewer {
                    Some(renewer) => renewer,
                    none => none.insert(store.renewer().await?),
                };
                operation(renewer.as_mut()).await
            });
            timeout(limit, CatchPanic(called)).await
        };
        // What was under way on a connection that failed is not known: it is
        // closed.
        let failed = |what| StoreError::new(StoreErrorKind::Transient, what).ambiguous();
        let done = match called {
            Ok(Ok(answer)) => answer?,
            Ok(Err(_)) => return Err(failed("the store's connection panicked")),
            Err(_) => return Err(failed("the store did not answer in time")),
        };
        self.renewer = renewer;
        Ok(done)
    }
}
