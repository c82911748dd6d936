//! What the cases are written with.

#![expect(clippy::panic, reason = "a case fails by panicking")]

use std::time::Duration;

use super::Open;
use crate::error::StoreError;
use crate::identity::{Fingerprint, RecordId};
use crate::record::{Claim, Element, Recorded, TombstoneReason, UnknownReason, VersionBytes};
use crate::store::{
    Capability, Complete, Ending, GiveBack, Holder, Lease, MarkUnknown, Release, Renewer, Reserve,
    Reserved, Store, Sweep, Takeover, Won, Written,
};
use crate::sync::{Arc, AtomicI64, Ordering};
use crate::testing::ManualClock;

pub(super) const SECOND: i64 = 1_000_000;
pub(super) const LEASE: i64 = 30 * SECOND;
pub(super) const GRACE: i64 = 5 * SECOND;
/// A lease that nobody renewed has lapsed after this, and not before.
pub(super) const LAPSE: i64 = LEASE + GRACE + 1;
pub(super) const TTL: i64 = 3_600 * SECOND;
pub(super) const YEARS: i64 = 10 * 365 * 86_400 * SECOND;
pub(super) const MAX_TAKEOVERS: i32 = 3;

/// An empty store, a clock, and short words for the long requests.
pub(super) struct Bench {
    harness: Arc<dyn Open>,
    place: String,
    clock: ManualClock,
    claims: AtomicI64,
    pub(super) store: Arc<dyn Store>,
}

/// A won reservation.
pub(super) struct Attempt {
    pub(super) holder: Holder,
    pub(super) won: Won,
}

/// Unwraps a store's answer. No case makes a store fail.
#[track_caller]
pub(super) fn done<T>(answer: Result<T, StoreError>) -> T {
    match answer {
        Ok(answer) => answer,
        Err(error) => panic!("expected an answer of the store, got: {error}"),
    }
}

pub(super) fn id(key: u8) -> RecordId {
    RecordId::from_bytes([key; 32])
}

pub(super) fn version(number: u8) -> VersionBytes {
    version_of(&[number])
}

pub(super) fn version_of(bytes: &[u8]) -> VersionBytes {
    match VersionBytes::new(bytes.to_vec()) {
        Some(version) => version,
        None => panic!("a version has at most 32 bytes"),
    }
}

/// An answer of the record of `key`.
pub(super) fn text(key: u8, text: &str) -> Recorded {
    Recorded::new(&id(key), "json", false, text.as_bytes().to_vec())
}

pub(super) fn in_progress(left_us: i64) -> Reserved {
    Reserved::InProgress { left_us }
}

/// The same, whenever it was told.
fn without_age(reserved: Reserved) -> Reserved {
    match reserved {
        Reserved::Completed {
            answer,
            finished_us,
            attempt,
            left_us,
        } => Reserved::Completed {
            answer,
            finished_us,
            attempt,
            left_us: left_us.map(|_| 0),
        },
        other => other,
    }
}

pub(super) fn unknown(reason: UnknownReason) -> Reserved {
    Reserved::Unknown {
        reason,
        exhausted: false,
        retry_us: None,
    }
}

pub(super) fn exhausted(reason: UnknownReason) -> Reserved {
    Reserved::Unknown {
        reason,
        exhausted: true,
        retry_us: None,
    }
}

pub(super) fn tombstone(reason: TombstoneReason) -> Reserved {
    Reserved::Tombstone { reason }
}

pub(super) fn with(request: Reserve, takeover: Takeover) -> Reserve {
    Reserve {
        takeover,
        ..request
    }
}

/// The same call with another payload, which differs in `amount`.
pub(super) fn other_payload(request: Reserve) -> Reserve {
    let mut elements = request.elements.clone();
    elements[0].digest = *b"another!";
    Reserve {
        fingerprint: Fingerprint::from_bytes([0xee; 32]),
        elements,
        ..request
    }
}

pub(super) fn mismatch() -> Reserved {
    Reserved::Mismatch {
        differs: vec!["amount".to_owned()],
    }
}

/// The same holder, had it drawn another claim.
pub(super) fn other_claim(holder: Holder) -> Holder {
    Holder {
        claim: Claim::from_bytes([0xff; 16]),
        ..holder
    }
}

/// The same holder, with a fence that differs by `by`.
pub(super) fn other_fence(holder: Holder, by: i64) -> Holder {
    Holder {
        fence: holder.fence + by,
        ..holder
    }
}

/// Everybody who must not write to the record of `holder`.
pub(super) fn strangers(holder: Holder) -> [(&'static str, Holder); 3] {
    [
        ("another claim", other_claim(holder)),
        ("an older fence", other_fence(holder, -1)),
        ("a newer fence", other_fence(holder, 1)),
    ]
}

impl Bench {
    pub(super) async fn open(harness: Arc<dyn Open>, place: String) -> Self {
        let clock = ManualClock::new();
        let store = done(harness.open(&place, clock.clone()).await);
        Self {
            harness,
            place,
            clock,
            claims: AtomicI64::new(1),
            store,
        }
    }

    /// Opens the same records once more, as another process would.
    pub(super) async fn another(&self) -> Arc<dyn Store> {
        done(self.harness.open(&self.place, self.clock.clone()).await)
    }

    pub(super) async fn renewer(&self) -> Box<dyn Renewer> {
        done(self.store.renewer().await)
    }

    pub(super) fn advance(&self, us: i64) {
        self.clock.advance(Duration::from_micros(us.unsigned_abs()));
    }

    pub(super) fn step_back(&self, us: i64) {
        self.clock.step(-us);
    }

    /// A call that refuses to take over, with a claim that was never used.
    pub(super) fn request(&self, key: u8) -> Reserve {
        let mut claim = [0; 16];
        claim[8..].copy_from_slice(&self.claims.fetch_add(1, Ordering::SeqCst).to_be_bytes());
        Reserve {
            id: id(key),
            operation: "conformance.case".to_owned(),
            label: None,
            scope: None,
            fingerprint: Fingerprint::from_bytes([0xab; 32]),
            elements: vec![
                Element {
                    label: "amount".to_owned(),
                    digest: *b"amount-1",
                },
                Element {
                    label: "currency".to_owned(),
                    digest: *b"currency",
                },
            ],
            claim: Claim::from_bytes(claim),
            lease_us: LEASE,
            grace_us: GRACE,
            takeover: Takeover::Refuse,
            max_takeovers: MAX_TAKEOVERS,
            version: None,
        }
    }

    pub(super) fn rerun(&self, key: u8) -> Reserve {
        with(self.request(key), Takeover::Rerun)
    }

    pub(super) fn recover(&self, key: u8) -> Reserve {
        with(self.request(key), Takeover::Recover)
    }

    /// A call that applies a version.
    pub(super) fn versioned(&self, key: u8, number: u8) -> Reserve {
        Reserve {
            version: Some(version(number)),
            ..self.request(key)
        }
    }

    /// Reserves. What the store had at hand before, if it has such a thing, must be
    /// what a call without a version is told.
    pub(super) async fn reserve(&self, request: &Reserve) -> Reserved {
        let at_hand = self.store.at_hand(&request.id, &request.fingerprint);
        let reserved = done(self.store.reserve(request).await);
        if let (Some(at_hand), None) = (at_hand, &request.version) {
            assert_eq!(
                without_age(at_hand),
                without_age(reserved.clone()),
                "what is at hand must be what the reservation is told"
            );
        }
        reserved
    }

    /// Asks what stands there, as a caller that refuses to take over. Where
    /// nothing does, it wins.
    pub(super) async fn look(&self, key: u8) -> Reserved {
        self.reserve(&self.request(key)).await
    }

    /// Reserves, which must win now.
    pub(super) async fn win(&self, request: &Reserve) -> Attempt {
        let reserved = self.reserve(request).await;
        let Reserved::Won(won) = &reserved else {
            panic!("expected the reservation to win, got {reserved:?}");
        };
        assert!(!won.resent, "a first request was taken for a repeated one");
        Attempt {
            holder: Holder {
                id: request.id,
                claim: request.claim,
                fence: won.fence,
            },
            won: won.clone(),
        }
    }

    /// Wins the key as a caller that refuses to take over.
    pub(super) async fn take(&self, key: u8) -> Attempt {
        self.win(&self.request(key)).await
    }

    pub(super) async fn complete(&self, request: &Complete) -> Written {
        done(self.store.complete(request).await)
    }

    /// Completes with an answer, kept for [`TTL`].
    pub(super) async fn answer(&self, holder: Holder, answer: &Recorded) -> Written {
        self.complete(&Complete {
            holder,
            ending: Ending::Answer(answer.clone()),
            ttl_us: Some(TTL),
        })
        .await
    }

    /// Completes without an answer to replay, kept for [`TTL`].
    pub(super) async fn bury(&self, holder: Holder, reason: TombstoneReason) -> Written {
        self.complete(&Complete {
            holder,
            ending: Ending::Tombstone(reason),
            ttl_us: Some(TTL),
        })
        .await
    }

    /// Wins a key and records an answer.
    pub(super) async fn answered(&self, key: u8, answer: &Recorded) -> Attempt {
        let attempt = self.take(key).await;
        assert_eq!(self.answer(attempt.holder, answer).await, Written::Done);
        attempt
    }

    pub(super) async fn release(&self, holder: Holder) -> Written {
        self.release_with(holder, false, Some(TTL)).await
    }

    pub(super) async fn release_with(
        &self,
        holder: Holder,
        probed: bool,
        ttl_us: Option<i64>,
    ) -> Written {
        let request = Release {
            holder,
            ttl_us,
            probed,
        };
        done(self.store.release(&request).await)
    }

    pub(super) async fn mark_unknown(&self, holder: Holder, reason: UnknownReason) -> Written {
        let request = MarkUnknown {
            holder,
            reason,
            undecided_retry_us: None,
        };
        done(self.store.mark_unknown(&request).await)
    }

    /// Ends a recovery that got no decision.
    pub(super) async fn undecided(&self, holder: Holder, retry_us: i64) -> Written {
        let request = MarkUnknown {
            holder,
            reason: UnknownReason::Undecided,
            undecided_retry_us: Some(retry_us),
        };
        done(self.store.mark_unknown(&request).await)
    }

    pub(super) async fn renew(&self, holder: Holder) -> bool {
        let lease = Lease {
            holder,
            lease_us: LEASE,
        };
        let held = self.renew_all(&[lease]).await;
        assert_eq!(held.len(), 1, "one reply for each lease");
        held[0]
    }

    pub(super) async fn renew_all(&self, leases: &[Lease]) -> Vec<bool> {
        done(self.renewer().await.renew(leases).await)
    }

    pub(super) async fn give_back(&self, holder: Holder) -> Written {
        let request = GiveBack {
            id: holder.id,
            claim: holder.claim,
            ttl_us: Some(TTL),
        };
        done(self.renewer().await.give_back(&request).await)
    }

    pub(super) async fn sweep(&self) -> u64 {
        self.sweep_with(1_000, 0).await
    }

    pub(super) async fn sweep_with(&self, limit: u32, grace_us: i64) -> u64 {
        done(self.store.sweep(&Sweep { limit, grace_us }).await)
    }

    /// Whether a sweep deletes what has expired and says how much.
    pub(super) fn counts_sweeps(&self) -> bool {
        !self.store.lacks().contains(&Capability::Sweep)
    }

    /// Sends every write that there is, which must all be told `expected` and
    /// leave the record as `stands`, as `key` looks it up.
    pub(super) async fn nothing_moves(
        &self,
        key: u8,
        holder: Holder,
        who: &str,
        stands: &Reserved,
    ) {
        let other = Recorded::new(&holder.id, "json", true, b"forged".to_vec());
        for step in [
            "complete",
            "bury",
            "release",
            "release probed",
            "unknown",
            "undecided",
            "renew",
            "renewer unknown",
        ] {
            let written = match step {
                "complete" => self.answer(holder, &other).await,
                "bury" => self.bury(holder, TombstoneReason::TooLarge).await,
                "release" => self.release(holder).await,
                "release probed" => self.release_with(holder, true, None).await,
                "unknown" => self.mark_unknown(holder, UnknownReason::ShutDown).await,
                "undecided" => self.undecided(holder, SECOND).await,
                "renew" if self.renew(holder).await => Written::Done,
                "renew" => Written::Superseded,
                _ => {
                    let request = MarkUnknown {
                        holder,
                        reason: UnknownReason::ShutDown,
                        undecided_retry_us: None,
                    };
                    done(self.renewer().await.mark_unknown(&request).await)
                }
            };
            assert_ne!(written, Written::Done, "{step} by {who} must write nothing");
            assert_eq!(
                &self.look(key).await,
                stands,
                "{step} by {who} must leave the record as it was"
            );
        }
    }
}
