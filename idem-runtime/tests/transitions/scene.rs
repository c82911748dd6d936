//! Requests, and what may stand there when one comes.

use idem::identity::{Fingerprint, RecordId};
use idem::record::{Claim, Element, Note, Record, Recorded, State, VersionBytes};
use idem::store::{
    Complete, Ending, Holder, MarkUnknown, Release, Reserve, Reserved, Settle, Takeover, Written,
};
use idem::transition::{self, Decision, Settlement};
use idem::{TombstoneReason, UnknownReason};

pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const START: i64 = 1_767_225_600 * SECOND;
pub(crate) const LEASE: i64 = 30 * SECOND;
pub(crate) const GRACE: i64 = 5 * SECOND;
pub(crate) const TTL: i64 = 3_600 * SECOND;
pub(crate) const LAPSE: i64 = LEASE + GRACE + 1;

pub(crate) fn claim(number: u8) -> Claim {
    Claim::from_bytes([number; 16])
}

pub(crate) fn version(number: u8) -> VersionBytes {
    VersionBytes::new(vec![number]).unwrap()
}

pub(crate) fn request(number: u8) -> Reserve {
    Reserve {
        id: RecordId::from_bytes([7; 32]),
        operation: "transitions".to_owned(),
        label: None,
        scope: None,
        fingerprint: Fingerprint::from_bytes([1; 32]),
        elements: vec![Element {
            label: "amount".to_owned(),
            digest: [1; 8],
        }],
        claim: claim(number),
        lease_us: LEASE,
        grace_us: GRACE,
        takeover: Takeover::Refuse,
        max_takeovers: 5,
        version: None,
    }
}

pub(crate) fn another_payload(request: Reserve) -> Reserve {
    Reserve {
        fingerprint: Fingerprint::from_bytes([2; 32]),
        ..request
    }
}

pub(crate) fn ending(text: &str) -> Ending {
    let id = RecordId::from_bytes([7; 32]);
    Ending::Answer(Recorded::new(&id, "json", false, text.as_bytes().to_vec()))
}

pub(crate) fn failed(text: &str) -> Ending {
    let id = RecordId::from_bytes([7; 32]);
    Ending::Answer(Recorded::new(&id, "json", true, text.as_bytes().to_vec()))
}

pub(crate) fn complete(holder: Holder, ending: Ending) -> Complete {
    Complete {
        holder,
        ending,
        ttl_us: Some(TTL),
    }
}

pub(crate) fn release(holder: Holder, probed: bool) -> Release {
    Release {
        holder,
        ttl_us: Some(TTL),
        probed,
    }
}

pub(crate) fn mark(holder: Holder, undecided_retry_us: Option<i64>) -> MarkUnknown {
    MarkUnknown {
        holder,
        reason: UnknownReason::Failed,
        undecided_retry_us,
    }
}

/// What stands there, who held it last, and the time.
pub(crate) struct Scene {
    pub(crate) record: Option<Record>,
    pub(crate) holder: Holder,
    pub(crate) now_us: i64,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self {
            record: None,
            holder: Holder {
                id: RecordId::from_bytes([7; 32]),
                claim: claim(1),
                fence: START,
            },
            now_us: START,
        }
    }

    pub(crate) fn wait(mut self, us: i64) -> Self {
        self.now_us += us;
        self
    }

    pub(crate) fn wins(mut self, request: &Reserve) -> Self {
        let decision = transition::reserve(self.record.as_ref(), request, self.now_us);
        let Reserved::Won(won) = decision.reply else {
            panic!("expected to win, got {:?}", decision.reply);
        };
        self.holder = Holder {
            id: request.id,
            claim: request.claim,
            fence: won.fence,
        };
        self.record = decision.write;
        self
    }

    pub(crate) fn ends(
        mut self,
        decide: impl FnOnce(Option<&Record>, Holder, i64) -> Decision<Written>,
    ) -> Self {
        let decision = decide(self.record.as_ref(), self.holder, self.now_us);
        assert_eq!(decision.reply, Written::Done);
        self.record = decision.write;
        self
    }

    pub(crate) fn completed(self, text: &str) -> Self {
        self.ends(|record, holder, now| {
            transition::complete(record, &complete(holder, ending(text)), now)
        })
    }

    pub(crate) fn buried(self) -> Self {
        let ending = Ending::Tombstone(TombstoneReason::TooLarge);
        self.ends(|record, holder, now| {
            transition::complete(record, &complete(holder, ending), now)
        })
    }

    pub(crate) fn released(self) -> Self {
        self.ends(|record, holder, now| transition::release(record, &release(holder, false), now))
    }

    pub(crate) fn unknown(self) -> Self {
        self.ends(|record, holder, now| transition::mark_unknown(record, &mark(holder, None), now))
    }

    pub(crate) fn of(state: &str) -> Self {
        let five = Reserve {
            version: Some(version(5)),
            ..request(1)
        };
        let six = Reserve {
            version: Some(version(6)),
            ..request(2)
        };
        let absent = Self::new();
        let five_completed = || Self::new().wins(&five).completed("five");
        match state {
            "absent" => absent,
            "running" => absent.wins(&request(1)),
            "doubtful" => absent.wins(&request(9)).wait(LAPSE).wins(&Reserve {
                takeover: Takeover::Rerun,
                ..request(1)
            }),
            "lapsed" => absent.wins(&request(1)).wait(LAPSE),
            "unleased" => {
                let mut scene = absent.wins(&request(1)).wait(1_000 * TTL);
                if let Some(record) = &mut scene.record {
                    record.lease_until_us = None;
                }
                scene
            }
            "unknown" => absent.wins(&request(1)).unknown(),
            "released" => absent.wins(&request(1)).released(),
            "completed" => absent.wins(&request(1)).completed("answer"),
            "tombstone" => absent.wins(&request(1)).buried(),
            "released, expired" => Self::of("released").wait(TTL + 1),
            "completed, expired" => Self::of("completed").wait(TTL + 1),
            "tombstone, expired" => Self::of("tombstone").wait(TTL + 1),
            "5 running" => absent.wins(&five),
            "5 completed" => five_completed(),
            "5 expired" => five_completed().wait(TTL + 1),
            "5 tombstone" => absent.wins(&five).buried(),
            "5, 6 running" => five_completed().wins(&six),
            "5, 6 released" => five_completed().wins(&six).released(),
            "5, 6 unknown" => five_completed().wins(&six).unknown(),
            _ => panic!("no scene for the state {state:?}"),
        }
    }
}

pub(crate) fn settlement_of(text: &str) -> Settlement {
    match ending(text) {
        Ending::Answer(answer) => Settlement::Done(answer),
        Ending::Tombstone(_) => Settlement::NotDone,
    }
}

/// Settles as an operator who does not force anything.
pub(crate) fn settle(holder: Holder, settlement: Settlement) -> Settle {
    Settle {
        state: None,
        id: holder.id,
        fence: holder.fence,
        settlement,
        force: false,
        ttl_us: Some(TTL),
        grace_us: GRACE,
        note: Note::new("operator", "test").unwrap(),
    }
}

/// What every write keeps to, whatever it is.
pub(crate) fn sound(before: Option<&Record>, after: &Record, won: bool) {
    if let Some(before) = before {
        assert_eq!(after.id, before.id);
        assert!(after.fence >= before.fence, "a fence decreased");
        assert!(!won || after.fence > before.fence, "two winners of a fence");
        assert!(after.version_applied >= before.version_applied);
    }
    let open = matches!(after.state, State::InProgress | State::Unknown);
    assert!(!open || after.expires_us.is_none(), "it would be forgotten");
    assert!(after.state != State::InProgress || after.lease_until_us.is_some());
    assert!(after.state != State::Completed || after.answer.is_some());
    assert!(after.state != State::Completed || after.reason.is_none());
    assert!(after.state != State::Tombstone || after.answer.is_none());
    assert!(after.takeovers >= 0 && after.attempt >= 0);
}
