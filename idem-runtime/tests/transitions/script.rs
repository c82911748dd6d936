//! Random scripts of events on one key, and what must hold after each.

use std::collections::HashMap;

use idem::TombstoneReason;
use idem::identity::Fingerprint;
use idem::record::{Claim, Record, Recorded, State, VersionBytes};
use idem::store::{
    Complete, Ending, GiveBack, Holder, Lease, Reserve, Reserved, Takeover, Written,
};
use idem::transition::{self, Decision, Settlement};
use proptest::prelude::*;
use proptest::sample::select;

use crate::scene::{
    GRACE, LAPSE, LEASE, SECOND, Scene, TTL, complete, mark, release, request, settle,
    settlement_of, sound, version,
};

/// One step of a script. Attempts are known by how long ago they were won.
#[derive(Debug, Clone)]
enum Step {
    Reserve {
        payload: u8,
        takeover: Takeover,
        version: u8,
        max_takeovers: i32,
    },
    Again(usize),
    Complete(usize, Option<i64>, bool),
    Bury(usize),
    Release(usize, bool),
    MarkUnknown(usize, Option<i64>),
    GiveBack(usize),
    Renew(usize),
    Settle(bool),
    Sweep,
    Advance(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let takeover = select(vec![Takeover::Refuse, Takeover::Rerun, Takeover::Recover]);
    let back = || 0_usize..4;
    prop_oneof![
        8 => (0_u8..2, takeover, 0_u8..5, 0_i32..4).prop_map(
            |(payload, takeover, version, max_takeovers)| Step::Reserve {
                payload, takeover, version, max_takeovers,
            }
        ),
        1 => back().prop_map(Step::Again),
        3 => (back(), select(vec![None, Some(TTL), Some(i64::MAX)]), any::<bool>())
            .prop_map(|(back, ttl, failed)| Step::Complete(back, ttl, failed)),
        1 => back().prop_map(Step::Bury),
        2 => (back(), any::<bool>()).prop_map(|(back, probed)| Step::Release(back, probed)),
        2 => (back(), select(vec![None, Some(SECOND), Some(TTL)]))
            .prop_map(|(back, retry)| Step::MarkUnknown(back, retry)),
        2 => back().prop_map(Step::GiveBack),
        2 => back().prop_map(Step::Renew),
        1 => any::<bool>().prop_map(Step::Settle),
        2 => Just(Step::Sweep),
        // More than a fence can grow by in one step.
        4 => select(vec![1_000, SECOND, LEASE, LAPSE, TTL + 1, 1_000 * TTL]).prop_map(Step::Advance),
    ]
}

/// One key, and everything that anybody was told about it.
struct World {
    scene: Scene,
    ordered: bool,
    requests: Vec<Reserve>,
    holders: Vec<Holder>,
    told: HashMap<i64, Claim>,
    fence: i64,
    /// The highest version whose `Ok` was recorded.
    applied: Option<VersionBytes>,
}

impl World {
    fn new(ordered: bool) -> Self {
        Self {
            scene: Scene::new(),
            ordered,
            requests: Vec::new(),
            holders: Vec::new(),
            told: HashMap::new(),
            fence: 0,
            applied: None,
        }
    }

    fn holder(&self, back: usize) -> Option<Holder> {
        let at = self.holders.len().checked_sub(1 + back)?;
        self.holders.get(at).copied()
    }

    fn expired(&self) -> bool {
        let now_us = self.scene.now_us;
        let record = self.scene.record.as_ref();
        record.is_some_and(|record| record.is_expired(now_us))
    }

    fn go(&mut self, step: &Step) {
        let (current, now_us) = (self.scene.record.as_ref(), self.scene.now_us);
        let decision = match step {
            Step::Advance(us) => {
                self.scene.now_us += us;
                return;
            }
            Step::Sweep => return self.sweep(),
            Step::Reserve {
                payload,
                takeover,
                version: number,
                max_takeovers,
            } => {
                let request = Reserve {
                    fingerprint: Fingerprint::from_bytes([*payload; 32]),
                    takeover: *takeover,
                    max_takeovers: *max_takeovers,
                    version: self.ordered.then(|| version(*number)),
                    ..request(u8::try_from(self.requests.len()).unwrap())
                };
                self.requests.push(request.clone());
                return self.reserve(&request);
            }
            Step::Again(back) => {
                let at = self.requests.len().checked_sub(1 + back);
                if let Some(request) = at.map(|at| self.requests[at].clone()) {
                    self.reserve(&request);
                }
                return;
            }
            Step::Settle(done) => {
                let settlement = if *done {
                    settlement_of("operator")
                } else {
                    Settlement::NotDone
                };
                let holder = Holder {
                    fence: current.map_or(0, |record| record.fence),
                    ..self.scene.holder
                };
                transition::settle(current, &settle(holder, settlement), now_us)
            }
            Step::Complete(back, ..)
            | Step::Bury(back)
            | Step::Release(back, _)
            | Step::MarkUnknown(back, _)
            | Step::GiveBack(back)
            | Step::Renew(back) => {
                let Some(holder) = self.holder(*back) else {
                    return;
                };
                end(current, step, holder, now_us)
            }
        };
        let settles = matches!(step, Step::Settle(_));
        self.write(decision.write, decision.reply == Written::Done, settles);
    }

    fn reserve(&mut self, request: &Reserve) {
        let before = self.scene.record.clone();
        let now_us = self.scene.now_us;
        let decision = transition::reserve(before.as_ref(), request, now_us);
        if let Reserved::Won(won) = &decision.reply {
            let first = *self.told.entry(won.fence).or_insert(request.claim);
            assert_eq!(first, request.claim, "two were told that they won a fence");
            if !won.resent {
                self.may_run(before.as_ref(), request);
                self.holders.push(Holder {
                    id: request.id,
                    claim: request.claim,
                    fence: won.fence,
                });
            }
        }
        if let Reserved::Completed { answer, .. } = &decision.reply {
            let stored = before.as_ref().and_then(|record| record.answer.as_ref());
            assert_eq!(Some(answer), stored);
        }
        let Some(after) = decision.write else {
            return;
        };
        let won = matches!(&decision.reply, Reserved::Won(won) if !won.resent);
        sound(before.as_ref(), &after, won);
        assert!(!won || after.fence > self.fence, "a fence was used twice");
        self.fence = after.fence;
        self.scene.record = Some(after);
    }

    /// Whether a claim may be told, for the first time, to run the body.
    fn may_run(&self, before: Option<&Record>, request: &Reserve) {
        assert!(
            !self.ordered || request.version > self.applied,
            "an older version ran after a newer one was applied"
        );
        let Some(before) = before else {
            return;
        };
        let newer = self.ordered && request.version > before.version_recorded;
        match before.state {
            State::InProgress => {
                assert!(
                    before.is_lapsed(self.scene.now_us, GRACE),
                    "two run at once"
                );
                assert_ne!(request.takeover, Takeover::Refuse);
                assert!(before.takeovers < request.max_takeovers);
            }
            State::Unknown => {
                assert_ne!(request.takeover, Takeover::Refuse);
                assert!(before.takeovers < request.max_takeovers);
            }
            State::Completed | State::Tombstone => {
                assert!(self.expired() || newer, "an answered key ran again");
            }
            State::Released => {}
        }
    }

    /// Takes over what an end, a renewal or an operator wrote.
    fn write(&mut self, after: Option<Record>, done: bool, settles: bool) {
        assert_eq!(
            after.is_some(),
            done,
            "a reply without its write, or a write without"
        );
        let Some(after) = after else {
            return;
        };
        let before = self.scene.record.as_ref();
        sound(before, &after, false);
        let before = before.map(|record| record.state);
        assert_ne!(before, Some(State::Completed), "an answer changed");
        assert!(before != Some(State::Tombstone) || settles);
        assert_ne!(before, Some(State::Released));
        self.fence = after.fence;
        let ok = after.answer.as_ref().is_some_and(|answer| !answer.failed);
        if after.state == State::Completed && ok && after.version_recorded > self.applied {
            self.applied.clone_from(&after.version_recorded);
        }
        self.scene.record = Some(after);
    }

    fn sweep(&mut self) {
        let Some(record) = &self.scene.record else {
            return;
        };
        if record.is_sweepable(self.scene.now_us, 0) {
            assert!(!matches!(record.state, State::InProgress | State::Unknown));
            assert!(record.expires_us.is_some_and(|at| at < self.scene.now_us));
            assert_eq!(
                self.applied, None,
                "what makes late versions stale was swept"
            );
            self.scene.record = None;
        }
    }
}

fn end(current: Option<&Record>, step: &Step, holder: Holder, now_us: i64) -> Decision<Written> {
    match step {
        Step::Complete(_, ttl_us, failed) => {
            let answer = Recorded::new(&holder.id, "json", *failed, Vec::new());
            let request = Complete {
                holder,
                ending: Ending::Answer(answer),
                ttl_us: *ttl_us,
            };
            transition::complete(current, &request, now_us)
        }
        Step::Bury(_) => {
            let ending = Ending::Tombstone(TombstoneReason::TooLarge);
            transition::complete(current, &complete(holder, ending), now_us)
        }
        Step::Release(_, probed) => transition::release(current, &release(holder, *probed), now_us),
        Step::MarkUnknown(_, retry) => {
            transition::mark_unknown(current, &mark(holder, *retry), now_us)
        }
        Step::GiveBack(_) => {
            let request = GiveBack {
                id: holder.id,
                claim: holder.claim,
                ttl_us: Some(TTL),
            };
            transition::give_back(current, &request, now_us)
        }
        _ => {
            let lease = Lease {
                holder,
                lease_us: LEASE,
            };
            let decision = transition::renew(current, &lease, now_us);
            Decision {
                reply: if decision.reply {
                    Written::Done
                } else {
                    Written::Superseded
                },
                write: decision.write,
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(1_000)
    })]

    #[test]
    fn no_script_breaks_a_promise(
        ordered in any::<bool>(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut world = World::new(ordered);
        for step in &steps {
            world.go(step);
        }
    }
}
