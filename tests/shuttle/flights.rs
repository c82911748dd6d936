//! Callers of one key in one process: nobody is stranded, one asks the store at
//! a time, and nothing stays.

use std::any::TypeId;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};

use idem::identity::{Fingerprint, RecordId};
use idem::record::Recorded;
use shuttle::rand::Rng as _;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

use crate::singleflight::{FlightKey, Flights, Landed, Lead, Part};
use crate::sync::Arc;

const SCHEDULES: usize = 2_000;
const CALLERS: usize = 4;

fn key(number: u8) -> FlightKey {
    FlightKey {
        id: RecordId::from_bytes([number; 32]),
        fingerprint: Fingerprint::from_bytes([1; 32]),
        version: None,
        codec: "json",
        output: TypeId::of::<u8>(),
    }
}

fn landed(by: u8) -> Arc<Landed> {
    Arc::new(Landed {
        answer: Recorded {
            codec: String::new(),
            failed: false,
            bytes: vec![by],
            digest: [0; 32],
        },
        finished_us: 0,
        attempt: 1,
    })
}

/// How callers join, so that a broken way can be tried in its place.
type Join = fn(&Arc<Flights>, &FlightKey) -> Part;

/// How a lead ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lands,
    Dropped,
    Panics,
    /// Its future is not polled any more, and not dropped.
    Forgotten,
}

/// What the callers of one key have in common.
struct Key {
    number: u8,
    flights: Arc<Flights>,
    leads: AtomicUsize,
    trips: AtomicUsize,
}

impl Key {
    fn new(number: u8, flights: &Arc<Flights>) -> Arc<Self> {
        Arc::new(Self {
            number,
            flights: Arc::clone(flights),
            leads: AtomicUsize::new(0),
            trips: AtomicUsize::new(0),
        })
    }

    /// Asks the store for everybody, unless it dies first.
    fn lead(&self, lead: Lead, fate: Fate) -> Option<Arc<Landed>> {
        let others = self.leads.fetch_add(1, Ordering::SeqCst);
        assert_eq!(others, 0, "two of one key ask the store at once");
        self.trips.fetch_add(1, Ordering::SeqCst);
        thread::yield_now();
        self.leads.fetch_sub(1, Ordering::SeqCst);
        match fate {
            Fate::Lands => {
                let landed = landed(self.number);
                lead.land(&landed);
                Some(landed)
            }
            Fate::Dropped => {
                drop(lead);
                None
            }
            Fate::Panics => {
                let panicked = catch_unwind(AssertUnwindSafe(move || {
                    let _lead = lead;
                    std::panic::resume_unwind(Box::new("the body"));
                }));
                assert!(panicked.is_err());
                None
            }
            Fate::Forgotten => {
                let _kept = ManuallyDrop::new(lead);
                None
            }
        }
    }

    /// Calls until there is an answer, as the engine does, except that it has
    /// no bound on its waiting: whoever is stranded is a deadlock here.
    fn call(&self, join: Join, fate: impl Fn() -> Fate) {
        loop {
            let answer = match join(&self.flights, &key(self.number)) {
                Part::Lead(lead) => self.lead(lead, fate()),
                Part::Follow(mut follow) => shuttle::future::block_on(follow.landed()),
            };
            if let Some(landed) = answer {
                let same = (&landed.answer.bytes[..], landed.finished_us, landed.attempt);
                assert_eq!(same, (&[self.number][..], 0, 1), "another key's");
                return;
            }
        }
    }
}

fn any_end() -> Fate {
    match shuttle::rand::thread_rng().gen_range(0..4) {
        0 => Fate::Dropped,
        1 => Fate::Panics,
        _ => Fate::Lands,
    }
}

/// Several callers of two keys, on one schedule.
fn callers(join: Join, fate: fn() -> Fate) {
    let flights = Arc::new(Flights::new());
    // Both in one shard.
    let keys = [1, 65].map(|number| Key::new(number, &flights));
    let calls: Vec<_> = (0..CALLERS)
        .map(|number| {
            let key = Arc::clone(&keys[number % 4 / 3]);
            thread::spawn(move || key.call(join, fate))
        })
        .collect();
    for call in calls {
        call.join().unwrap();
    }
    assert_eq!(flights.len(), 0, "a flight stayed in the map");
}

#[test]
fn nobody_is_stranded_however_a_lead_ends() {
    shuttle::check_random(|| callers(Flights::join, any_end), SCHEDULES);
}

#[test]
fn nobody_is_stranded_on_adversarial_schedules() {
    shuttle::check_pct(|| callers(Flights::join, any_end), SCHEDULES, 3);
}

#[test]
fn callers_that_overlap_make_one_trip() {
    shuttle::check_random(
        || {
            let flights = Arc::new(Flights::new());
            let shared = Key::new(1, &flights);
            let Part::Lead(lead) = flights.join(&key(1)) else {
                panic!("the first caller leads");
            };
            let calls: Vec<_> = (0..3)
                .map(|_| {
                    let part = flights.join(&key(1));
                    thread::spawn(move || match part {
                        Part::Lead(_) => panic!("it overlaps with another"),
                        Part::Follow(mut follow) => {
                            let landed = shuttle::future::block_on(follow.landed());
                            assert!(landed.is_some(), "the answer was lost");
                        }
                    })
                })
                .collect();
            shared.lead(lead, Fate::Lands);
            for call in calls {
                call.join().unwrap();
            }
            assert_eq!(shared.trips.load(Ordering::SeqCst), 1);
            assert_eq!(flights.len(), 0);
        },
        SCHEDULES,
    );
}

#[test]
fn an_old_lead_does_not_end_a_newer_flight() {
    shuttle::check_random(
        || {
            let flights = Arc::new(Flights::new());
            let Part::Lead(old) = flights.join(&key(1)) else {
                panic!("the first caller leads");
            };
            let ends = thread::spawn(move || old.land(&landed(1)));
            let key = Key::new(1, &flights);
            let calls = [(); 2].map(|()| {
                let key = Arc::clone(&key);
                thread::spawn(move || key.call(Flights::join, || Fate::Lands))
            });
            ends.join().unwrap();
            for call in calls {
                call.join().unwrap();
            }
            assert_eq!(flights.len(), 0);
        },
        SCHEDULES,
    );
}

fn is_found(broken: impl Fn() + Send + Sync + 'static) -> bool {
    catch_unwind(AssertUnwindSafe(|| {
        shuttle::check_random(broken, SCHEDULES);
    }))
    .is_err()
}

/// Looks first and starts second: two may lead.
fn look_then_start(flights: &Arc<Flights>, key: &FlightKey) -> Part {
    match flights.join(key) {
        Part::Lead(lead) => {
            drop(lead);
            thread::yield_now();
            // What another has started meanwhile is not looked at.
            let apart = Arc::new(Flights::new());
            apart.join(key)
        }
        follow @ Part::Follow(_) => follow,
    }
}

#[test]
fn looking_before_starting_is_found() {
    assert!(is_found(|| callers(look_then_start, || Fate::Lands)));
}

#[test]
fn a_lead_that_stays_without_an_end_is_found() {
    assert!(is_found(|| callers(Flights::join, || Fate::Forgotten)));
}
