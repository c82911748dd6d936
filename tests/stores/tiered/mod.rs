//! A front before a store: what it answers, what it must not, and that nothing
//! a front does causes a second run.

mod contract;
mod engines;
mod fakes;
mod lying;
mod operators;
mod outage;

use std::time::Duration;

use idem::StoreError;
use idem::UnknownReason;
use idem::identity::{Fingerprint, RecordId};
use idem::record::{Claim, Recorded, VersionBytes};
use idem::store::tiered::{Front as _, Kind, MemoryFront};
use idem::store::{
    Complete, Ending, Holder, MarkUnknown, MemoryStore, Meta, Release, Reserve, Reserved,
    Store as _, Takeover, TieredStore, Written,
};
use idem::testing::ManualClock;

use self::fakes::{Back, Fake};

const SECOND: i64 = 1_000_000;
const TTL: i64 = 600 * SECOND;
const HINT: Duration = Duration::from_secs(1);

fn meta(number: u8) -> Meta {
    Meta {
        format: "idem/1".to_owned(),
        instance: [number; 16],
        secret_check: [0; 32],
    }
}

fn request(key: u8, claim: u8) -> Reserve {
    Reserve {
        id: RecordId::from_bytes([key; 32]),
        operation: "shop.charge".to_owned(),
        label: None,
        scope: None,
        fingerprint: Fingerprint::from_bytes([1; 32]),
        elements: Vec::new(),
        claim: Claim::from_bytes([claim; 16]),
        lease_us: 30 * SECOND,
        grace_us: 5 * SECOND,
        takeover: Takeover::Refuse,
        max_takeovers: 5,
        version: None,
    }
}

fn answer(key: u8) -> Recorded {
    Recorded::new(&RecordId::from_bytes([key; 32]), "json", false, vec![key])
}

fn in_progress(left_us: i64) -> Reserved {
    Reserved::InProgress { left_us }
}

/// A tiered store on fakes, and a clock that all of them share.
struct Tiers {
    clock: ManualClock,
    front: Fake,
    back: Back,
    store: TieredStore,
}

impl Tiers {
    async fn new() -> Self {
        Self::with(HINT).await
    }

    async fn with(hint: Duration) -> Self {
        let clock = ManualClock::new();
        let front = Fake::new(&clock);
        let back = Back::new(&clock);
        let store = TieredStore::options(front.clone(), back.clone())
            .hint(hint)
            .clock(clock.clone())
            .build();
        store.pin(&meta(1)).await.unwrap();
        Self {
            clock,
            front,
            back,
            store,
        }
    }

    /// The same front and store, as another process has them.
    async fn another(&self) -> TieredStore {
        let options = TieredStore::options(self.front.clone(), self.back.clone());
        let store = options.hint(HINT).clock(self.clock.clone()).build();
        store.pin(&meta(2)).await.unwrap();
        store
    }

    async fn reserve(&self, request: &Reserve) -> Reserved {
        self.store.reserve(request).await.unwrap()
    }

    async fn win(&self, request: &Reserve) -> Holder {
        match self.reserve(request).await {
            Reserved::Won(won) => Holder {
                id: request.id,
                claim: request.claim,
                fence: won.fence,
            },
            other => panic!("expected to win, got {other:?}"),
        }
    }

    async fn complete(&self, holder: Holder, ttl_us: Option<i64>) -> Result<Written, StoreError> {
        let request = Complete {
            holder,
            ending: Ending::Answer(answer(holder.id.as_bytes()[0])),
            ttl_us,
        };
        self.store.complete(&request).await
    }

    /// Records an answer, and lets the front learn it.
    async fn filled(&self, key: u8, ttl_us: Option<i64>) -> Reserved {
        let holder = self.win(&request(key, 1)).await;
        let written = self.complete(holder, ttl_us).await;
        assert_eq!(written, Ok(Written::Done));
        let reply = self.reserve(&request(key, 2)).await;
        assert!(matches!(&reply, Reserved::Completed { answer: a, .. } if *a == answer(key)));
        reply
    }

    fn advance(&self, us: i64) {
        self.clock.step(us);
    }
}

#[tokio::test]
async fn a_thousand_replays_do_not_touch_the_store_behind() {
    let t = Tiers::new().await;
    let first = t.filled(1, Some(TTL)).await;
    let before = t.back.reserves();
    let other = t.another().await;
    for number in 0..1_000_usize {
        let request = request(1, 3 + u8::try_from(number % 200).unwrap());
        let store = if number % 2 == 0 { &t.store } else { &other };
        assert_eq!(store.reserve(&request).await.unwrap(), first);
    }
    assert_eq!(t.back.reserves(), before);
}

#[tokio::test]
async fn a_replay_from_the_front_counts_its_ttl_down_and_ends_with_it() {
    let t = Tiers::new().await;
    t.filled(1, Some(TTL)).await;
    let asked = t.back.reserves();
    t.advance(TTL);
    let reply = t.reserve(&request(1, 3)).await;
    assert!(
        matches!(
            reply,
            Reserved::Completed {
                left_us: Some(0),
                ..
            }
        ),
        "{reply:?}"
    );
    t.advance(1);
    t.win(&request(1, 4)).await;
    assert_eq!(
        t.back.reserves() - asked,
        2,
        "what is about to end is not kept"
    );
}

#[tokio::test]
async fn the_time_a_reply_took_is_taken_off_its_ttl() {
    let t = Tiers::new().await;
    let holder = t.win(&request(1, 1)).await;
    t.complete(holder, Some(TTL)).await.unwrap();
    t.back.takes(7 * SECOND);
    let late = t.reserve(&request(1, 2)).await;
    assert!(matches!(
        late,
        Reserved::Completed {
            left_us: Some(TTL),
            ..
        }
    ));
    t.back.takes(0);
    let reply = t.reserve(&request(1, 3)).await;
    let left = Some(TTL - 7 * SECOND);
    assert!(
        matches!(reply, Reserved::Completed { left_us, .. } if left_us == left),
        "{reply:?}"
    );
}

#[tokio::test]
async fn what_is_kept_for_ever_is_asked_for_once_an_hour() {
    let t = Tiers::new().await;
    let first = t.filled(1, None).await;
    assert!(matches!(first, Reserved::Completed { left_us: None, .. }));
    let asked = t.back.reserves();
    t.advance(3_600 * SECOND - 1);
    assert_eq!(t.reserve(&request(1, 3)).await, first);
    assert_eq!(t.back.reserves(), asked);
    t.advance(1);
    assert_eq!(t.reserve(&request(1, 4)).await, first);
    assert_eq!(t.back.reserves(), asked + 1);
}

#[tokio::test]
async fn another_payload_is_told_so_by_the_store_behind() {
    let t = Tiers::new().await;
    let other = |claim| Reserve {
        fingerprint: Fingerprint::from_bytes([2; 32]),
        ..request(1, claim)
    };
    let holder = t.win(&request(1, 1)).await;
    assert_eq!(t.reserve(&request(1, 2)).await, in_progress(35 * SECOND));
    let reply = t.reserve(&other(3)).await;
    assert!(matches!(reply, Reserved::Mismatch { .. }), "{reply:?}");
    t.complete(holder, Some(TTL)).await.unwrap();
    t.reserve(&request(1, 4)).await;
    let reply = t.reserve(&other(5)).await;
    assert!(matches!(reply, Reserved::Mismatch { .. }), "{reply:?}");
}

#[tokio::test]
async fn who_waits_asks_the_store_behind_once_in_the_time_of_a_hint() {
    let t = Tiers::new().await;
    t.win(&request(1, 1)).await;
    let other = t.another().await;
    let asked = t.back.reserves();
    for step in 0..100_i64 {
        // Two processes, ten times a second each.
        let left = in_progress(35 * SECOND - step * SECOND / 10);
        let claim = 2 + u8::try_from(step).unwrap();
        assert_eq!(t.reserve(&request(1, claim)).await, left);
        let reply = other.reserve(&request(1, 100 + claim)).await;
        assert_eq!(reply, Ok(left));
        t.advance(SECOND / 10);
    }
    assert!(
        t.back.reserves() - asked <= 10,
        "{}",
        t.back.reserves() - asked
    );
}

#[tokio::test]
async fn an_outcome_is_seen_at_once_and_if_the_front_missed_it_a_hint_later() {
    for end in ["complete", "release", "unknown"] {
        for missed in [false, true] {
            let t = Tiers::new().await;
            let holder = t.win(&request(1, 1)).await;
            let waits = t.reserve(&request(1, 2)).await;
            assert_eq!(waits, in_progress(35 * SECOND));
            if missed {
                t.front.fails();
            }
            let written = match end {
                "complete" => t.complete(holder, Some(TTL)).await,
                "release" => {
                    let request = Release {
                        holder,
                        ttl_us: Some(TTL),
                        probed: false,
                    };
                    t.store.release(&request).await
                }
                _ => {
                    let request = MarkUnknown {
                        holder,
                        reason: UnknownReason::Panicked,
                        undecided_retry_us: None,
                    };
                    t.store.mark_unknown(&request).await
                }
            };
            assert_eq!(written, Ok(Written::Done));
            t.front.is_up();
            // Another process, which knows of no failure.
            let other = t.another().await;
            if missed {
                let reply = other.reserve(&request(1, 3)).await;
                assert_eq!(reply, Ok(waits.clone()), "{end}");
                t.advance(SECOND + 1);
            }
            let reply = other.reserve(&request(1, 4)).await.unwrap();
            let seen = match end {
                "complete" => matches!(reply, Reserved::Completed { .. }),
                "release" => matches!(reply, Reserved::Won(_)),
                _ => matches!(reply, Reserved::Unknown { .. }),
            };
            assert!(seen, "{end}, missed: {missed}: {reply:?}");
        }
    }
}

#[tokio::test]
async fn a_reservation_sent_again_is_told_yours_whatever_a_hint_says() {
    let t = Tiers::new().await;
    let first = request(1, 1);
    // It lands, and its reply is lost.
    t.back.loses_replies(true);
    assert!(t.store.reserve(&first).await.is_err());
    t.back.loses_replies(false);
    assert_eq!(t.reserve(&request(1, 2)).await, in_progress(35 * SECOND));
    let again = t.reserve(&first).await;
    assert!(
        matches!(&again, Reserved::Won(won) if won.resent),
        "{again:?}"
    );
    // Also if the reply came, and was lost later.
    t.reserve(&request(1, 3)).await;
    assert_eq!(t.reserve(&first).await, again);
}

#[tokio::test]
async fn a_version_is_the_business_of_the_store_behind() {
    let t = Tiers::new().await;
    let ordered = |claim, number| Reserve {
        version: VersionBytes::new(vec![number]),
        ..request(1, claim)
    };
    let first = t.win(&ordered(1, 1)).await;
    t.reserve(&ordered(2, 1)).await;
    t.complete(first, Some(TTL)).await.unwrap();
    t.reserve(&ordered(3, 1)).await;
    t.win(&ordered(4, 2)).await;
    let asked = t.front.asked();
    assert!(asked.iter().all(|step| *step == "clear_hint"), "{asked:?}");
}

#[tokio::test]
async fn until_it_is_known_which_store_is_behind_the_front_is_not_used() {
    let clock = ManualClock::new();
    let front = Fake::new(&clock);
    let store = TieredStore::new(front.clone(), MemoryStore::with_clock(clock));
    let reply = store.reserve(&request(1, 1)).await.unwrap();
    assert!(matches!(reply, Reserved::Won(_)));
    store.reserve(&request(1, 2)).await.unwrap();
    assert!(front.asked().is_empty());
}

#[tokio::test]
async fn another_store_behind_never_meets_old_entries() {
    let t = Tiers::new().await;
    t.filled(1, None).await;
    let emptied = Back::new(&t.clock);
    let options = TieredStore::options(t.front.clone(), emptied);
    let store = options.clock(t.clock.clone()).build();
    store.pin(&meta(9)).await.unwrap();
    let reply = store.reserve(&request(1, 3)).await.unwrap();
    assert!(matches!(reply, Reserved::Won(_)), "{reply:?}");
}

#[tokio::test]
async fn a_host_whose_clock_is_wrong_keeps_nobody_waiting() {
    let t = Tiers::new().await;
    t.win(&request(1, 1)).await;
    for wrong_us in [-3_600 * SECOND, 3_600 * SECOND] {
        let clock = ManualClock::new();
        clock.step(wrong_us);
        let options = TieredStore::options(t.front.clone(), t.back.clone());
        let store = options.hint(HINT).clock(clock).build();
        store.pin(&meta(1)).await.unwrap();
        // What it puts there is no more believed than it believes the others.
        let asked = t.back.reserves();
        store.reserve(&request(1, 2)).await.unwrap();
        t.reserve(&request(1, 3)).await;
        store.reserve(&request(1, 4)).await.unwrap();
        assert_eq!(t.back.reserves() - asked, 3);
    }
}

#[tokio::test]
async fn a_damaged_answer_is_not_given_to_the_front() {
    let t = Tiers::new().await;
    let holder = t.win(&request(1, 1)).await;
    let mut damaged = answer(1);
    damaged.bytes[0] ^= 1;
    let complete = Complete {
        holder,
        ending: Ending::Answer(damaged.clone()),
        ttl_us: None,
    };
    t.store.complete(&complete).await.unwrap();
    for claim in 2..5 {
        let asked = t.back.reserves();
        let reply = t.reserve(&request(1, claim)).await;
        assert!(matches!(reply, Reserved::Completed { answer, .. } if answer == damaged));
        assert_eq!(t.back.reserves(), asked + 1);
    }
}

#[tokio::test]
async fn a_front_in_memory_compares_kinds_expires_and_has_an_end() {
    let clock = ManualClock::new();
    let front = MemoryFront::with(40, clock.clone());
    let ttl = Duration::from_secs(1);
    let stands = async |front: &MemoryFront| {
        let entry = front.get("k").await.unwrap();
        entry.map(|entry| String::from_utf8(entry).unwrap())
    };
    front.hint("k", b"H1", ttl).await.unwrap();
    front.hint("k", b"H2", ttl).await.unwrap();
    assert_eq!(stands(&front).await.as_deref(), Some("H2"));
    front.fill("k", b"A1", ttl).await.unwrap();
    front.hint("k", b"H3", ttl).await.unwrap();
    front.clear_hint("k").await.unwrap();
    assert_eq!(stands(&front).await.as_deref(), Some("A1"));
    front.fill("k", b"A2", ttl).await.unwrap();
    assert_eq!(stands(&front).await.as_deref(), Some("A2"));
    front.block("k", 2 * ttl).await.unwrap();
    front.fill("k", b"A3", ttl).await.unwrap();
    front.hint("k", b"H4", ttl).await.unwrap();
    front.clear_hint("k").await.unwrap();
    assert_eq!(stands(&front).await.as_deref(), Some("B"));
    clock.advance(2 * ttl);
    assert!(front.is_empty(), "it has expired");
    front.fill("k", &[b'A'; 40], ttl).await.unwrap();
    assert_eq!(stands(&front).await, None, "too large");
    front.fill("k", &[b'A'; 39], ttl).await.unwrap();
    front.fill("l", b"A", ttl).await.unwrap();
    assert_eq!((front.len(), front.get("l").await.unwrap()), (1, None));
    front.block("l", ttl).await.unwrap();
    let block = front.get("l").await.unwrap().unwrap();
    assert_eq!(
        Kind::of(&block),
        Some(Kind::Block),
        "there is always room for it"
    );
    front.hint("m", b"H", ttl).await.unwrap();
    clock.advance(ttl);
    front.hint("m", b"H", ttl).await.unwrap();
    front.clear_hint("m").await.unwrap();
    assert!(front.is_empty());
}
