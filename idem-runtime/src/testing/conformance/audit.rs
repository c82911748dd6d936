//! What was changed by hand is told for ever, once.

use super::Boxed;
use super::bench::{Bench, GRACE, LAPSE, SECOND, TTL, done, id, text};
use super::race::{CALLERS, ROUNDS, asks, at_once};
use super::settle::{by_hand, forced, note};
use crate::record::{Note, State};
use crate::store::{Audited, Capability, Complete, Ending, Reserved, Settle, Store, Written};
use crate::sync::Arc;
use crate::transition::Settlement;

super::topic!("admin" needs Admin:
    an_entry_says_what_was_changed_by_whom_and_why,
    entries_come_in_the_order_of_the_changes,
    what_was_refused_is_in_no_audit,
    a_record_has_its_own_audit,
    notes_come_back_as_they_were_given,
    one_of_many_settles_a_doubt,
    settling_and_a_takeover_do_not_both_happen,
    settling_and_a_late_answer_do_not_both_happen,
);

super::topic!(
    SWEPT,
    "admin",
    &[Capability::Admin, Capability::Sweep],
    an_audit_outlives_its_record,
);

impl Bench {
    async fn audit(&self, key: u8) -> Vec<Audited> {
        done(self.admin().audit(&id(key)).await)
    }
}

async fn an_entry_says_what_was_changed_by_whom_and_why(b: &Bench) {
    let attempt = b.doubtful(1).await;
    b.advance(SECOND);
    let request = by_hand(1, attempt.won.fence, Settlement::Done(text(1, "a")));
    assert_eq!(b.settle(&request).await, Written::Done);
    let expected = Audited {
        at_us: b.see(1).await.now_us,
        was: State::Unknown,
        fence: attempt.won.fence,
        became: 1,
        forced: false,
        note: request.note,
    };
    b.advance(SECOND);
    assert_eq!(b.audit(1).await, [expected]);
    let live = b.take(2).await;
    let request = forced(by_hand(2, live.won.fence, Settlement::NotDone));
    assert_eq!(b.settle(&request).await, Written::Done);
    let entry = b.audit(2).await.remove(0);
    assert_eq!(
        (entry.was, entry.became, entry.forced),
        (State::InProgress, 2, true)
    );
}

async fn entries_come_in_the_order_of_the_changes(b: &Bench) {
    let mut expected = Vec::new();
    for number in 0..12_u8 {
        let live = b.take(1).await;
        let settlement = if number % 2 == 0 {
            Settlement::NotDone
        } else {
            Settlement::Forgotten
        };
        let request = Settle {
            note: note("ops", &number.to_string()),
            ..forced(by_hand(1, live.won.fence, settlement))
        };
        assert_eq!(b.settle(&request).await, Written::Done);
        expected.push((live.won.fence, request.settlement.code(), request.note));
    }
    let told = b.audit(1).await.into_iter();
    let told: Vec<_> = told.map(|e| (e.fence, e.became, e.note)).collect();
    assert_eq!(told, expected, "all within one microsecond of the clock");
}

async fn what_was_refused_is_in_no_audit(b: &Bench) {
    let live = b.take(1).await;
    let request = by_hand(1, live.won.fence, Settlement::NotDone);
    assert_eq!(b.settle(&request).await, Written::Superseded);
    let other = forced(by_hand(1, live.won.fence + 1, Settlement::NotDone));
    assert_eq!(b.settle(&other).await, Written::Superseded);
    let absent = by_hand(2, live.won.fence, Settlement::NotDone);
    assert_eq!(b.settle(&absent).await, Written::Gone);
    let recorded = b.answered(3, &text(3, "a")).await;
    let recorded = by_hand(3, recorded.won.fence, Settlement::NotDone);
    assert_eq!(b.settle(&recorded).await, Written::Superseded);
    for key in 1..=3 {
        assert_eq!(b.audit(key).await, [], "key {key}");
    }
    b.advance(LAPSE);
    assert_eq!(b.settle(&request).await, Written::Done);
    assert_eq!(b.settle(&request).await, Written::Superseded);
    assert_eq!(b.audit(1).await.len(), 1);
}

async fn a_record_has_its_own_audit(b: &Bench) {
    for key in 1..=3 {
        let doubt = b.doubtful(key).await;
        let request = Settle {
            note: note("ops", &key.to_string()),
            ..by_hand(key, doubt.won.fence, Settlement::Forgotten)
        };
        assert_eq!(b.settle(&request).await, Written::Done);
    }
    for key in 1..=3 {
        let notes: Vec<_> = b.audit(key).await.into_iter().map(|e| e.note).collect();
        assert_eq!(notes, [note("ops", &key.to_string())]);
    }
    assert_eq!(b.audit(4).await, []);
}

async fn notes_come_back_as_they_were_given(b: &Bench) {
    let texts = [
        "it's \"done\", said `she`; -- DROP TABLE x; /* \\' %s {audit} $1 ?1 :a */",
        "before\0after",
        "🧾 größe 字 \u{202e}drow\u{301}",
        "two\nlines\twith\r\ntabs",
        &"x".repeat(Note::MAX_WHY),
        &"é".repeat(Note::MAX_WHY / 2),
        &"🧦".repeat(Note::MAX_WHY),
        &"\0".repeat(Note::MAX_WHY),
        // What is cut off here leaves a space at the end.
        &format!("{} and more", "x".repeat(Note::MAX_BY - 1)),
        &format!("{} and more", "x".repeat(Note::MAX_WHY - 1)),
    ];
    for text in texts {
        let live = b.take(1).await;
        let request = Settle {
            note: note(text, text),
            ..forced(by_hand(1, live.won.fence, Settlement::NotDone))
        };
        assert_eq!(b.settle(&request).await, Written::Done);
    }
    let told: Vec<_> = b.audit(1).await.into_iter().map(|e| e.note).collect();
    assert_eq!(told, texts.map(|text| note(text, text)));
}

fn settles(
    request: Settle,
) -> impl FnOnce(Arc<dyn Store>) -> Boxed<'static, Option<Written>> + Send {
    move |store| {
        Box::pin(async move {
            let admin = store.admin()?;
            Some(done(admin.settle(&request).await))
        })
    }
}

async fn one_of_many_settles_a_doubt(b: &Bench) {
    for key in 0..ROUNDS {
        let doubt = b.doubtful(key).await;
        let request = |number: usize| Settle {
            note: note("ops", &number.to_string()),
            ..by_hand(
                key,
                doubt.won.fence,
                Settlement::Done(text(key, &number.to_string())),
            )
        };
        let jobs = (0..CALLERS)
            .map(|number| settles(request(number)))
            .collect();
        let replies = at_once(b, jobs).await;
        let of = |reply| {
            let all = replies.iter().enumerate();
            all.filter(|(_, told)| **told == Some(reply))
                .map(|(number, _)| number)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(Written::Superseded).len(), CALLERS - 1, "{replies:?}");
        let first = of(Written::Done)[0].to_string();
        let told: Vec<_> = b.audit(key).await.into_iter().map(|e| e.note).collect();
        assert_eq!(
            told,
            [note("ops", &first)],
            "the entry is the one that was done"
        );
        let reply = b.look(key).await;
        let answer = text(key, &first);
        assert!(matches!(reply, Reserved::Completed { answer: a, .. } if a == answer));
    }
}

/// What one who settles, a late holder and callers were told.
enum Told {
    Settled(bool),
    Held(bool),
    Took(bool),
}

type Job = Box<dyn FnOnce(Arc<dyn Store>) -> Boxed<'static, Told> + Send>;

fn one_who_settles(request: Settle) -> Job {
    let settle = settles(request);
    Box::new(move |store| {
        Box::pin(async move { Told::Settled(settle(store).await == Some(Written::Done)) })
    })
}

async fn settling_and_a_takeover_do_not_both_happen(b: &Bench) {
    for key in 0..2 * ROUNDS {
        let old = b.take(key).await;
        b.advance(LAPSE);
        let answer = text(key, "by hand");
        let request = by_hand(key, old.won.fence, Settlement::Done(answer));
        let mut jobs = vec![one_who_settles(request)];
        for _ in 1..CALLERS {
            let ask = asks(b.rerun(key));
            jobs.push(Box::new(move |store| {
                Box::pin(async move { Told::Took(matches!(ask(store).await, Reserved::Won(_))) })
            }));
        }
        jobs.rotate_left(usize::from(key) % CALLERS);
        let mut settled = 0;
        let mut taken = 0;
        for told in at_once(b, jobs).await {
            match told {
                Told::Settled(done) => settled += usize::from(done),
                Told::Took(won) | Told::Held(won) => taken += usize::from(won),
            }
        }
        assert_eq!(settled + taken, 1, "settled {settled}, taken over {taken}");
        assert_eq!(b.audit(key).await.len(), settled);
    }
}

async fn settling_and_a_late_answer_do_not_both_happen(b: &Bench) {
    for key in 0..2 * ROUNDS {
        let old = b.take(key).await;
        b.advance(LAPSE);
        let request = by_hand(key, old.won.fence, Settlement::NotDone);
        let mut jobs = vec![one_who_settles(request)];
        let late = Complete {
            holder: old.holder,
            ending: Ending::Answer(text(key, "late")),
            ttl_us: None,
        };
        jobs.push(Box::new(move |store| {
            Box::pin(async move { Told::Held(done(store.complete(&late).await) == Written::Done) })
        }));
        jobs.rotate_left(usize::from(key) % 2);
        let mut settled = false;
        let mut recorded = false;
        for told in at_once(b, jobs).await {
            match told {
                Told::Settled(done) => settled = done,
                Told::Held(done) | Told::Took(done) => recorded = done,
            }
        }
        assert_ne!(settled, recorded, "one of them, and not the other");
        assert_eq!(b.audit(key).await.len(), usize::from(settled));
        let next = b.reserve(&b.request(key)).await;
        assert_eq!(settled, matches!(next, Reserved::Won(_)), "{next:?}");
    }
}

async fn an_audit_outlives_its_record(b: &Bench) {
    let doubt = b.doubtful(1).await;
    let request = by_hand(1, doubt.won.fence, Settlement::Done(text(1, "a")));
    assert_eq!(b.settle(&request).await, Written::Done);
    let audit = b.audit(1).await;
    b.advance(TTL + GRACE);
    assert_eq!(b.sweep().await, 1);
    assert_eq!(done(b.admin().get(&id(1)).await), None);
    assert_eq!(b.audit(1).await, audit);
    b.advance(SECOND);
    let again = b.doubtful(1).await;
    let request = by_hand(1, again.won.fence, Settlement::Forgotten);
    assert_eq!(b.settle(&request).await, Written::Done);
    assert_eq!(b.sweep().await, 1);
    let all = b.audit(1).await;
    assert_eq!((all.len(), &all[..1]), (2, &audit[..]));
}
