//! Records from code, sweeping and reconciling, on each server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::admin::{Filter, Found, Settled};
use idem::record::Standing;
use idem::{Engine, Error, Recovered};

use crate::place::{Server, on_each_server, prefix};

const DAY: Duration = Duration::from_secs(86_400);

on_each_server! { and redis: found_and_settled, asked_about_once }

async fn doubtful(engine: &Engine, order: u32) {
    let failed = Error::Failed {
        message: "no answer".to_owned(),
    };
    let call = engine.call("records.charge", &order, DAY);
    let call = call.payload(&(order, "EUR")).label(&order);
    let body = async move { Err::<u32, _>(failed) };
    call.on_error(idem::on_error::Unknown)
        .run(body)
        .await
        .unwrap_err();
}

async fn charge(engine: &Engine, order: u32) -> Result<u32, Error> {
    let call = engine.call("records.charge", &order, DAY);
    call.payload(&(order, "EUR")).run(async { Ok(0) }).await
}

async fn found_and_settled(server: Server) {
    let engine = server.open(&server.url(), &prefix(), 4).await;
    let engine = engine.build().await.unwrap();
    for order in 0..12 {
        doubtful(&engine, order).await;
    }
    let admin = engine.admin().unwrap();
    let mut filter = Filter::new(Standing::Unknown);
    filter.operation = Some("records.charge".to_owned());
    filter.limit = 5;
    let mut ids = Vec::new();
    loop {
        let page = admin.list(&filter).await.unwrap();
        ids.extend(page.records.iter().map(|record| record.id));
        filter.after = page.next;
        if page.next.is_none() {
            break;
        }
    }
    assert!(ids.len() == 12 && ids.is_sorted(), "{server:?}");
    for order in 0..12 {
        let record = engine.record("records.charge").key(&order);
        let digits = record.id().unwrap().to_string();
        let Ok(Found::One(seen)) = admin.find(&digits).await else {
            panic!("{server:?}: it is there");
        };
        let record = record.seen(seen.record.fence, seen.record.state);
        let (settled, answer) = match order % 3 {
            0 => {
                let answer = Ok::<_, Error>(7_u32);
                (record.resolve(answer, "ada", "charged").await, 7)
            }
            1 => (record.release("ada", "not sent").await, 0),
            _ => (record.forget("ada", "a test").await, 0),
        };
        assert_eq!(settled, Ok(Settled::Done), "{server:?}");
        let late = record.release("ada", "late").await;
        assert_eq!(late, Ok(Settled::Changed), "{server:?}");
        assert_eq!(record.audit().await.unwrap().len(), 1, "{server:?}");
        assert_eq!(charge(&engine, order).await, Ok(answer), "{server:?}");
    }
    let counts = admin.counts(false).await.unwrap();
    assert_eq!(counts.unknown, 0, "{server:?}");
}

async fn asked_about_once(server: Server) {
    let prefix = prefix();
    let open = async || {
        let engine = server.open(&server.url(), &prefix, 4).await;
        engine.build().await.unwrap()
    };
    let (one, two) = (open().await, open().await);
    for order in 0..20 {
        doubtful(&one, order).await;
    }
    let probes = AtomicUsize::new(0);
    let probe = async |unknown: idem::admin::Unknown| {
        probes.fetch_add(1, Ordering::SeqCst);
        let order: u32 = unknown.label().unwrap().parse().unwrap();
        Ok::<_, Error>(match order % 4 {
            0 => Recovered::NotDone,
            1 => Recovered::Unknown,
            _ => Recovered::Done(order),
        })
    };
    let (first, second) = tokio::join!(
        one.reconcile("records.charge", probe).run(),
        two.reconcile("records.charge", probe).run()
    );
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(probes.load(Ordering::SeqCst), 20, "{first:?} {second:?}");
    assert_eq!(first.done + second.done, 10, "{server:?}");
    assert_eq!(first.not_done + second.not_done, 5, "{server:?}");
    assert_eq!(first.unknown + second.unknown, 5, "{server:?}");
    for order in 0..20 {
        let answer = charge(&two, order).await;
        let audit = two.record("records.charge").key(&order).audit().await;
        match order % 4 {
            0 => assert_eq!(answer, Ok(0), "{server:?}"),
            1 => assert!(answer.unwrap_err().is_unknown_outcome(), "{server:?}"),
            _ => assert_eq!(answer, Ok(order), "{server:?}"),
        }
        let kept = usize::from(order % 4 != 1);
        assert_eq!(audit.unwrap().len(), kept, "{server:?}");
    }
}
