//! One key, everybody who wants it, and everything under way between them.

use std::hash::{Hash, Hasher};

use idem::record::{Claim, Record};
use idem::store::Takeover;

use crate::judge::{Passed, Seen};

pub(crate) const LEASE: i64 = 10;
pub(crate) const GRACE: i64 = 5;
pub(crate) const TTL: i64 = 40;
/// What a holder believes of its lease: it ends before the store's.
pub(crate) const BELIEVED: i64 = 9;
pub(crate) const START: i64 = 1_000;
pub(crate) const MAX_TAKEOVERS: i32 = 1;

/// A claim's number: each question of each caller to the store has its own.
pub(crate) type Number = u8;

pub(crate) fn claim(number: Number) -> Claim {
    Claim::from_bytes([number; 16])
}

/// The row, with a hash over what decisions depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row(pub(crate) Option<Record>);

impl Hash for Row {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Some(record) = &self.0 else {
            return 0_u8.hash(state);
        };
        (record.state, record.fence, record.claim).hash(state);
        (record.takeovers, record.doubt, record.reason).hash(state);
        (
            record.lease_until_us,
            record.expires_us,
            record.not_before_us,
        )
            .hash(state);
        let answer = record.answer.as_ref().map(|answer| &answer.bytes);
        answer.hash(state);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) now: i64,
    pub(crate) row: Row,
    pub(crate) callers: Vec<Caller>,
    /// Requests that the server has not executed, in no order: each may come at
    /// any time from now on, or never.
    pub(crate) net: Vec<Message>,
    pub(crate) farewells: Vec<Farewell>,
    pub(crate) left: Left,
    pub(crate) seen: Seen,
    pub(crate) passed: Passed,
}

/// What bounds the exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    pub(crate) ticks: u8,
    pub(crate) resends: u8,
    /// Requests that come after their sender has stopped listening.
    pub(crate) late: u8,
    pub(crate) crashes: u8,
    pub(crate) renewals: u8,
    pub(crate) drops: u8,
    pub(crate) failures: u8,
}

/// One process with one call after the other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Caller {
    pub(crate) takeover: Policy,
    /// How many calls it still makes.
    pub(crate) calls: u8,
    /// How often it has asked the store.
    pub(crate) asked: u8,
    pub(crate) phase: Phase,
}

/// `on_unknown`, with a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Policy {
    Refuse,
    Rerun,
    Recover,
}

impl Policy {
    pub(crate) fn takeover(self) -> Takeover {
        match self {
            Self::Refuse => Takeover::Refuse,
            Self::Rerun => Takeover::Rerun,
            Self::Recover => Takeover::Recover,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Idle,
    Asking(Asking),
    /// Won; nothing of the body was polled.
    Reserved(Hold),
    Probing(Hold),
    Running {
        hold: Hold,
        effect: bool,
    },
    /// The body has ended, and the store is told how.
    Telling {
        hold: Hold,
        end: End,
        tries: u8,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Asking {
    pub(crate) claim: Number,
    /// When it was sent last, and how often: only that try is listened to.
    pub(crate) sent: i64,
    pub(crate) tries: u8,
    /// Reads what superseded its caller, and never runs.
    pub(crate) reading: bool,
    /// The good news, on its way.
    pub(crate) inbox: Option<Won>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Won {
    pub(crate) fence: i64,
    pub(crate) doubt: bool,
}

/// A won reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Hold {
    pub(crate) claim: Number,
    pub(crate) fence: i64,
    pub(crate) doubt: bool,
    pub(crate) probed: bool,
}

/// How a body ended. An answer is known by the claim whose effect it tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum End {
    Complete(Number),
    Release,
    Unknown,
    Undecided,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Message {
    pub(crate) from: usize,
    pub(crate) claim: Number,
    pub(crate) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum What {
    Reserve {
        tries: u8,
        reading: bool,
    },
    End {
        tries: u8,
        fence: i64,
        probed: bool,
        end: End,
    },
}

/// A reservation to give back, said by the renewal thread of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Farewell {
    pub(crate) from: usize,
    pub(crate) claim: Number,
    pub(crate) confirmed: bool,
    pub(crate) until: i64,
}

impl World {
    pub(crate) fn new(policies: &[Policy], calls: u8, left: Left) -> Self {
        let caller = |takeover: &Policy| Caller {
            takeover: *takeover,
            calls,
            asked: 0,
            phase: Phase::Idle,
        };
        Self {
            now: START,
            row: Row(None),
            callers: policies.iter().map(caller).collect(),
            net: Vec::new(),
            farewells: Vec::new(),
            left,
            seen: Seen::default(),
            passed: Passed::default(),
        }
    }

    /// Whether the body of this claim may run, now or later.
    pub(crate) fn may_run(&self, claim: Number) -> bool {
        self.callers.iter().any(|caller| match &caller.phase {
            Phase::Asking(asking) => asking.claim == claim && !asking.reading,
            Phase::Reserved(hold) | Phase::Probing(hold) | Phase::Running { hold, .. } => {
                hold.claim == claim
            }
            Phase::Idle | Phase::Telling { .. } => false,
        })
    }

    /// Whether the sender of this request still waits for its reply.
    pub(crate) fn is_awaited(&self, message: &Message) -> bool {
        match (&self.callers[message.from].phase, message.what) {
            (Phase::Asking(asking), What::Reserve { tries, .. }) => {
                (asking.claim, asking.tries) == (message.claim, tries)
            }
            (Phase::Telling { hold, tries, .. }, What::End { tries: of, .. }) => {
                (hold.claim, *tries) == (message.claim, of)
            }
            _ => false,
        }
    }

    /// The next moment at which somebody could see a difference.
    pub(crate) fn next_moment(&self) -> Option<i64> {
        let mut moments = Vec::new();
        if let Some(record) = &self.row.0 {
            if let Some(until) = record.lease_until_us {
                moments.extend([until + 1, until + GRACE + 1]);
            }
            if let Some(until) = record.expires_us {
                moments.extend([until + 1, until + GRACE + 1]);
            }
            moments.extend(record.not_before_us);
        }
        moments.extend(self.farewells.iter().map(|farewell| farewell.until));
        moments.extend(
            self.callers
                .iter()
                .filter_map(|caller| match &caller.phase {
                    Phase::Asking(asking) => Some(asking.sent + BELIEVED),
                    _ => None,
                }),
        );
        moments.into_iter().filter(|at| *at > self.now).min()
    }
}
