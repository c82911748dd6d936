//! The store: executes what arrives, one atomic step at a time, as the rules
//! say. The rules are `idem::transition`'s, or a broken copy of one of them.

use idem::UnknownReason;
use idem::identity::{Fingerprint, RecordId};
use idem::record::{Record, Recorded, State};
use idem::store::{
    Complete, Ending, GiveBack, Holder, Lease, MarkUnknown, Release, Reserve, Reserved, Takeover,
    Written,
};
use idem::transition::{self, Decision};

use crate::judge::{Landmark, Promise};
use crate::world::{
    End, Farewell, GRACE, LEASE, MAX_TAKEOVERS, Message, Number, Phase, Row, TTL, What, Won, World,
    claim,
};

type Rule<Q, A> = fn(Option<&Record>, &Q, i64) -> Decision<A>;

#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) reserve: Rule<Reserve, Reserved>,
    pub(crate) complete: Rule<Complete, Written>,
    pub(crate) release: Rule<Release, Written>,
    pub(crate) mark_unknown: Rule<MarkUnknown, Written>,
    pub(crate) give_back: Rule<GiveBack, Written>,
    pub(crate) renew: Rule<Lease, bool>,
    pub(crate) sweepable: fn(&Record, i64, i64) -> bool,
    /// Broken callers: these run a body whose reservation got no answer.
    pub(crate) fail_open: bool,
}

pub(crate) const RULES: Rules = Rules {
    reserve: transition::reserve,
    complete: transition::complete,
    release: transition::release,
    mark_unknown: transition::mark_unknown,
    give_back: transition::give_back,
    renew: transition::renew,
    sweepable: Record::is_sweepable,
    fail_open: false,
};

const ID: RecordId = RecordId::from_bytes([7; 32]);

fn request(number: Number, takeover: Takeover) -> Reserve {
    Reserve {
        id: ID,
        operation: String::new(),
        label: None,
        scope: None,
        fingerprint: Fingerprint::from_bytes([1; 32]),
        elements: Vec::new(),
        claim: claim(number),
        lease_us: LEASE,
        grace_us: GRACE,
        takeover,
        max_takeovers: MAX_TAKEOVERS,
        version: None,
    }
}

fn holder(number: Number, fence: i64) -> Holder {
    Holder {
        id: ID,
        claim: claim(number),
        fence,
    }
}

impl World {
    fn state(&self) -> Option<State> {
        self.row.0.as_ref().map(|record| record.state)
    }

    fn write<A>(&mut self, decision: Decision<A>) -> A {
        if decision.write.is_some() {
            self.row = Row(decision.write);
        }
        decision.reply
    }

    /// Executes a request, now or long after it was sent.
    pub(crate) fn execute(&mut self, rules: &Rules, message: Message) {
        match message.what {
            What::Reserve { tries, reading } => self.reserve(rules, message, tries, reading),
            What::End { .. } => self.end(rules, message),
        }
    }

    fn reserve(&mut self, rules: &Rules, message: Message, tries: u8, reading: bool) {
        let takeover = if reading {
            Takeover::Refuse
        } else {
            self.callers[message.from].takeover.takeover()
        };
        let request = request(message.claim, takeover);
        let before = self.row.clone();
        let decision = (rules.reserve)(before.0.as_ref(), &request, self.now);
        let reserved = self.write(decision);
        self.judge_reserved(message.from, message.claim, before.0.as_ref(), &reserved);
        if let Phase::Asking(asking) = &mut self.callers[message.from].phase
            && (asking.claim, asking.tries) == (message.claim, tries)
        {
            match reserved {
                Reserved::Won(won) => {
                    asking.inbox = Some(Won {
                        fence: won.fence,
                        doubt: won.doubt,
                    });
                }
                _ => self.lost(message.from),
            }
        }
    }

    fn end(&mut self, rules: &Rules, message: Message) {
        let What::End {
            tries,
            fence,
            probed,
            end,
        } = message.what
        else {
            return;
        };
        let (before, number) = (self.state(), message.claim);
        let holder = holder(number, fence);
        let (current, now) = (self.row.0.as_ref(), self.now);
        let retry = (end == End::Undecided).then_some(LEASE);
        let decision = match end {
            End::Complete(value) => {
                let request = Complete {
                    holder,
                    ending: Ending::Answer(answer(value)),
                    ttl_us: Some(TTL),
                };
                (rules.complete)(current, &request, now)
            }
            End::Release => {
                let request = Release {
                    holder,
                    ttl_us: Some(TTL),
                    probed,
                };
                (rules.release)(current, &request, now)
            }
            End::Unknown | End::Undecided => {
                let request = MarkUnknown {
                    holder,
                    reason: UnknownReason::Failed,
                    undecided_retry_us: retry,
                };
                (rules.mark_unknown)(current, &request, now)
            }
        };
        let written = self.write(decision);
        match end {
            End::Complete(value) => self.judge_completed(number, fence, value, before, written),
            _ => self.judge_ended(number, before, retry),
        }
        if let Phase::Telling {
            hold, tries: last, ..
        } = &self.callers[message.from].phase
            && (hold.claim, *last) == (number, tries)
        {
            self.told(message.from, written, end);
        }
    }

    pub(crate) fn renew(&mut self, rules: &Rules, number: Number, fence: i64) -> bool {
        let request = Lease {
            holder: holder(number, fence),
            lease_us: LEASE,
        };
        let before = self.state();
        let decision = (rules.renew)(self.row.0.as_ref(), &request, self.now);
        let held = self.write(decision);
        self.judge_ended(number, before, None);
        if held {
            self.extend(number);
        }
        held
    }

    pub(crate) fn give_back(&mut self, rules: &Rules, farewell: Farewell) -> Written {
        let request = GiveBack {
            id: ID,
            claim: claim(farewell.claim),
            ttl_us: Some(TTL),
        };
        let before = self.state();
        let decision = (rules.give_back)(self.row.0.as_ref(), &request, self.now);
        let written = self.write(decision);
        if written == Written::Done {
            self.passes(Landmark::GivenBack);
        }
        self.judge_ended(farewell.claim, before, None);
        written
    }

    pub(crate) fn is_sweepable(&self, rules: &Rules) -> bool {
        let record = self.row.0.as_ref();
        record.is_some_and(|record| (rules.sweepable)(record, self.now, GRACE))
    }

    pub(crate) fn sweep(&mut self) {
        if let Some(record) = self.row.0.take() {
            self.judge_swept(&record);
        }
    }

    /// What a later caller gets if every process dies now and everything under
    /// way is lost.
    pub(crate) fn judge_aftermath(&mut self, rules: &Rules) {
        const MUCH_LATER: i64 = 1_000_000;
        let ask = |takeover| {
            let request = request(Number::MAX, takeover);
            (rules.reserve)(self.row.0.as_ref(), &request, self.now + MUCH_LATER).reply
        };
        let refused = matches!(
            ask(Takeover::Refuse),
            Reserved::Won(_) | Reserved::Unknown { .. }
        );
        let others = [Takeover::Rerun, Takeover::Recover].map(ask);
        let taken = others.iter().all(|reserved| {
            let exhausted = matches!(
                reserved,
                Reserved::Unknown {
                    exhausted: true,
                    ..
                }
            );
            exhausted || matches!(reserved, Reserved::Won(_))
        });
        if !refused || !taken {
            self.breaks(Promise::NeverStuck);
        }
    }
}

fn answer(value: Number) -> Recorded {
    Recorded {
        codec: String::new(),
        failed: false,
        bytes: vec![value],
        digest: [0; 32],
    }
}
