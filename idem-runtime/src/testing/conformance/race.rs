//! One winner, however many ask at once.

use super::Boxed;
use super::bench::{Bench, GRACE, LAPSE, LEASE, TTL, done, in_progress, text, unknown, version};
use crate::record::UnknownReason;
use crate::store::{
    Complete, Ending, Holder, Lease, Release, Reserve, Reserved, Store, Sweep, Takeover, Won,
    Written,
};
use crate::sync::Arc;

super::topic!("race":
    one_of_many_wins_a_fresh_key,
    one_of_many_wins_a_released_key,
    one_of_many_wins_an_expired_key,
    one_of_many_takes_over_a_lapsed_attempt,
    one_of_many_takes_over_an_unknown_outcome,
    one_of_many_takes_over_while_others_refuse,
    one_of_many_applies_a_newer_version,
    one_request_sent_many_times_is_one_attempt,
    everybody_wins_a_key_of_their_own,
    a_late_answer_and_a_takeover_do_not_both_happen,
    a_late_renewal_and_a_takeover_do_not_both_happen,
    a_release_lets_one_of_many_run,
    an_answer_sent_many_times_is_recorded_once,
    a_sweep_does_not_delete_a_winner,
);

/// More than a machine has cores, few enough for a slow disk.
pub(super) const CALLERS: usize = 16;
pub(super) const ROUNDS: u8 = 6;

/// Runs all at once, over several connections to the same records.
pub(super) async fn at_once<T: Send + 'static>(
    b: &Bench,
    jobs: Vec<impl FnOnce(Arc<dyn Store>) -> Boxed<'static, T> + Send + 'static>,
) -> Vec<T> {
    let stores = [Arc::clone(&b.store), b.another().await, b.another().await];
    let start = Arc::new(tokio::sync::Barrier::new(jobs.len()));
    let mut tasks = Vec::new();
    for (number, job) in jobs.into_iter().enumerate() {
        let start = Arc::clone(&start);
        let store = Arc::clone(&stores[number % stores.len()]);
        tasks.push(tokio::spawn(async move {
            start.wait().await;
            job(store).await
        }));
    }
    let mut answers = Vec::new();
    for task in tasks {
        match task.await {
            Ok(answer) => answers.push(answer),
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        }
    }
    answers
}

pub(super) fn asks(
    request: Reserve,
) -> impl FnOnce(Arc<dyn Store>) -> Boxed<'static, Reserved> + Send {
    move |store| Box::pin(async move { done(store.reserve(&request).await) })
}

/// Sends `CALLERS` requests at once and returns the one that won, and what the
/// others were told.
async fn race(
    b: &Bench,
    mut request: impl FnMut(usize) -> Reserve,
) -> (Holder, Won, Vec<Reserved>) {
    let requests: Vec<_> = (0..CALLERS).map(&mut request).collect();
    let jobs = requests.iter().cloned().map(asks).collect();
    let mut winners = Vec::new();
    let mut others = Vec::new();
    for (request, reply) in requests.iter().zip(at_once(b, jobs).await) {
        match reply {
            Reserved::Won(won) => {
                let holder = Holder {
                    id: request.id,
                    claim: request.claim,
                    fence: won.fence,
                };
                winners.push((holder, won));
            }
            other => others.push(other),
        }
    }
    assert_eq!(
        winners.len(),
        1,
        "exactly one may run the body; winners: {winners:?}; the others: {others:?}"
    );
    let (holder, won) = winners.remove(0);
    assert!(!won.resent);
    (holder, won, others)
}

fn all_wait(others: &[Reserved]) {
    let expected = in_progress(LEASE + GRACE);
    for other in others {
        assert_eq!(*other, expected, "who does not win sees who did");
    }
}

async fn one_of_many_wins_a_fresh_key(b: &Bench) {
    for key in 0..ROUNDS {
        let (holder, won, others) = race(b, |_| b.request(key)).await;
        assert_eq!(won.attempt, 1);
        all_wait(&others);
        assert_eq!(b.answer(holder, &text(key, "a")).await, Written::Done);
    }
}

async fn one_of_many_wins_a_released_key(b: &Bench) {
    for key in 0..ROUNDS {
        let first = b.take(key).await;
        assert_eq!(b.release(first.holder).await, Written::Done);
        let (_, won, others) = race(b, |_| b.request(key)).await;
        assert_eq!(won.attempt, 2);
        all_wait(&others);
    }
}

async fn one_of_many_wins_an_expired_key(b: &Bench) {
    for key in 0..ROUNDS {
        let old = b.answered(key, &text(key, "a")).await;
        b.advance(TTL + 1);
        let (_, won, others) = race(b, |_| b.request(key)).await;
        assert_eq!(won.attempt, 1);
        assert!(won.fence > old.won.fence);
        all_wait(&others);
    }
}

async fn one_of_many_takes_over_a_lapsed_attempt(b: &Bench) {
    for key in 0..ROUNDS {
        let old = b.take(key).await;
        b.advance(LAPSE);
        let (holder, won, others) = race(b, |_| b.rerun(key)).await;
        assert_eq!(won.attempt, 2, "one takeover, one attempt more");
        assert!(won.doubt && won.fence > old.won.fence);
        all_wait(&others);
        let late = b.answer(old.holder, &text(key, "old")).await;
        assert_eq!(late, Written::Superseded);
        assert_eq!(b.answer(holder, &text(key, "a")).await, Written::Done);
    }
}

async fn one_of_many_takes_over_an_unknown_outcome(b: &Bench) {
    for key in 0..ROUNDS {
        let old = b.take(key).await;
        let reason = UnknownReason::Panicked;
        assert_eq!(b.mark_unknown(old.holder, reason).await, Written::Done);
        let takeovers = [Takeover::Rerun, Takeover::Recover];
        let (_, won, others) = race(b, |number| Reserve {
            takeover: takeovers[number % 2],
            ..b.request(key)
        })
        .await;
        assert_eq!(won.attempt, 2);
        all_wait(&others);
    }
}

async fn one_of_many_takes_over_while_others_refuse(b: &Bench) {
    for key in 0..ROUNDS {
        b.take(key).await;
        b.advance(LAPSE);
        let takeovers = [Takeover::Rerun, Takeover::Refuse];
        let (_, won, others) = race(b, |number| Reserve {
            takeover: takeovers[number % 2],
            ..b.request(key)
        })
        .await;
        assert_eq!(won.attempt, 2);
        let (wait, refused) = (in_progress(LEASE + GRACE), unknown(UnknownReason::Lapsed));
        assert!(
            others
                .iter()
                .all(|other| *other == wait || *other == refused)
        );
        assert_eq!(b.look(key).await, wait);
    }
}

async fn one_of_many_applies_a_newer_version(b: &Bench) {
    for key in 0..ROUNDS {
        let first = b.win(&b.versioned(key, 1)).await;
        assert_eq!(b.answer(first.holder, &text(key, "1")).await, Written::Done);
        let (holder, _, others) = race(b, |_| b.versioned(key, 2)).await;
        all_wait(&others);
        assert_eq!(b.answer(holder, &text(key, "2")).await, Written::Done);
        let reply = b.reserve(&b.versioned(key, 1)).await;
        assert!(
            matches!(&reply, Reserved::Stale { recorded, .. } if *recorded == version(2)),
            "{reply:?}"
        );
    }
}

async fn one_request_sent_many_times_is_one_attempt(b: &Bench) {
    for key in 0..ROUNDS {
        let request = b.request(key);
        let jobs = (0..CALLERS).map(|_| asks(request.clone())).collect();
        let mut first = 0;
        let mut fences = Vec::new();
        for reply in at_once(b, jobs).await {
            let Reserved::Won(won) = reply else {
                assert!(matches!(reply, Reserved::Won(_)), "it is theirs: {reply:?}");
                continue;
            };
            first += usize::from(!won.resent);
            assert_eq!(won.attempt, 1);
            fences.push(won.fence);
        }
        assert_eq!(first, 1, "one was the first");
        fences.dedup();
        assert_eq!(fences.len(), 1, "one attempt has one fence");
    }
}

async fn everybody_wins_a_key_of_their_own(b: &Bench) {
    let requests: Vec<_> = (0..64).map(|key| b.request(key)).collect();
    let jobs = requests.iter().cloned().map(asks).collect();
    for reply in at_once(b, jobs).await {
        assert!(matches!(reply, Reserved::Won(won) if won.attempt == 1));
    }
}

/// What a holder and its would-be successors were told.
enum Told {
    Holder(bool),
    Caller(Reserved),
}

type Job = Box<dyn FnOnce(Arc<dyn Store>) -> Boxed<'static, Told> + Send>;

/// Lets a holder do something while others try to take over.
async fn against_takers(b: &Bench, key: u8, holder: Job) -> (bool, Vec<Reserved>) {
    let mut jobs: Vec<Job> = vec![holder];
    for _ in 1..CALLERS {
        let ask = asks(b.rerun(key));
        jobs.push(Box::new(move |store| {
            Box::pin(async move { Told::Caller(ask(store).await) })
        }));
    }
    // The holder is not always the first.
    jobs.rotate_left(usize::from(key) % CALLERS);
    let mut held = false;
    let mut replies = Vec::new();
    for told in at_once(b, jobs).await {
        match told {
            Told::Holder(done) => held = done,
            Told::Caller(reply) => replies.push(reply),
        }
    }
    (held, replies)
}

fn winners(replies: &[Reserved]) -> usize {
    let won = |reply: &&Reserved| matches!(reply, Reserved::Won(_));
    replies.iter().filter(won).count()
}

async fn a_late_answer_and_a_takeover_do_not_both_happen(b: &Bench) {
    for key in 0..2 * ROUNDS {
        let old = b.take(key).await;
        b.advance(LAPSE);
        let request = Complete {
            holder: old.holder,
            ending: Ending::Answer(text(key, "late")),
            ttl_us: None,
        };
        let job: Job = Box::new(move |store| {
            Box::pin(
                async move { Told::Holder(done(store.complete(&request).await) == Written::Done) },
            )
        });
        let (recorded, replies) = against_takers(b, key, job).await;
        assert_eq!(
            winners(&replies),
            usize::from(!recorded),
            "either the answer is recorded or one takes over: {replies:?}"
        );
    }
}

async fn a_late_renewal_and_a_takeover_do_not_both_happen(b: &Bench) {
    for key in 0..2 * ROUNDS {
        let old = b.take(key).await;
        b.advance(LAPSE);
        let lease = Lease {
            holder: old.holder,
            lease_us: LEASE,
        };
        let job: Job = Box::new(move |store| {
            Box::pin(async move {
                let mut renewer = done(store.renewer().await);
                Told::Holder(done(renewer.renew(&[lease]).await) == [true])
            })
        });
        let (renewed, replies) = against_takers(b, key, job).await;
        assert_eq!(
            winners(&replies),
            usize::from(!renewed),
            "either the lease is renewed or one takes over: {replies:?}"
        );
    }
}

async fn a_release_lets_one_of_many_run(b: &Bench) {
    for key in 0..ROUNDS {
        let old = b.take(key).await;
        let request = Release {
            holder: old.holder,
            ttl_us: Some(TTL),
            probed: false,
        };
        let job: Job = Box::new(move |store| {
            Box::pin(
                async move { Told::Holder(done(store.release(&request).await) == Written::Done) },
            )
        });
        let (released, replies) = against_takers(b, key, job).await;
        assert!(released, "it was the holder's to release");
        assert!(winners(&replies) <= 1, "two run after one release");
        let after = b.reserve(&b.request(key)).await;
        assert_eq!(winners(&replies) + winners(&[after]), 1);
    }
}

async fn an_answer_sent_many_times_is_recorded_once(b: &Bench) {
    for key in 0..ROUNDS {
        let attempt = b.take(key).await;
        let mut jobs = Vec::new();
        for number in 0..CALLERS {
            let request = Complete {
                holder: attempt.holder,
                ending: Ending::Answer(text(key, &number.to_string())),
                ttl_us: None,
            };
            jobs.push(
                move |store: Arc<dyn Store>| -> Boxed<'static, (usize, Written)> {
                    Box::pin(async move { (number, done(store.complete(&request).await)) })
                },
            );
        }
        let mut recorded = Vec::new();
        for (number, written) in at_once(b, jobs).await {
            match written {
                Written::Done => recorded.push(number),
                other => assert_eq!(other, Written::AlreadyDone),
            }
        }
        assert_eq!(recorded.len(), 1, "one of them was the first");
        let reply = b.look(key).await;
        let first = text(key, &recorded[0].to_string());
        assert!(matches!(reply, Reserved::Completed { answer, .. } if answer == first));
    }
}

async fn a_sweep_does_not_delete_a_winner(b: &Bench) {
    for key in 0..2 * ROUNDS {
        b.answered(key, &text(key, "old")).await;
        b.advance(TTL + 1);
        let mut jobs: Vec<Job> = Vec::new();
        for _ in 0..4 {
            jobs.push(Box::new(|store| {
                Box::pin(async move {
                    let sweep = Sweep {
                        limit: 10,
                        grace_us: 0,
                    };
                    Told::Holder(done(store.sweep(&sweep).await) > 0)
                })
            }));
        }
        let requests: Vec<_> = (0..8).map(|_| b.request(key)).collect();
        for request in requests.iter().cloned() {
            let ask = asks(request);
            jobs.push(Box::new(move |store| {
                Box::pin(async move { Told::Caller(ask(store).await) })
            }));
        }
        let mut replies = Vec::new();
        for told in at_once(b, jobs).await {
            if let Told::Caller(reply) = told {
                replies.push(reply);
            }
        }
        assert_eq!(winners(&replies), 1, "{replies:?}");
        for (request, reply) in requests.iter().zip(replies) {
            if let Reserved::Won(won) = reply {
                let holder = Holder {
                    id: request.id,
                    claim: request.claim,
                    fence: won.fence,
                };
                let written = b.answer(holder, &text(key, "new")).await;
                assert_eq!(written, Written::Done, "a running attempt was swept");
            }
        }
    }
}
