//! Random calls, changes by hand and times: no answer is past its TTL or
//! forgotten, as a model of the store says.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::admin::Settled;
use idem::{Engine, Error, OnInProgress};
use proptest::prelude::*;

use super::{builder, manual, timed};
use crate::faulty::Faulty;

const TTL_US: i64 = 1_000_000;
const KEYS: u8 = 3;

#[derive(Debug, Clone)]
enum Step {
    Call { key: u8, payload: u8, engine: usize },
    Forget { key: u8 },
    Wait { us: i64 },
}

fn step() -> impl Strategy<Value = Step> {
    let waits = prop_oneof![
        Just(1),
        Just(TTL_US - 1),
        Just(TTL_US),
        Just(TTL_US / 2),
        1..TTL_US / 4,
    ];
    prop_oneof![
        6 => (0..KEYS, 0..2_u8, 0..2_usize)
            .prop_map(|(key, payload, engine)| Step::Call { key, payload, engine }),
        1 => (0..KEYS).prop_map(|key| Step::Forget { key }),
        2 => waits.prop_map(|us| Step::Wait { us }),
    ]
}

async fn call(engine: &Engine, key: u8, payload: u8, run: usize) -> Result<usize, Error> {
    let ttl = Duration::from_micros(TTL_US.try_into().unwrap());
    let call = engine.call("model", &key, ttl).payload(&payload);
    call.run(async move { Ok(run) }).await
}

/// Recorded: payload, answer, and the last moment of its TTL.
type Model = HashMap<u8, (u8, usize, i64)>;

async fn follows_the_model(steps: Vec<Step>, age_us: i64) {
    let (clock, store) = manual();
    let store = Faulty::behind(store);
    let age = Duration::from_micros(age_us.try_into().unwrap());
    let cached = builder(store.clone()).cache_for(age).clock(clock.clone());
    let engines = [
        cached.build().await.unwrap(),
        // Its answers come to the first one through the store.
        Engine::builder(store.clone())
            .clock(clock.clone())
            .build()
            .await
            .unwrap(),
    ];
    let (mut model, mut now_us, mut runs) = (Model::new(), 0, 0);
    for step in steps {
        match step {
            Step::Wait { us } => {
                now_us += us;
                clock.step(us);
            }
            Step::Forget { key } => {
                let recorded = model
                    .remove(&key)
                    .is_some_and(|(.., until)| now_us <= until);
                let record = engines[0].record("model").key(&key);
                let settled = record.forget("ada", "a test").await.unwrap();
                assert_eq!(settled == Settled::Done, recorded);
            }
            Step::Call {
                key,
                payload,
                engine,
            } => {
                let recorded = model.get(&key).copied();
                let recorded = recorded.filter(|(.., until)| now_us <= *until);
                let answer = call(&engines[engine], key, payload, runs).await;
                match recorded {
                    Some((of, answered, _)) if of == payload => assert_eq!(answer, Ok(answered)),
                    Some(_) => assert!(answer.unwrap_err().is_mismatch()),
                    None => {
                        assert_eq!(answer, Ok(runs));
                        model.insert(key, (payload, runs, now_us + TTL_US));
                        runs += 1;
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn answers_are_those_of_the_model(
        steps in proptest::collection::vec(step(), 1..60),
        age_us in prop_oneof![Just(TTL_US / 3), Just(TTL_US), Just(10 * TTL_US)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(follows_the_model(steps, age_us));
    }
}

/// Callers and a forgetter at once: who begins after a forget has ended never
/// gets an answer of a run from before it began.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn at_once_nobody_gets_an_answer_that_was_forgotten_before_it_asked() {
    const CALLS: usize = 3_000;
    let (clock, store) = manual();
    let store = Faulty::behind(store);
    let engine = timed(store.clone(), clock).await;
    let runs = Arc::new(AtomicUsize::new(0));
    // The runs that are known to be forgotten, by key.
    let floors: Arc<[AtomicUsize; KEYS as usize]> = Arc::default();
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..8_usize {
        let (engine, runs) = (engine.clone(), Arc::clone(&runs));
        let floors = Arc::clone(&floors);
        callers.spawn(async move {
            for number in 0..CALLS {
                let key = (caller + number) % usize::from(KEYS);
                let floor = floors[key].load(Ordering::SeqCst);
                let runs = Arc::clone(&runs);
                let call = engine.call("at-once", &key, crate::DAY);
                let body = async move { Ok::<_, Error>(runs.fetch_add(1, Ordering::SeqCst) + 1) };
                // Who joins a flight gets what was asked for before it came.
                let call = call.on_in_progress(OnInProgress::Reject);
                let answer = match call.run(body).await {
                    Err(Error::InProgress { .. }) => continue,
                    answer => answer.unwrap(),
                };
                assert!(answer > floor, "{answer} was forgotten: {floor}");
                if number % 16 == caller {
                    let floor = floors[key].load(Ordering::SeqCst);
                    let begun = answer.max(floor);
                    let record = engine.record("at-once").key(&key);
                    if record.forget("ada", "a test").await.unwrap() == Settled::Done {
                        floors[key].fetch_max(begun, Ordering::SeqCst);
                    }
                }
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
    let (asked, calls) = (store.reserves(), 8 * CALLS);
    assert!(
        asked < calls - calls / 8,
        "{asked} of {calls} asked the store"
    );
    assert!(runs.load(Ordering::SeqCst) > 500);
}
