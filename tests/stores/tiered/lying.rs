//! A front that lies, and random calls.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use idem::identity::Fingerprint;
use idem::record::{Note, Recorded};
use idem::store::tiered::Front;
use idem::store::{
    Complete, Ending, Holder, MarkUnknown, Release, Reserve, Reserved, Settle, Store as _,
    Takeover, TieredStore, Written,
};
use idem::testing::ManualClock;
use idem::transition::Settlement;
use idem::{Clock as _, StoreError, StoreErrorKind, UnknownReason};
use proptest::prelude::*;
use proptest::sample::select;

use super::fakes::Back;
use super::{HINT, SECOND, meta, request};

/// What the front does to the next read, or write.
#[derive(Debug, Clone)]
enum Lie {
    /// The newest entry of this key.
    Truth,
    Nothing,
    Garbage(Vec<u8>),
    /// An old entry of this key.
    Old(usize),
    /// Any entry of any key.
    Another(usize),
    /// The newest entry, with a bit of it flipped.
    Flipped(usize),
    Fails,
    Hangs,
}

fn lie() -> impl Strategy<Value = Lie> {
    prop_oneof![
        4 => Just(Lie::Truth),
        1 => Just(Lie::Nothing),
        1 => prop::collection::vec(any::<u8>(), 0..200).prop_map(Lie::Garbage),
        4 => any::<usize>().prop_map(Lie::Old),
        4 => any::<usize>().prop_map(Lie::Another),
        1 => any::<usize>().prop_map(Lie::Flipped),
        1 => Just(Lie::Fails),
        1 => Just(Lie::Hangs),
    ]
}

/// Keeps every entry that it was ever given, whatever it is told, and says
/// what the script says.
#[derive(Debug, Clone, Default)]
struct Liar(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    lies: Vec<Lie>,
    /// Never a block: it forgets those first.
    entries: Vec<(String, Vec<u8>)>,
}

impl Liar {
    fn lies(&self, lies: &[Lie]) {
        self.0.lock().unwrap().lies = lies.to_vec();
    }

    async fn next(&self) -> Result<Lie, StoreError> {
        let lie = self.0.lock().unwrap().lies.pop();
        match lie {
            Some(Lie::Fails) => Err(StoreError::new(StoreErrorKind::Permanent, "a fault")),
            Some(Lie::Hangs) => std::future::pending().await,
            other => Ok(other.unwrap_or(Lie::Truth)),
        }
    }

    async fn write(&self, key: &str, entry: &[u8]) -> Result<(), StoreError> {
        let entry = (key.to_owned(), entry.to_vec());
        self.0.lock().unwrap().entries.push(entry);
        self.next().await.map(drop)
    }
}

#[async_trait]
impl Front for Liar {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let lie = self.next().await?;
        let kept = self.0.lock().unwrap();
        let any = |at: usize, entries: &[&Vec<u8>]| {
            (!entries.is_empty()).then(|| entries[at % entries.len()].clone())
        };
        let all: Vec<_> = kept.entries.iter().map(|(_, entry)| entry).collect();
        let own: Vec<_> = kept
            .entries
            .iter()
            .filter(|(of, _)| of == key)
            .map(|(_, entry)| entry)
            .collect();
        Ok(match lie {
            Lie::Truth => own.last().map(|entry| (*entry).clone()),
            Lie::Garbage(bytes) => Some(bytes),
            Lie::Old(at) => any(at, &own),
            Lie::Another(at) => any(at, &all),
            Lie::Flipped(at) => own.last().map(|entry| {
                let mut entry = (*entry).clone();
                let bit = at % (8 * entry.len());
                entry[bit / 8] ^= 1 << (bit % 8);
                entry
            }),
            Lie::Nothing | Lie::Fails | Lie::Hangs => None,
        })
    }

    async fn fill(&self, key: &str, entry: &[u8], _: Duration) -> Result<(), StoreError> {
        self.write(key, entry).await
    }

    async fn hint(&self, key: &str, entry: &[u8], _: Duration) -> Result<(), StoreError> {
        self.write(key, entry).await
    }

    async fn clear_hint(&self, _: &str) -> Result<(), StoreError> {
        self.next().await.map(drop)
    }

    async fn block(&self, _: &str, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
}

#[derive(Debug, Clone)]
enum Call {
    Reserve {
        key: u8,
        payload: u8,
        takeover: Takeover,
        again: bool,
    },
    Complete(usize, Option<i64>),
    Release(usize),
    MarkUnknown(usize),
    Forget(u8),
    Advance(i64),
}

fn call() -> impl Strategy<Value = Call> {
    let takeover = select(vec![Takeover::Refuse, Takeover::Refuse, Takeover::Rerun]);
    prop_oneof![
        12 => (0_u8..3, 0_u8..2, takeover, prop::bool::weighted(0.1)).prop_map(
            |(key, payload, takeover, again)| Call::Reserve { key, payload, takeover, again }
        ),
        4 => (0_usize..3, select(vec![Some(20 * SECOND), Some(7_200 * SECOND), None]))
            .prop_map(|(at, ttl)| Call::Complete(at, ttl)),
        1 => (0_usize..3).prop_map(Call::Release),
        1 => (0_usize..3).prop_map(Call::MarkUnknown),
        1 => (0_u8..3).prop_map(Call::Forget),
        5 => select(vec![1, SECOND / 2, SECOND, 2 * SECOND, 15 * SECOND, 40 * SECOND, 4_000 * SECOND])
            .prop_map(Call::Advance),
    ]
}

/// What the store behind has ever said, and by when it was true.
#[derive(Default)]
struct Truth {
    holders: Vec<(Holder, Fingerprint)>,
    /// Answers with their payload, and when they end.
    recorded: HashMap<Vec<u8>, (Holder, Fingerprint, Option<i64>)>,
    /// When it said of a record and payload that an attempt runs.
    running: HashMap<(u8, Fingerprint), i64>,
    claims: u8,
    sent: Vec<Reserve>,
    answers: u32,
}

struct Script {
    clock: ManualClock,
    back: Back,
    store: TieredStore,
    truth: Truth,
    /// Replies that the store behind was not asked for.
    fronted: HashSet<&'static str>,
}

impl Script {
    async fn new(front: &Liar) -> Self {
        let clock = ManualClock::new();
        let back = Back::new(&clock);
        let options = TieredStore::options(front.clone(), back.clone());
        let store = options.hint(HINT).clock(clock.clone()).build();
        store.pin(&meta(1)).await.unwrap();
        Self {
            clock,
            back,
            store,
            truth: Truth::default(),
            fronted: HashSet::new(),
        }
    }

    async fn call(&mut self, call: &Call) -> Result<(), TestCaseError> {
        match call {
            Call::Reserve {
                key,
                payload,
                takeover,
                again,
            } => {
                let sent = self.truth.sent.last().filter(|_| *again).cloned();
                let request = sent.unwrap_or_else(|| {
                    self.truth.claims += 1;
                    Reserve {
                        fingerprint: Fingerprint::from_bytes([*payload; 32]),
                        takeover: *takeover,
                        ..request(*key, self.truth.claims)
                    }
                });
                self.truth.sent.push(request.clone());
                return self.reserve(&request).await;
            }
            Call::Complete(at, ttl_us) => self.complete(*at, *ttl_us).await,
            Call::Release(at) => {
                if let Some(holder) = self.holder(*at) {
                    let request = Release {
                        holder,
                        ttl_us: None,
                        probed: false,
                    };
                    self.store.release(&request).await.unwrap();
                }
            }
            Call::MarkUnknown(at) => {
                if let Some(holder) = self.holder(*at) {
                    let request = MarkUnknown {
                        holder,
                        reason: UnknownReason::Failed,
                        undecided_retry_us: None,
                    };
                    self.store.mark_unknown(&request).await.unwrap();
                }
            }
            Call::Forget(key) => self.forget(*key).await,
            Call::Advance(us) => self.clock.step(*us),
        }
        Ok(())
    }

    fn holder(&self, back: usize) -> Option<Holder> {
        let at = self.truth.holders.len().checked_sub(1 + back)?;
        Some(self.truth.holders[at].0)
    }

    async fn complete(&mut self, back: usize, ttl_us: Option<i64>) {
        let Some(at) = self.truth.holders.len().checked_sub(1 + back) else {
            return;
        };
        let (holder, fingerprint) = self.truth.holders[at];
        self.truth.answers += 1;
        let bytes = self.truth.answers.to_be_bytes().to_vec();
        let request = Complete {
            holder,
            ending: Ending::Answer(Recorded::new(&holder.id, "json", false, bytes.clone())),
            ttl_us,
        };
        if self.store.complete(&request).await.unwrap() == Written::Done {
            let ends = ttl_us.map(|ttl| self.clock.unix_us() + ttl);
            self.truth
                .recorded
                .insert(bytes, (holder, fingerprint, ends));
        }
    }

    async fn forget(&self, key: u8) {
        let admin = self.store.admin().unwrap();
        let id = request(key, 0).id;
        if let Some(seen) = admin.get(&id).await.unwrap() {
            let request = Settle {
                state: None,
                id,
                fence: seen.record.fence,
                settlement: Settlement::Forgotten,
                force: true,
                ttl_us: None,
                grace_us: 5 * SECOND,
                note: Note::new("ann", "a test").unwrap(),
            };
            admin.settle(&request).await.unwrap();
        }
    }

    async fn reserve(&mut self, request: &Reserve) -> Result<(), TestCaseError> {
        self.back.take_last();
        let reply = self.store.reserve(request).await.unwrap();
        let said = self.back.take_last();
        let now = self.clock.unix_us();
        let of = (request.id.as_bytes()[0], request.fingerprint);
        if let Some(said) = said {
            prop_assert_eq!(&reply, &said, "the store behind decides");
            match reply {
                Reserved::Won(won) if !won.resent => {
                    let holder = Holder {
                        id: request.id,
                        claim: request.claim,
                        fence: won.fence,
                    };
                    self.truth.holders.push((holder, request.fingerprint));
                }
                Reserved::InProgress { .. } => {
                    self.truth.running.insert(of, now);
                }
                _ => {}
            }
            return Ok(());
        }
        match reply {
            Reserved::Completed {
                answer, left_us, ..
            } => {
                self.fronted.insert("completed");
                let recorded = self.truth.recorded.get(&answer.bytes);
                let Some((holder, fingerprint, ends)) = recorded else {
                    return Err(TestCaseError::fail("it was never recorded"));
                };
                prop_assert_eq!(holder.id, request.id);
                prop_assert_eq!(*fingerprint, request.fingerprint);
                prop_assert!(ends.is_none_or(|ends| ends >= now), "its TTL is over");
                prop_assert_eq!(ends.map(|ends| ends - now), left_us);
            }
            Reserved::InProgress { left_us } => {
                self.fronted.insert("in progress");
                let said = self.truth.running.get(&of);
                let late = said.map(|said| now - said);
                prop_assert!(late.is_some_and(|late| late <= SECOND), "{:?}", late);
                prop_assert!(left_us > 0);
            }
            other => prop_assert!(false, "only the store behind says {:?}", other),
        }
        Ok(())
    }
}

#[test]
fn a_lying_front_never_wins_a_key_nor_makes_up_an_answer() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let mut config = ProptestConfig::with_cases(200);
    config.failure_persistence = None;
    let fronted = std::cell::RefCell::new(HashSet::new());
    let script = prop::collection::vec((call(), prop::collection::vec(lie(), 4)), 10..60);
    proptest!(config, |(script in script)| {
        let front = Liar::default();
        let checked: Result<(), TestCaseError> = runtime.block_on(async {
            let mut state = Script::new(&front).await;
            for (call, lies) in &script {
                front.lies(lies);
                state.call(call).await?;
            }
            fronted.borrow_mut().extend(state.fronted);
            Ok(())
        });
        checked?;
    });
    // A front that is never believed would pass, too.
    let expected = HashSet::from(["completed", "in progress"]);
    assert_eq!(fronted.into_inner(), expected);
}
