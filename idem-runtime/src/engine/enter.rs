//! Steps one and four: take the reservation, or learn why not.
//!
//! This runs in a task of its own, which the caller's cancellation does not
//! reach: a reservation that was asked for is always answered, and given back
//! if nobody is there any more.

use std::time::Duration;

use tokio::time::Instant;

use super::attempt::Attempt;
use super::call::Prepared;
use super::waiting::Waiting;
use super::{Inner, MAX_RETRY_AFTER};
use crate::backoff;
use crate::clock::{from_micros, micros};
use crate::error::{Error, StoreError, StoreErrorKind};
use crate::fault;
use crate::outcome::How;
use crate::policy::{OnInProgress, OnStale};
use crate::record::{Claim, TombstoneReason};
use crate::singleflight::{FlightKey, Follow, Landed, Lead, Part};
use crate::store::{GiveBack, Holder, Reserve, Reserved, Takeover};
use crate::sync::{Arc, AtomicU8, Notify, Ordering};
use crate::telemetry::{self, StoreStep};

/// How a call comes in.
#[derive(Debug)]
pub(crate) enum Entry {
    /// It may run the body.
    Won(Attempt),
    /// There is an answer, replayed, coalesced or of a newer version.
    Recorded { landed: Arc<Landed>, how: How },
    /// It gets no answer.
    Refused(Error),
    /// Its caller is gone.
    Left,
}

/// Whether the caller is still there, as seen from the task that works for it.
#[derive(Debug)]
pub(crate) struct Presence {
    state: AtomicU8,
    gone: Notify,
}

const HERE: u8 = 0;
const BEGUN: u8 = 1;
const GONE: u8 = 2;

impl Presence {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU8::new(HERE),
            gone: Notify::new(),
        })
    }

    /// Begins the body, unless the caller has gone: from here on it is too
    /// late to leave.
    pub(crate) fn begin(&self) -> bool {
        self.state
            .compare_exchange(HERE, BEGUN, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    /// Leaves, unless the body has begun. Needs no runtime.
    fn leave(&self) {
        let left = self
            .state
            .compare_exchange(HERE, GONE, Ordering::SeqCst, Ordering::SeqCst);
        if left.is_ok() {
            self.gone.notify_one();
        }
    }

    async fn gone(&self) {
        // `leave` stores one permit: nothing is lost before this listens.
        while self.state.load(Ordering::SeqCst) != GONE {
            self.gone.notified().await;
        }
    }
}

/// The caller's side of a [`Presence`]: leaves when dropped.
#[derive(Debug)]
pub(crate) struct Caller(pub(crate) Arc<Presence>);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Takes the key or learns why not, waiting as the call's policy says.
pub(crate) async fn enter(
    engine: &Arc<Inner>,
    prepared: &Arc<Prepared>,
    presence: &Presence,
) -> Entry {
    let mut wait = Wait::new(engine, prepared, presence);
    loop {
        let lead = match wait.join().await {
            Joined::Lead(lead) => lead,
            Joined::Again => continue,
            Joined::Ended(entry) => return entry,
        };
        if let Some(entry) = ask_until_answered(engine, prepared, &mut wait, lead).await {
            return entry;
        }
    }
}

impl Inner {
    /// Finds a finished answer that the store has at hand. Whatever is not as it
    /// should be is left to the reservation, which says so.
    pub(crate) fn find_at_hand(&self, key: &FlightKey) -> Option<Arc<Landed>> {
        if key.version.is_some() {
            return None;
        }
        let asked = self.asking(key);
        let started = self.clock.monotonic();
        let found = self.store.at_hand(&key.id, &key.fingerprint)?;
        telemetry::store_call(
            StoreStep::Reserve,
            self.clock.monotonic().saturating_sub(started),
            &Ok(()),
        );
        let Reserved::Completed {
            answer,
            finished_us,
            attempt,
            left_us,
        } = found
        else {
            return None;
        };
        let landed = answer.is_intact(&key.id).then(|| {
            Arc::new(Landed {
                answer,
                finished_us,
                attempt,
            })
        })?;
        self.keep(asked, key, &landed, left_us);
        Some(landed)
    }
}

/// Asks the store, again and again while another attempt runs. None means to
/// join the flight again.
async fn ask_until_answered(
    engine: &Arc<Inner>,
    prepared: &Arc<Prepared>,
    wait: &mut Wait<'_>,
    mut lead: Option<Lead>,
) -> Option<Entry> {
    loop {
        let asked = engine.asking(&prepared.flight);
        let answer = ask(engine, prepared, prepared.reserve.takeover).await;
        let (reserved, sent_us, claim) = match answer {
            Ok(answer) => answer,
            Err(error) => return Some(Entry::Refused(error.into())),
        };
        let left_us = match reserved {
            Reserved::Won(won) => {
                telemetry::won(prepared.operation.clone(), prepared.id(), &won);
                engine.outdated(&prepared.id());
                let holder = Holder {
                    id: prepared.id(),
                    claim,
                    fence: won.fence,
                };
                let mut attempt = Attempt::start(engine, prepared, holder, won, sent_us, lead);
                fault::point("after-reserve").await;
                if attempt.is_current().await {
                    return Some(Entry::Won(attempt));
                }
                // The reply took longer than the lease: ask again.
                lead = attempt.lead.take();
                micros(engine.limits.grace)
            }
            Reserved::InProgress { left_us } => left_us,
            other => {
                let left_us = match &other {
                    Reserved::Completed { left_us, .. } => *left_us,
                    _ => None,
                };
                let entry = answered(prepared, other, lead);
                if let Entry::Recorded { landed, .. } = &entry {
                    engine.keep(asked, &prepared.flight, landed, left_us);
                }
                return Some(entry);
            }
        };
        let retry_after = retry_after(left_us);
        if !wait.pause(retry_after).await {
            return Some(wait.give_up(retry_after));
        }
        // Without a lead, look first whether one has come up meanwhile.
        lead = Some(lead?);
    }
}

/// What stands in the store, as an entry.
pub(super) fn answered(prepared: &Prepared, reserved: Reserved, lead: Option<Lead>) -> Entry {
    match reserved {
        Reserved::Completed {
            answer,
            finished_us,
            attempt,
            left_us: _,
        } => {
            if !answer.is_intact(&prepared.id()) {
                telemetry::damaged(&prepared.operation);
                return Entry::Refused(Error::NotReplayable {
                    reason: TombstoneReason::Damaged,
                });
            }
            let landed = Arc::new(Landed {
                answer,
                finished_us,
                attempt,
            });
            if let Some(lead) = lead {
                lead.land(&landed);
            }
            Entry::Recorded {
                landed,
                how: How::Replayed,
            }
        }
        Reserved::Tombstone { reason } => Entry::Refused(Error::NotReplayable { reason }),
        Reserved::Unknown {
            reason,
            exhausted,
            retry_us,
        } => Entry::Refused(Error::UnknownOutcome {
            record: prepared.id(),
            exhausted,
            reason,
            retry_after: retry_us.map(from_micros),
        }),
        Reserved::Mismatch { differs } => Entry::Refused(Error::PayloadMismatch { differs }),
        Reserved::Stale {
            applied, newest, ..
        } => match prepared.on_stale {
            OnStale::Error => Entry::Refused(Error::Stale { applied }),
            OnStale::Replay => newest_instead(prepared, *newest),
        },
        Reserved::Won(_) | Reserved::InProgress { .. } => {
            Entry::Refused(Error::Store(StoreError::new(
                StoreErrorKind::Permanent,
                "the store gave an answer that was not asked for",
            )))
        }
    }
}

/// The answer of a newer version. Followers do not get it: another call of this
/// version may have chosen the error.
fn newest_instead(prepared: &Prepared, newest: Reserved) -> Entry {
    match answered(prepared, newest, None) {
        Entry::Recorded { landed, .. } => Entry::Recorded {
            landed,
            how: How::Stale,
        },
        other => other,
    }
}

/// What is left of a lease and the grace, at most five seconds: the holder
/// renews, so asking earlier is worth it.
pub(super) fn retry_after(left_us: i64) -> Duration {
    from_micros(left_us).clamp(Duration::from_millis(10), MAX_RETRY_AFTER)
}

/// Asks the store once, sending the same claim again while it does not answer.
/// A reservation that stays unconfirmed is given back.
pub(crate) async fn ask(
    engine: &Inner,
    prepared: &Prepared,
    takeover: Takeover,
) -> Result<(Reserved, i64, Claim), StoreError> {
    let claim = Claim::random()?;
    let request = Reserve {
        claim,
        takeover,
        ..prepared.reserve.clone()
    };
    let deadline = Instant::now() + engine.limits.reserve_timeout;
    let mut unconfirmed = false;
    for number in 1.. {
        fault::point("before-reserve").await;
        // The store counts a lease from the last time that it was asked for.
        let sent_us = micros(engine.clock.monotonic());
        let limit = engine.limits.store_timeout.clamp(
            Duration::ZERO,
            deadline.saturating_duration_since(Instant::now()),
        );
        let answer = engine
            .store_call(StoreStep::Reserve, limit, engine.store.reserve(&request))
            .await;
        let error = match answer {
            Ok(reserved) => {
                if unconfirmed && !matches!(reserved, Reserved::Won(_)) {
                    // An earlier try of this claim may land yet.
                    give_back(engine, prepared, claim);
                }
                return Ok((reserved, sent_us, claim));
            }
            Err(error) => error,
        };
        unconfirmed |= error.is_ambiguous();
        let pause = backoff::jittered(number);
        if error.kind() != StoreErrorKind::Transient || Instant::now() + pause >= deadline {
            if unconfirmed {
                give_back(engine, prepared, claim);
            }
            return Err(error);
        }
        tokio::time::sleep(pause).await;
    }
    Err(StoreError::new(
        StoreErrorKind::Transient,
        "the store did not answer",
    ))
}

/// Gives back a reservation of which is not known whether it was made.
fn give_back(engine: &Inner, prepared: &Prepared, claim: Claim) {
    let request = GiveBack {
        id: prepared.id(),
        claim,
        ttl_us: prepared.ttl_us,
    };
    let until = from_micros(prepared.lease_us()) + engine.limits.grace;
    engine.renewals.give_back(request, until, false);
}

/// Reads the recorded answer for a holder that was superseded, without ever
/// taking the key.
pub(crate) async fn read_recorded(
    engine: &Arc<Inner>,
    prepared: &Arc<Prepared>,
) -> Option<(Arc<Landed>, How)> {
    let presence = Presence::new();
    let mut wait = Wait::new(engine, prepared, &presence);
    loop {
        let (reserved, sent_us, claim) = ask(engine, prepared, Takeover::Refuse).await.ok()?;
        match reserved {
            Reserved::InProgress { left_us } => {
                if !wait.pause(retry_after(left_us)).await {
                    return None;
                }
            }
            Reserved::Won(won) => {
                // Released meanwhile: not ours to run any more.
                let holder = Holder {
                    id: prepared.id(),
                    claim,
                    fence: won.fence,
                };
                telemetry::won(prepared.operation.clone(), prepared.id(), &won);
                drop(Attempt::start(engine, prepared, holder, won, sent_us, None));
                return None;
            }
            other => {
                return match answered(prepared, other, None) {
                    Entry::Recorded { landed, how } => Some((landed, how)),
                    _ => None,
                };
            }
        }
    }
}

enum Joined {
    /// Ask the store, for the followers if there is a lead.
    Lead(Option<Lead>),
    Again,
    Ended(Entry),
}

/// One call's waiting: a total bound, and pauses that grow.
struct Wait<'a> {
    engine: &'a Arc<Inner>,
    prepared: &'a Prepared,
    presence: &'a Presence,
    /// None rejects at once.
    deadline: Option<Instant>,
    pauses: u32,
    waiting: Option<Waiting>,
}

impl<'a> Wait<'a> {
    fn new(engine: &'a Arc<Inner>, prepared: &'a Prepared, presence: &'a Presence) -> Self {
        let deadline = match prepared.on_in_progress {
            OnInProgress::Wait(bound) => {
                let now = Instant::now();
                // A bound beyond the clock's range is no bound worth checking.
                Some(now.checked_add(bound).unwrap_or(now + FAR))
            }
            OnInProgress::Reject => None,
        };
        Self {
            engine,
            prepared,
            presence,
            deadline,
            pauses: 0,
            waiting: None,
        }
    }

    /// Becomes the lead of a flight, or waits for it as a follower.
    async fn join(&mut self) -> Joined {
        // `reject` waits for nobody, so it never joins.
        let Some(deadline) = self.deadline else {
            return Joined::Lead(None);
        };
        let mut follow = match self.engine.flights.join(&self.prepared.flight) {
            Part::Lead(lead) => return Joined::Lead(Some(lead)),
            Part::Follow(follow) => follow,
        };
        if !self.admit() {
            return Joined::Ended(self.give_up(MAX_RETRY_AFTER));
        }
        self.follow(&mut follow, deadline).await
    }

    async fn follow(&mut self, follow: &mut Follow, deadline: Instant) -> Joined {
        // Never on local state alone: a lead whose future is not polled keeps
        // its flight, so after a lease the store is asked.
        let lease = from_micros(self.prepared.lease_us());
        let recheck = Instant::now() + lease;
        tokio::select! {
            landed = follow.landed() => match landed {
                Some(landed) => Joined::Ended(Entry::Recorded { landed, how: How::Coalesced }),
                None => {
                    self.spread_out().await;
                    Joined::Again
                }
            },
            () = tokio::time::sleep_until(std::cmp::min(recheck, deadline)) => {
                if Instant::now() >= deadline {
                    Joined::Ended(self.give_up(std::cmp::min(lease, MAX_RETRY_AFTER)))
                } else {
                    Joined::Lead(None)
                }
            }
            () = self.presence.gone() => Joined::Ended(Entry::Left),
        }
    }

    /// A flight ended without an answer: one follower leads the next one, and
    /// if that goes on, they come back later and later.
    async fn spread_out(&mut self) {
        self.pauses += 1;
        if self.pauses > 1 {
            tokio::time::sleep(backoff::jittered(self.pauses)).await;
        }
    }

    /// Waits before the next question; false when the wait is over.
    async fn pause(&mut self, retry_after: Duration) -> bool {
        let Some(deadline) = self.deadline else {
            return false;
        };
        if Instant::now() >= deadline || !self.admit() {
            return false;
        }
        self.pauses += 1;
        let pause = std::cmp::min(backoff::jittered(self.pauses), retry_after);
        let until = std::cmp::min(Instant::now() + pause, deadline);
        tokio::select! {
            () = tokio::time::sleep_until(until) => true,
            () = self.presence.gone() => false,
        }
    }

    /// Counts this call as a waiter, unless there are too many.
    fn admit(&mut self) -> bool {
        if self.waiting.is_none() {
            self.waiting = Waiting::admit(self.engine, self.prepared.operation.clone());
        }
        self.waiting.is_some()
    }

    fn give_up(&self, retry_after: Duration) -> Entry {
        if self.presence.state.load(Ordering::SeqCst) == GONE {
            return Entry::Left;
        }
        Entry::Refused(Error::InProgress { retry_after })
    }
}

/// Longer than any wait.
const FAR: Duration = Duration::from_secs(86_400 * 365);
