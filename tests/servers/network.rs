//! A network that cuts connections or says nothing: one run, and right answers
//! or errors of the store; and after it the same key answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::identity::{Fingerprint, RecordId};
use idem::record::Claim;
use idem::store::{Reserve, Reserved, Takeover};
use idem::{Engine, Error, How, OnUnknown, Outcome, context};
use tokio::time::Instant;

use crate::place::{Server, on_each_server, prefix, until};
use crate::proxy::{Cut, Proxy};

const TTL: Duration = Duration::from_secs(3_600);
const SHORT: Duration = Duration::from_millis(300);

on_each_server! {
    and redis:
    a_cut_at_any_message_of_a_first_call_and_a_replay_is_made_good,
    a_cut_at_any_message_of_a_takeover_is_made_good,
    an_answer_that_breaks_off_is_not_believed,
    an_answer_that_cannot_be_recorded_at_once_is_recorded_later,
    a_silent_server_is_not_waited_for_and_no_body_runs,
    connections_that_hang_do_not_use_the_pool_up,
    a_holder_whose_renewals_hang_is_held_until_its_deadline_and_no_longer,
}

/// Counts the runs of a body.
#[derive(Debug, Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

async fn call(engine: &Engine, key: &str, runs: &Runs) -> (Result<usize, Error>, Outcome) {
    let runs = runs.clone();
    let call = engine.call("network", key, TTL);
    call.on_unknown(OnUnknown::Rerun)
        .run_detailed(async move { Ok(runs.0.fetch_add(1, Ordering::SeqCst)) })
        .await
}

/// Makes a call with each of its messages cut in turn, once on the way there
/// and once on the way back, connecting and preparing included.
async fn cut_everywhere(engine: &Engine, proxy: &Proxy, what: How, prepare: impl AsyncFn(&str)) {
    for way in [Cut::Request, Cut::Reply] {
        for at in 1.. {
            let key = format!("{what:?} {:?}", way(at));
            prepare(&key).await;
            // Makes the call connect again.
            proxy.cut_present();
            proxy.plan(Some(way(at)));
            let runs = Runs::default();
            let (answer, outcome) = call(engine, &key, &runs).await;
            let done = proxy.is_to_cut();
            proxy.plan(None);
            assert_eq!(answer, Ok(0), "{key}");
            assert!(outcome.recorded, "{key}: there was time to tell it again");
            assert_eq!(outcome.how, what, "{key}");
            assert_eq!(runs.count(), usize::from(what == How::Executed), "{key}");
            let (again, outcome) = call(engine, &key, &runs).await;
            assert_eq!((again, outcome.how), (Ok(0), How::Replayed), "{key}");
            if done {
                assert!(at > 2, "{key}: nothing was cut");
                break;
            }
        }
    }
}

async fn a_cut_at_any_message_of_a_first_call_and_a_replay_is_made_good(server: Server) {
    let (proxy, url) = Proxy::of_url(&server.url()).await;
    let builder = server.open(&url, &prefix(), 2).await;
    let engine = builder.build().await.unwrap();
    cut_everywhere(&engine, &proxy, How::Executed, async |_| {}).await;
    cut_everywhere(&engine, &proxy, How::Replayed, async |key| {
        let (answer, _) = call(&engine, key, &Runs::default()).await;
        assert_eq!(answer, Ok(0));
    })
    .await;
}

async fn a_cut_at_any_message_of_a_takeover_is_made_good(server: Server) {
    let (proxy, url) = Proxy::of_url(&server.url()).await;
    let builder = server.open(&url, &prefix(), 2).await;
    let engine = builder.build().await.unwrap();
    cut_everywhere(&engine, &proxy, How::Executed, async |key| {
        let call = engine.call("network", key, TTL);
        let panicked = tokio::spawn(call.run(async {
            assert!(context().is_err(), "the body of the test panics");
            Ok::<usize, Error>(9)
        }));
        assert!(panicked.await.is_err());
    })
    .await;
}

fn reserve() -> Reserve {
    Reserve {
        id: RecordId::from_bytes([7; 32]),
        operation: "network".to_owned(),
        label: None,
        scope: None,
        fingerprint: Fingerprint::from_bytes([1; 32]),
        elements: Vec::new(),
        claim: Claim::from_bytes([2; 16]),
        lease_us: 30_000_000,
        grace_us: 5_000_000,
        takeover: Takeover::Refuse,
        max_takeovers: 5,
        version: None,
    }
}

/// The end of an answer says whether the server could commit.
async fn an_answer_that_breaks_off_is_not_believed(server: Server) {
    let (proxy, url) = Proxy::of_url(&server.url()).await;
    let store = server.store(&url, &prefix(), 2).await;
    let other = Reserve {
        id: RecordId::from_bytes([8; 32]),
        ..reserve()
    };
    // Prepares the statement.
    store.reserve(&other).await.unwrap();
    proxy.plan(Some(Cut::Tail(1, 1)));
    let error = store.reserve(&reserve()).await.unwrap_err();
    assert!(error.is_ambiguous(), "{error}");
    let again = store.reserve(&reserve()).await.unwrap();
    assert!(
        matches!(&again, Reserved::Won(won) if won.resent),
        "{again:?}"
    );
}

async fn an_answer_that_cannot_be_recorded_at_once_is_recorded_later(server: Server) {
    let (proxy, url) = Proxy::of_url(&server.url()).await;
    let proxy = Arc::new(proxy);
    let builder = server.open(&url, &prefix(), 2).await;
    let builder = builder.store_timeout(SHORT).reserve_timeout(SHORT);
    let engine = builder.build().await.unwrap();
    let runs = Runs::default();
    let body = {
        let (proxy, runs) = (Arc::clone(&proxy), runs.clone());
        async move {
            proxy.down();
            Ok::<_, Error>(runs.0.fetch_add(1, Ordering::SeqCst))
        }
    };
    let (answer, outcome) = engine.call("network", "key", TTL).run_detailed(body).await;
    assert_eq!(answer, Ok(0));
    assert!(!outcome.recorded);
    let (refused, _) = call(&engine, "other", &runs).await;
    assert!(matches!(refused, Err(Error::Store(_))), "{refused:?}");
    proxy.open();
    until(|| engine.stats() == idem::Stats::default()).await;
    let (again, outcome) = call(&engine, "key", &runs).await;
    assert_eq!((again, outcome.how), (Ok(0), How::Replayed));
    assert_eq!(runs.count(), 1);
}

async fn a_silent_server_is_not_waited_for_and_no_body_runs(server: Server) {
    let (proxy, url) = Proxy::of_url(&server.url()).await;
    let builder = server.open(&url, &prefix(), 2).await;
    let builder = builder.store_timeout(SHORT / 2).reserve_timeout(SHORT);
    let engine = builder.build().await.unwrap();
    let runs = Runs::default();
    assert_eq!(call(&engine, "warm", &runs).await.0, Ok(0));
    proxy.silence();
    let asked = Instant::now();
    let (answer, _) = call(&engine, "key", &runs).await;
    let took = asked.elapsed();
    let Err(Error::Store(error)) = answer else {
        panic!("there was nobody to answer: {answer:?}");
    };
    assert!(error.is_ambiguous(), "{error}");
    assert!(
        took < SHORT + Duration::from_secs(1),
        "it waited for {took:?}"
    );
    assert_eq!(runs.count(), 1);
    // The reservation arrives now, with nobody there to run; it is given back,
    // long before its lease would lapse.
    proxy.open();
    until(|| engine.stats().attempts == 0).await;
    let runs = Runs::default();
    let (answer, outcome) = loop {
        let (answer, outcome) = call(&engine, "key", &runs).await;
        if !matches!(answer, Err(Error::Store(_))) {
            break (answer, outcome);
        }
    };
    assert_eq!((answer, outcome.how), (Ok(0), How::Executed));
    assert!(asked.elapsed() < Duration::from_secs(20));
}

async fn connections_that_hang_do_not_use_the_pool_up(server: Server) {
    let (proxy, url) = Proxy::of_url(&server.url()).await;
    let builder = server.open(&url, &prefix(), 1).await;
    let engine = builder.store_timeout(SHORT).build().await.unwrap();
    for key in ["one", "two", "three", "four"] {
        let runs = Runs::default();
        assert_eq!(call(&engine, key, &runs).await.0, Ok(0));
        proxy.silence_present();
        let (again, outcome) = call(&engine, key, &runs).await;
        assert_eq!((again, outcome.how), (Ok(0), How::Replayed));
    }
}

async fn a_holder_whose_renewals_hang_is_held_until_its_deadline_and_no_longer(server: Server) {
    const LEASE: Duration = Duration::from_millis(600);
    // A tenth is left out, so that the holder's view ends before the store's.
    const BELIEVED: Duration = Duration::from_millis(540);
    let (proxy, url) = Proxy::of_url(&server.url()).await;
    let proxy = Arc::new(proxy);
    let builder = server.open(&url, &prefix(), 2).await;
    let builder = builder.lease(LEASE).store_timeout(SHORT);
    let engine = builder.build().await.unwrap();
    let body = {
        let proxy = Arc::clone(&proxy);
        async move {
            let context = context()?;
            let held_from = Instant::now();
            context.ensure_held().await?;
            proxy.silence();
            let held_to = Instant::now();
            loop {
                let asked = Instant::now();
                let held = context.ensure_held().await;
                let told = Instant::now();
                if held == Err(Error::Superseded) {
                    assert!(told >= held_from + BELIEVED, "lost before its deadline");
                    break;
                }
                assert!(
                    asked < held_to + BELIEVED,
                    "believed after its deadline: {held:?}"
                );
                assert!(matches!(held, Err(Error::Store(_))), "{held:?}");
            }
            proxy.open();
            Ok::<_, Error>(1)
        }
    };
    let answer = engine.call("network", "key", TTL).run(body).await;
    // Nobody took over: the late holder tells the truth.
    assert_eq!(answer, Ok(1));
}
