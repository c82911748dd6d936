//! The renewal thread: what is held is renewed, and whoever is dropped is said
//! goodbye to, once.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

use idem::identity::{Fingerprint, RecordId};
use idem::record::Claim;
use idem::store::{
    Complete, Finding, GiveBack, Holder, Lease, MarkUnknown, Meta, Release, Renewer, Reserve,
    Reserved, Store, Sweep, Takeover, Won, Written,
};
use idem::{OnUnknown, StoreError, StoreErrorKind};
use shuttle::rand::Rng as _;
use shuttle::thread;

use crate::engine::attempt::{Attempt, Phase};
use crate::engine::renewal::Renewals;
use crate::engine::tracker::Tracker;
use crate::engine::{Inner, Prepared};
use crate::sync::{Arc, NOW_US};

const SCHEDULES: usize = 2_000;
const ATTEMPTS: u8 = 3;

#[derive(Debug)]
struct Time;

impl idem::Clock for Time {
    fn unix_us(&self) -> i64 {
        NOW_US.get()
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(u64::try_from(NOW_US.get()).unwrap())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    GivenBack,
    Unknown,
}

/// What the store was told.
#[derive(Debug, Default)]
struct Book {
    started: HashSet<Claim>,
    said: HashMap<Claim, Vec<Said>>,
    /// Renewals of what nobody held. Not a panic, which the worker would catch.
    wrong: usize,
}

/// A store's connection that fails now and then.
#[derive(Debug, Clone, Default)]
struct Connection(Arc<Mutex<Book>>);

impl Connection {
    fn book<T>(&self, with: impl FnOnce(&mut Book) -> T) -> T {
        with(&mut self.0.lock().unwrap())
    }

    fn say(&self, claim: Claim, said: Said) -> Result<Written, StoreError> {
        fails()?;
        self.book(|book| book.said.entry(claim).or_default().push(said));
        Ok(Written::Done)
    }
}

fn fails() -> Result<(), StoreError> {
    if shuttle::rand::thread_rng().gen_range(0..4) == 0 {
        return Err(StoreError::new(StoreErrorKind::Transient, "not now"));
    }
    Ok(())
}

#[async_trait::async_trait]
impl Renewer for Connection {
    async fn renew(&mut self, leases: &[Lease]) -> Result<Vec<bool>, StoreError> {
        fails()?;
        self.book(|book| {
            for lease in leases {
                let claim = lease.holder.claim;
                let held = book.started.contains(&claim) && !book.said.contains_key(&claim);
                book.wrong += usize::from(!held);
            }
        });
        Ok(vec![true; leases.len()])
    }

    async fn mark_unknown(&mut self, request: &MarkUnknown) -> Result<Written, StoreError> {
        self.say(request.holder.claim, Said::Unknown)
    }

    async fn give_back(&mut self, request: &GiveBack) -> Result<Written, StoreError> {
        self.say(request.claim, Said::GivenBack)
    }
}

fn not_asked<T>() -> Result<T, StoreError> {
    Err(StoreError::new(StoreErrorKind::Permanent, "not asked for"))
}

/// The same connection, opened again after it has failed.
#[async_trait::async_trait]
impl Store for Connection {
    fn kind(&self) -> &'static str {
        "book"
    }

    async fn pin(&self, _: &Meta) -> Result<Meta, StoreError> {
        not_asked()
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        not_asked()
    }

    async fn reserve(&self, _: &Reserve) -> Result<Reserved, StoreError> {
        not_asked()
    }

    async fn complete(&self, _: &Complete) -> Result<Written, StoreError> {
        not_asked()
    }

    async fn release(&self, _: &Release) -> Result<Written, StoreError> {
        not_asked()
    }

    async fn mark_unknown(&self, _: &MarkUnknown) -> Result<Written, StoreError> {
        not_asked()
    }

    async fn sweep(&self, _: &Sweep) -> Result<u64, StoreError> {
        not_asked()
    }

    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        Ok(Box::new(self.clone()))
    }
}

fn start(engine: &Arc<Inner>, connection: &Connection, number: u8) -> Attempt {
    let holder = Holder {
        id: RecordId::from_bytes([number; 32]),
        claim: Claim::from_bytes([number; 16]),
        fence: 1,
    };
    let prepared = Arc::new(Prepared {
        operation: Arc::from("goodbyes"),
        reserve: Reserve {
            id: holder.id,
            operation: String::new(),
            label: None,
            scope: None,
            fingerprint: Fingerprint::from_bytes([1; 32]),
            elements: Vec::new(),
            claim: holder.claim,
            lease_us: 30_000_000_000,
            grace_us: 0,
            takeover: Takeover::Refuse,
            max_takeovers: 1,
            version: None,
        },
        on_unknown: OnUnknown::Refuse,
        ttl_us: None,
        max_run: Duration::from_secs(1_000_000_000),
    });
    let won = Won {
        fence: 1,
        attempt: 1,
        doubt: false,
        doubt_for_us: 0,
        resent: false,
    };
    connection.book(|book| book.started.insert(holder.claim));
    Attempt::start(engine, &prepared, holder, won, NOW_US.get(), None)
}

/// Attempts that end in every way, on one schedule. `twice` is a mistake.
fn attempts(twice: bool) {
    NOW_US.set(0);
    let connection = Connection::default();
    let clock: Arc<dyn idem::Clock> = Arc::new(Time);
    let (renewals, commands) = Renewals::channel(&clock);
    let engine = Arc::new(Inner {
        renewals,
        clock,
        attempts: Tracker::default(),
    });
    let worker = {
        let renewer = Box::new(connection.clone());
        let store = Arc::new(connection.clone());
        thread::spawn(move || {
            shuttle::future::block_on(commands.serve(store, Arc::new(Time), renewer));
        })
    };
    let ends: Vec<_> = (0..ATTEMPTS)
        .map(|number| {
            let (engine, connection) = (Arc::clone(&engine), connection.clone());
            thread::spawn(move || {
                let attempt = start(&engine, &connection, number);
                thread::yield_now();
                let expected = match number {
                    0 => Some(Said::GivenBack),
                    1 => {
                        attempt.state.enter(Phase::Running);
                        Some(Said::Unknown)
                    }
                    _ => {
                        attempt.state.enter(Phase::Running);
                        let sure = engine.renewals.confirm(&attempt.state);
                        if let Ok(held) = shuttle::future::block_on(sure) {
                            assert!(held, "what is held is confirmed");
                        }
                        None
                    }
                };
                let claim = attempt.state.holder.claim;
                if twice {
                    let back = attempt.state.give_back();
                    engine
                        .renewals
                        .give_back(back, Duration::from_secs(30), true);
                }
                match expected {
                    Some(_) => drop(attempt),
                    None => drop(attempt.end()),
                }
                (claim, expected)
            })
        })
        .collect();
    let ended: Vec<_> = ends.into_iter().map(|end| end.join().unwrap()).collect();
    assert_eq!(engine.attempts.count(), 0);
    drop(engine);
    // It ends when all is said: a goodbye that stays unsaid is a deadlock here.
    worker.join().unwrap();
    connection.book(|book| {
        assert_eq!(book.wrong, 0, "renewed what nobody held");
        for (claim, expected) in ended {
            let said = book.said.remove(&claim).unwrap_or_default();
            assert_eq!(said, Vec::from_iter(expected), "goodbyes of {claim:?}");
        }
    });
}

#[test]
fn whoever_is_dropped_is_said_goodbye_to_once() {
    shuttle::check_random(|| attempts(false), SCHEDULES);
}

#[test]
fn a_second_goodbye_is_found() {
    let checked = catch_unwind(AssertUnwindSafe(|| {
        shuttle::check_random(|| attempts(true), SCHEDULES);
    }));
    assert!(checked.is_err());
}
