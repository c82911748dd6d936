//! What callers do, step by step, as the engine does it.

use idem::store::Written;

use crate::judge::Landmark;
use crate::server::Rules;
use crate::world::{
    Asking, BELIEVED, End, Farewell, GRACE, Hold, LEASE, Message, Number, Phase, Policy, What,
    World,
};

/// A step that somebody may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Time goes on to the next moment that matters.
    Tick,
    Call(usize),
    /// No reply yet: the same claim again.
    Resend(usize),
    /// Any request under way is executed.
    Execute(Message),
    /// The reply "won" arrives; others are of no use to delay.
    Deliver(usize),
    /// The reservation stays unconfirmed, or its caller has gone.
    GiveUp(usize),
    /// The probe is polled.
    Begin(usize),
    Probe(usize, Probe),
    /// The body is polled, and has its effect.
    Effect(usize),
    /// The body returns its answer; it has had its effect.
    Return(usize),
    /// The body declares that nothing happened.
    Release(usize),
    Panic(usize),
    Renew(usize),
    SayGoodbye(Farewell),
    /// It is executed, and the reply is lost.
    SayGoodbyeUnheard(Farewell),
    Crash(usize),
    Sweep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Probe {
    Done,
    NotDone,
    Undecided,
}

impl World {
    pub(crate) fn possible(&self, rules: &Rules, actions: &mut Vec<Action>) {
        let left = &self.left;
        if left.ticks > 0 && self.next_moment().is_some() {
            actions.push(Action::Tick);
        }
        for (i, caller) in self.callers.iter().enumerate() {
            self.possible_for(i, &caller.phase, rules, actions);
            if left.crashes > 0 && caller.phase != Phase::Idle {
                actions.push(Action::Crash(i));
            }
        }
        let mut last = None;
        for message in &self.net {
            if last != Some(message) {
                actions.push(Action::Execute(*message));
            }
            last = Some(message);
        }
        for farewell in &self.farewells {
            actions.push(Action::SayGoodbye(*farewell));
            if left.resends > 0 {
                actions.push(Action::SayGoodbyeUnheard(*farewell));
            }
        }
        if self.is_sweepable(rules) {
            actions.push(Action::Sweep);
        }
    }

    fn possible_for(&self, i: usize, phase: &Phase, rules: &Rules, actions: &mut Vec<Action>) {
        let left = &self.left;
        match phase {
            Phase::Idle if self.callers[i].calls > 0 && self.is_next(i) => {
                actions.push(Action::Call(i));
            }
            Phase::Idle => {}
            Phase::Asking(asking) => {
                if left.resends > 0 {
                    actions.push(Action::Resend(i));
                }
                if asking.inbox.is_some() {
                    actions.push(Action::Deliver(i));
                } else if left.drops > 0 {
                    actions.push(Action::GiveUp(i));
                }
                if rules.fail_open && asking.inbox.is_none() {
                    actions.push(Action::Effect(i));
                }
            }
            Phase::Reserved(hold) => {
                if self.must_probe(i, *hold) {
                    actions.push(Action::Begin(i));
                } else {
                    self.possible_of_body(i, false, actions);
                }
                if left.drops > 0 {
                    actions.push(Action::GiveUp(i));
                }
            }
            Phase::Probing(_) => {
                if self.seen.effect.is_some() {
                    actions.push(Action::Probe(i, Probe::Done));
                } else {
                    actions.push(Action::Probe(i, Probe::NotDone));
                }
                if left.failures > 0 {
                    actions.push(Action::Probe(i, Probe::Undecided));
                }
            }
            Phase::Running { effect, .. } => self.possible_of_body(i, *effect, actions),
            Phase::Telling { .. } => {
                if left.resends > 0 {
                    actions.push(Action::Resend(i));
                }
            }
        }
        if left.renewals > 0 && self.hold(i).is_some() {
            actions.push(Action::Renew(i));
        }
    }

    fn possible_of_body(&self, i: usize, effect: bool, actions: &mut Vec<Action>) {
        actions.push(if effect {
            Action::Return(i)
        } else {
            Action::Effect(i)
        });
        if self.left.failures > 0 {
            actions.push(Action::Panic(i));
            if !effect {
                actions.push(Action::Release(i));
            }
        }
    }

    /// Callers that are alike come one after the other: another order of them
    /// shows nothing new.
    fn is_next(&self, i: usize) -> bool {
        let policy = self.callers[i].takeover;
        let mut before = self.callers[..i].iter();
        before.all(|caller| caller.takeover != policy || caller.asked > 0)
    }

    fn must_probe(&self, i: usize, hold: Hold) -> bool {
        hold.doubt && self.callers[i].takeover == Policy::Recover
    }

    fn hold(&self, i: usize) -> Option<Hold> {
        match &self.callers[i].phase {
            Phase::Reserved(hold)
            | Phase::Probing(hold)
            | Phase::Running { hold, .. }
            | Phase::Telling { hold, .. } => Some(*hold),
            Phase::Idle | Phase::Asking(_) => None,
        }
    }

    pub(crate) fn take(&mut self, rules: &Rules, action: Action) {
        match action {
            Action::Tick => {
                self.left.ticks -= 1;
                self.now = self.next_moment().unwrap_or(self.now);
            }
            Action::Call(i) => self.ask(i, false),
            Action::Resend(i) => self.resend(i),
            Action::Execute(message) => {
                if !self.is_awaited(&message) {
                    self.left.late -= 1;
                }
                let at = self.net.iter().position(|other| *other == message);
                self.net.remove(at.unwrap());
                self.execute(rules, message);
            }
            Action::Deliver(i) => self.won(rules, i),
            Action::GiveUp(i) => self.give_up(i),
            Action::Begin(i) => {
                self.callers[i].phase = Phase::Probing(self.hold(i).unwrap());
            }
            Action::Probe(i, probe) => self.probe(i, probe),
            Action::Effect(i) => {
                let hold = self.begin(i);
                self.judge_effect(hold.claim);
                self.callers[i].phase = Phase::Running { hold, effect: true };
            }
            Action::Return(i) => {
                let hold = self.hold(i).unwrap();
                self.tell(i, hold, End::Complete(hold.claim));
            }
            Action::Release(i) => {
                self.left.failures -= 1;
                let hold = self.begin(i);
                self.tell(i, hold, End::Release);
            }
            Action::Panic(i) => {
                self.left.failures -= 1;
                let hold = self.begin(i);
                self.tell(i, hold, End::Unknown);
            }
            Action::Renew(i) => {
                self.left.renewals -= 1;
                let hold = self.hold(i).unwrap();
                self.renew(rules, hold.claim, hold.fence);
            }
            Action::SayGoodbye(farewell) => {
                let written = self.give_back(rules, farewell);
                let open =
                    !farewell.confirmed && matches!(written, Written::Gone | Written::Superseded);
                if !open || self.now >= farewell.until {
                    self.farewells.retain(|other| *other != farewell);
                }
            }
            Action::SayGoodbyeUnheard(farewell) => {
                self.left.resends -= 1;
                self.give_back(rules, farewell);
            }
            Action::Crash(i) => {
                self.left.crashes -= 1;
                self.callers[i].phase = Phase::Idle;
                self.callers[i].calls = 0;
                self.farewells.retain(|farewell| farewell.from != i);
            }
            Action::Sweep => self.sweep(),
        }
        if self.left.late == 0 {
            let mut net = std::mem::take(&mut self.net);
            net.retain(|message| self.is_awaited(message));
            self.net = net;
        }
        self.net.sort_unstable();
        self.farewells.sort_unstable();
        self.forget_the_gone();
    }

    fn ask(&mut self, i: usize, reading: bool) {
        if !reading {
            self.callers[i].calls -= 1;
        }
        let asked = &mut self.callers[i].asked;
        *asked += 1;
        let claim = Number::try_from(i).unwrap() * 16 + *asked;
        self.callers[i].phase = Phase::Asking(Asking {
            claim,
            sent: self.now,
            tries: 0,
            reading,
            inbox: None,
        });
        let what = What::Reserve { tries: 0, reading };
        self.send(i, claim, what);
    }

    fn send(&mut self, from: usize, claim: Number, what: What) {
        self.net.push(Message { from, claim, what });
    }

    fn resend(&mut self, i: usize) {
        self.left.resends -= 1;
        let now = self.now;
        let (claim, what) = match &mut self.callers[i].phase {
            Phase::Asking(asking) => {
                asking.tries += 1;
                asking.sent = now;
                asking.inbox = None;
                let (tries, reading) = (asking.tries, asking.reading);
                (asking.claim, What::Reserve { tries, reading })
            }
            Phase::Telling { hold, end, tries } => {
                *tries += 1;
                let what = What::End {
                    tries: *tries,
                    fence: hold.fence,
                    probed: hold.probed,
                    end: *end,
                };
                (hold.claim, what)
            }
            _ => return,
        };
        self.send(i, claim, what);
    }

    fn won(&mut self, rules: &Rules, i: usize) {
        let Phase::Asking(asking) = self.callers[i].phase.clone() else {
            return;
        };
        let Some(won) = asking.inbox else {
            return;
        };
        let hold = Hold {
            claim: asking.claim,
            fence: won.fence,
            doubt: won.doubt,
            probed: false,
        };
        // The reply may have taken longer than the lease.
        let current = self.now < asking.sent + BELIEVED
            || !asking.reading && self.renew(rules, hold.claim, hold.fence);
        if current && !asking.reading {
            self.callers[i].phase = Phase::Reserved(hold);
        } else {
            self.callers[i].phase = Phase::Idle;
            self.farewell(i, asking.claim, true);
        }
    }

    /// Another reply than "won" arrives.
    pub(crate) fn lost(&mut self, i: usize) {
        if let Phase::Asking(asking) = self.callers[i].phase.clone() {
            self.callers[i].phase = Phase::Idle;
            if asking.tries > 0 {
                // An earlier try may land yet.
                self.farewell(i, asking.claim, false);
            }
        }
    }

    /// The store has been told how a body ended.
    pub(crate) fn told(&mut self, i: usize, written: Written, end: End) {
        self.callers[i].phase = Phase::Idle;
        if !written.is_done() && matches!(end, End::Complete(_)) {
            // It gives its caller what is recorded, if anything.
            self.ask(i, true);
        }
    }

    fn give_up(&mut self, i: usize) {
        self.left.drops -= 1;
        match self.callers[i].phase.clone() {
            Phase::Asking(asking) => self.farewell(i, asking.claim, false),
            Phase::Reserved(hold) => self.farewell(i, hold.claim, true),
            _ => {}
        }
        self.callers[i].phase = Phase::Idle;
    }

    fn farewell(&mut self, from: usize, claim: Number, confirmed: bool) {
        let grace = if confirmed { 0 } else { GRACE };
        self.farewells.push(Farewell {
            from,
            claim,
            confirmed,
            until: self.now + LEASE + grace,
        });
    }

    /// The body is polled for the first time, if it was not before.
    fn begin(&mut self, i: usize) -> Hold {
        match self.callers[i].phase.clone() {
            Phase::Reserved(hold) => {
                self.judge_begun(hold.claim, hold.doubt);
                hold
            }
            Phase::Asking(asking) => Hold {
                claim: asking.claim,
                fence: 0,
                doubt: false,
                probed: false,
            },
            _ => self.hold(i).unwrap(),
        }
    }

    fn probe(&mut self, i: usize, probe: Probe) {
        let hold = self.hold(i).unwrap();
        match probe {
            Probe::Done => {
                self.passes(Landmark::Recovered);
                let value = self.seen.effect.unwrap();
                self.tell(i, hold, End::Complete(value));
            }
            Probe::NotDone => {
                self.judge_begun(hold.claim, hold.doubt);
                self.callers[i].phase = Phase::Running {
                    hold: Hold {
                        probed: true,
                        ..hold
                    },
                    effect: false,
                };
            }
            Probe::Undecided => {
                self.left.failures -= 1;
                self.passes(Landmark::Undecided);
                self.tell(i, hold, End::Undecided);
            }
        }
    }

    fn tell(&mut self, i: usize, hold: Hold, end: End) {
        self.callers[i].phase = Phase::Telling {
            hold,
            end,
            tries: 0,
        };
        let what = What::End {
            tries: 0,
            fence: hold.fence,
            probed: hold.probed,
            end,
        };
        self.send(i, hold.claim, what);
    }
}
