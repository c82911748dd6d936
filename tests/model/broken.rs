//! Protocols with one guard taken away: the checker must find how each goes
//! wrong, or its promises are empty.
//!
//! Claim and fence guard the same writes twice, since no two reservations share
//! either: one without the other breaks no promise here, so both are taken away
//! at once.

use idem::UnknownReason;
use idem::record::{Record, State};
use idem::store::{
    Complete, GiveBack, Holder, Lease, MarkUnknown, Release, Reserve, Reserved, Takeover, Written,
};
use idem::transition::{self, Decision};
use stateright::Checker as _;

use crate::judge::Promise;
use crate::protocol::{NOTHING, Protocol};
use crate::server::{RULES, Rules};
use crate::world::{GRACE, Left, Policy};

/// The record as a broken store would take it to be.
fn seen_as(record: Option<&Record>, change: impl FnOnce(&mut Record)) -> Option<Record> {
    record.cloned().map(|mut record| {
        change(&mut record);
        record
    })
}

/// Makes the request look as if the holder had sent it.
fn as_holder(record: Option<&Record>, holder: Holder) -> Holder {
    record.map_or(holder, |record| Holder {
        claim: record.claim,
        fence: record.fence,
        ..holder
    })
}

/// Who calls, once each, and what goes wrong meanwhile: enough for one mistake
/// to show, and little to search.
type Scene = (&'static [Policy], Left);

const REFUSE: &[Policy] = &[Policy::Refuse; 2];
const RERUN: &[Policy] = &[Policy::Rerun; 2];
const TIME: Left = Left {
    ticks: 3,
    ..NOTHING
};
const LAPSE_OF_RERUNS: Scene = (RERUN, TIME);
const CRASH: Scene = (REFUSE, Left { crashes: 1, ..TIME });
const CRASH_OF_RERUNS: Scene = (
    RERUN,
    Left {
        crashes: 1,
        failures: 1,
        ..TIME
    },
);
const THREE_RERUNS: Scene = (
    &[Policy::Rerun; 3],
    Left {
        failures: 2,
        ..NOTHING
    },
);
const FAILURE: Scene = (
    REFUSE,
    Left {
        failures: 1,
        ..TIME
    },
);
const DROP: Scene = (REFUSE, Left { drops: 1, ..TIME });
const DROP_OF_RERUNS: Scene = (
    RERUN,
    Left {
        crashes: 1,
        drops: 1,
        ..TIME
    },
);
const LATE: Scene = (
    REFUSE,
    Left {
        resends: 1,
        late: 1,
        renewals: 1,
        failures: 1,
        ..NOTHING
    },
);
const RECOVERY: Scene = (
    &[Policy::Recover; 3],
    Left {
        failures: 2,
        ..NOTHING
    },
);

type Reserving = fn(Option<&Record>, &Reserve, i64) -> Decision<Reserved>;

const RESERVING: &[(&str, Scene, Reserving, &[Promise])] = &[
    (
        "takes over within the grace",
        LAPSE_OF_RERUNS,
        |record, request, now| {
            let request = Reserve {
                grace_us: 0,
                ..request.clone()
            };
            transition::reserve(record, &request, now)
        },
        &[Promise::NoOverlap],
    ),
    (
        "takes over what has not lapsed",
        LAPSE_OF_RERUNS,
        |record, request, now| {
            let seen = seen_as(record, |record| {
                if record.claim != request.claim {
                    record.lease_until_us = record.lease_until_us.map(|_| 0);
                }
            });
            transition::reserve(seen.as_ref(), request, now)
        },
        &[Promise::NoOverlap],
    ),
    (
        "forgets what is running",
        LAPSE_OF_RERUNS,
        |record, request, now| {
            let running = record.filter(|record| record.state != State::InProgress);
            transition::reserve(running, request, now)
        },
        &[Promise::NoOverlap, Promise::FencesGrow, Promise::WinsOnce],
    ),
    (
        "lets what is running expire",
        CRASH,
        |record, request, now| {
            let seen = record.filter(|record| !record.is_lapsed(now, GRACE));
            transition::reserve(seen, request, now)
        },
        &[Promise::RefuseNeverRepeats],
    ),
    (
        "takes unknown for released",
        FAILURE,
        |record, request, now| {
            let seen = seen_as(record, |record| {
                if record.state == State::Unknown {
                    record.state = State::Released;
                }
            });
            transition::reserve(seen.as_ref(), request, now)
        },
        &[Promise::RefuseNeverRepeats, Promise::TakeoversBounded],
    ),
    (
        "takes refuse for rerun",
        CRASH,
        |record, request, now| {
            let request = Reserve {
                takeover: Takeover::Rerun,
                ..request.clone()
            };
            transition::reserve(record, &request, now)
        },
        &[Promise::RefuseNeverRepeats],
    ),
    (
        "lets an answer expire early",
        CRASH,
        |record, request, now| {
            let seen = record.filter(|record| record.state != State::Completed);
            transition::reserve(seen, request, now)
        },
        &[Promise::OneAnswer],
    ),
    (
        "tells a stranger that it is the holder",
        CRASH,
        |record, request, now| {
            let seen = seen_as(record, |record| record.claim = request.claim);
            transition::reserve(seen.as_ref(), request, now)
        },
        &[Promise::OneWinner],
    ),
    (
        "does not know its own holder",
        LATE,
        |record, request, now| {
            let seen = seen_as(record, |record| {
                record.claim = idem::record::Claim::from_bytes([0; 16]);
            });
            transition::reserve(seen.as_ref(), request, now)
        },
        &[Promise::NotLockedOut, Promise::WinsOnce],
    ),
    (
        "lets a claim win twice",
        LATE,
        |record, request, now| {
            let seen = seen_as(record, |record| {
                if record.state != State::InProgress {
                    record.claim = idem::record::Claim::from_bytes([0; 16]);
                }
            });
            transition::reserve(seen.as_ref(), request, now)
        },
        &[Promise::WinsOnce],
    ),
    (
        "starts the fence anew",
        FAILURE,
        |record, request, now| {
            let mut decision = transition::reserve(record, request, now);
            if let (Some(next), Reserved::Won(won)) = (&mut decision.write, &mut decision.reply) {
                next.fence = now;
                won.fence = now;
            }
            decision
        },
        &[Promise::FencesGrow],
    ),
    (
        "does not count takeovers",
        THREE_RERUNS,
        |record, request, now| {
            let seen = seen_as(record, |record| record.takeovers = 0);
            transition::reserve(seen.as_ref(), request, now)
        },
        &[Promise::TakeoversBounded],
    ),
    (
        "probes at once again",
        RECOVERY,
        |record, request, now| {
            let seen = seen_as(record, |record| record.not_before_us = None);
            transition::reserve(seen.as_ref(), request, now)
        },
        &[Promise::ProbesBackOff],
    ),
    (
        "forgets the doubt",
        CRASH_OF_RERUNS,
        |record, request, now| {
            let mut decision = transition::reserve(record, request, now);
            if let (Some(next), Reserved::Won(won)) = (&mut decision.write, &mut decision.reply) {
                next.doubt = false;
                won.doubt = false;
            }
            decision
        },
        &[Promise::DoubtStays, Promise::OneEffectOfHolders],
    ),
    (
        "lets nobody settle what has lapsed",
        CRASH,
        |record, request, now| match record {
            Some(record) if record.is_lapsed(now, GRACE) && record.claim != request.claim => {
                Decision {
                    reply: Reserved::InProgress { left_us: 0 },
                    write: None,
                }
            }
            _ => transition::reserve(record, request, now),
        },
        &[Promise::NeverStuck],
    ),
];

fn complete_by_anybody(record: Option<&Record>, request: &Complete, now: i64) -> Decision<Written> {
    let request = Complete {
        holder: as_holder(record, request.holder),
        ..request.clone()
    };
    transition::complete(record, &request, now)
}

fn complete_twice(record: Option<&Record>, request: &Complete, now: i64) -> Decision<Written> {
    let seen = seen_as(record, |record| {
        if record.state == State::Completed {
            record.state = State::InProgress;
            record.claim = request.holder.claim;
            record.fence = request.holder.fence;
        }
    });
    transition::complete(seen.as_ref(), request, now)
}

fn refuse_late_truth(record: Option<&Record>, request: &Complete, now: i64) -> Decision<Written> {
    let open = record.is_some_and(|record| record.state == State::Unknown);
    if open {
        return Decision {
            reply: Written::Superseded,
            write: None,
        };
    }
    transition::complete(record, request, now)
}

fn release_by_anybody(record: Option<&Record>, request: &Release, now: i64) -> Decision<Written> {
    let request = Release {
        holder: as_holder(record, request.holder),
        ..request.clone()
    };
    transition::release(record, &request, now)
}

fn release_in_doubt(record: Option<&Record>, request: &Release, now: i64) -> Decision<Written> {
    let request = Release {
        probed: true,
        ..request.clone()
    };
    transition::release(record, &request, now)
}

fn release_an_unknown(
    record: Option<&Record>,
    request: &MarkUnknown,
    now: i64,
) -> Decision<Written> {
    let request = Release {
        holder: request.holder,
        ttl_us: None,
        probed: true,
    };
    transition::release(record, &request, now)
}

fn mark_by_anybody(record: Option<&Record>, request: &MarkUnknown, now: i64) -> Decision<Written> {
    let request = MarkUnknown {
        holder: as_holder(record, request.holder),
        ..request.clone()
    };
    transition::mark_unknown(record, &request, now)
}

fn give_back_by_anybody(
    record: Option<&Record>,
    request: &GiveBack,
    now: i64,
) -> Decision<Written> {
    let claim = record.map_or(request.claim, |record| record.claim);
    let request = GiveBack {
        claim,
        ..request.clone()
    };
    transition::give_back(record, &request, now)
}

fn give_back_in_doubt(record: Option<&Record>, request: &GiveBack, now: i64) -> Decision<Written> {
    let seen = seen_as(record, |record| record.doubt = false);
    transition::give_back(seen.as_ref(), request, now)
}

fn renew_what_is_over(record: Option<&Record>, request: &Lease, now: i64) -> Decision<bool> {
    let seen = seen_as(record, |record| record.state = State::InProgress);
    transition::renew(seen.as_ref(), request, now)
}

fn sweep_anything_old(record: &Record, now: i64, _: i64) -> bool {
    record.lease_until_us.is_some_and(|until| until < now) || record.is_sweepable(now, 0)
}

fn sweep_unknown(record: &Record, now: i64, grace: i64) -> bool {
    record.reason == Some(UnknownReason::Failed.code()) || record.is_sweepable(now, grace)
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn writing() -> Vec<Broken> {
    let rules = |change: fn(&mut Rules)| {
        let mut rules = RULES;
        change(&mut rules);
        rules
    };
    vec![
        (
            "anybody completes",
            LAPSE_OF_RERUNS,
            rules(|rules| rules.complete = complete_by_anybody),
            &[Promise::HoldersWrite, Promise::SameAnswer],
        ),
        (
            "an answer is recorded over another",
            LAPSE_OF_RERUNS,
            rules(|rules| rules.complete = complete_twice),
            &[
                Promise::OneAnswer,
                Promise::HoldersWrite,
                Promise::FencesGrow,
            ],
        ),
        (
            "a late holder's answer is refused",
            CRASH,
            rules(|rules| rules.complete = refuse_late_truth),
            &[Promise::TruthIsTaken],
        ),
        (
            "anybody releases",
            LATE,
            rules(|rules| rules.release = release_by_anybody),
            &[Promise::HoldersWrite],
        ),
        (
            "a doubt is released",
            CRASH_OF_RERUNS,
            rules(|rules| rules.release = release_in_doubt),
            &[Promise::DoubtStays],
        ),
        (
            "what panicked is released",
            FAILURE,
            rules(|rules| rules.mark_unknown = release_an_unknown),
            &[Promise::DoubtStays],
        ),
        (
            "anybody marks unknown",
            CRASH_OF_RERUNS,
            rules(|rules| rules.mark_unknown = mark_by_anybody),
            &[Promise::HoldersWrite],
        ),
        (
            "anybody gives back",
            DROP,
            rules(|rules| rules.give_back = give_back_by_anybody),
            &[Promise::HoldersWrite],
        ),
        (
            "a doubt is given back",
            DROP_OF_RERUNS,
            rules(|rules| rules.give_back = give_back_in_doubt),
            &[Promise::DoubtStays],
        ),
        (
            "a renewal revives what is over",
            LATE,
            rules(|rules| rules.renew = renew_what_is_over),
            &[Promise::OneAnswer],
        ),
        (
            "sweep deletes what has lapsed",
            CRASH,
            rules(|rules| rules.sweepable = sweep_anything_old),
            &[Promise::SweepOnlyOver],
        ),
        (
            "sweep deletes what is unknown",
            FAILURE,
            rules(|rules| rules.sweepable = sweep_unknown),
            &[Promise::SweepOnlyOver],
        ),
        (
            "a body runs without an answer of the store",
            CRASH,
            rules(|rules| rules.fail_open = true),
            &[Promise::FailClosed],
        ),
    ]
}

type Broken = (&'static str, Scene, Rules, &'static [Promise]);

/// Fails unless each breaks a promise that its guard is for.
fn are_found(all: impl IntoIterator<Item = Broken>) {
    let mut missed = Vec::new();
    for (what, (callers, left), rules, promises) in all {
        let checker = Protocol::new(rules, callers, 1, left).check();
        let found: Vec<_> = checker.discoveries().into_iter().collect();
        let expected = found.iter().find(|(promise, _)| {
            let mut promises = promises.iter();
            promises.any(|one| format!("{one:?}") == *promise)
        });
        match expected {
            Some((promise, path)) => {
                let steps = path.clone().into_actions().len();
                println!("{what}: {promise} is broken in {steps} steps");
            }
            None => missed.push((what, found.iter().map(|(one, _)| *one).collect::<Vec<_>>())),
        }
    }
    assert!(missed.is_empty(), "broken, and not found: {missed:?}");
}

#[test]
fn every_broken_reservation_is_found() {
    are_found(RESERVING.iter().map(|(what, scene, reserve, promises)| {
        let rules = Rules {
            reserve: *reserve,
            ..RULES
        };
        (*what, *scene, rules, *promises)
    }));
}

#[test]
fn every_broken_write_is_found() {
    are_found(writing());
}
