//! Records from code: pages, ages, counts, and a record by its first digits.

use std::time::Duration;

use idem::admin::{Filter, Found, Settled};
use idem::identity::Fingerprint;
use idem::record::{Claim, Standing};
use idem::store::{MemoryStore, Reserve, SqliteStore, Store as _, Takeover};
use idem::testing::{CrashPoint, ManualClock, Testbed};
use idem::{Engine, Error, RecordId};
use tokio::sync::oneshot;

use crate::faulty::Faulty;
use crate::records::{Answer, Refused, misuse, pay};
use crate::{DAY, engine};

#[tokio::test]
async fn pages_are_in_the_order_of_ids_and_complete() {
    let t = Testbed::new().await;
    let call = |order: u32| t.engine().call("records.many", &order, DAY);
    for order in 0..25 {
        call(order).run(async { Answer::Ok(1) }).await.unwrap();
    }
    t.scope(pay(1, 1)).await.unwrap();
    let admin = t.engine().admin().unwrap();
    let mut filter = Filter::new(Standing::Completed);
    filter.operation = Some("records.many".to_owned());
    filter.limit = 10;
    let mut ids: Vec<RecordId> = Vec::new();
    let mut lengths = Vec::new();
    loop {
        let page = admin.list(&filter).await.unwrap();
        assert!(page.records.iter().all(|record| record.answer.is_none()));
        ids.extend(page.records.iter().map(|record| record.id));
        lengths.push(page.records.len());
        filter.after = page.next;
        if page.next.is_none() {
            break;
        }
    }
    assert_eq!(lengths, [10, 10, 5]);
    assert!(ids.is_sorted());
    let expected = (0..25).map(|order| {
        let record = t.engine().record("records.many").key(&order);
        record.id().unwrap()
    });
    let mut expected: Vec<_> = expected.collect();
    expected.sort();
    assert_eq!(ids, expected);
    for standing in [Standing::Unknown, Standing::Lapsed, Standing::Released] {
        let page = admin.list(&Filter::new(standing)).await.unwrap();
        assert_eq!((page.records.len(), page.next), (0, None));
    }
    let counts = admin.counts(true).await.unwrap();
    assert_eq!((counts.unknown, counts.finished), (0, Some(26)));
    assert_eq!(admin.counts(false).await.unwrap().finished, None);
}

#[tokio::test]
async fn age_is_counted_from_what_fits_the_standing_and_pages_are_filled() {
    let t = Testbed::new().await;
    let hour = Duration::from_secs(3_600);
    let call = |order: u32, error: Option<Refused>| {
        let call = t.engine().call("records.old", &order, DAY * 9);
        let call = call.on_error(idem::on_error::Unknown);
        call.run(async move { error.map_or(Answer::Ok(1), Err) })
    };
    let fails = || Some(Refused::Declined(String::new()));
    // In turn: an old answer, a new unknown one, and the other way round.
    for order in 0..30 {
        drop(call(order, (order % 2 == 0).then(fails).flatten()).await);
    }
    t.clock().advance(hour * 2);
    for order in 30..60 {
        drop(call(order, (order % 2 == 0).then(fails).flatten()).await);
    }
    let admin = t.engine().admin().unwrap();
    for standing in [Standing::Unknown, Standing::Completed] {
        let mut filter = Filter::new(standing);
        filter.limit = 4;
        let mut found = Vec::new();
        filter.older_than = Some(hour);
        loop {
            let page = admin.list(&filter).await.unwrap();
            let is_last = page.next.is_none();
            assert!(page.records.len() == 4 || is_last, "a full page");
            found.extend(page.records);
            filter.after = page.next;
            if is_last {
                break;
            }
        }
        assert_eq!(found.len(), 15, "{standing:?}");
        let ids: Vec<_> = found.iter().map(|record| record.id).collect();
        assert!(ids.is_sorted());
    }
    // Attempts: since they were reserved.
    t.crash_at("records.charge", CrashPoint::InBody);
    t.scope(pay(1, 1)).await.unwrap_err();
    t.lapse();
    let lapsed = async |age| {
        let mut filter = Filter::new(Standing::Lapsed);
        filter.older_than = Some(age);
        admin.list(&filter).await.unwrap().records.len()
    };
    assert_eq!(lapsed(Duration::from_secs(30)).await, 1);
    assert_eq!(lapsed(Duration::from_secs(60)).await, 0);
}

#[tokio::test]
async fn a_record_is_found_by_its_first_digits() {
    let t = Testbed::new().await;
    let mut ids = Vec::new();
    // So many that some share their first four digits.
    for order in 0..600 {
        let call = t.engine().call("records.find", &order, DAY);
        let (_, outcome) = call.run_detailed(async { Answer::Ok(1) }).await;
        ids.push(outcome.record.unwrap());
    }
    let admin = t.engine().admin().unwrap();
    let begins = |digits: &str| {
        let mut found: Vec<_> = ids
            .iter()
            .copied()
            .filter(|id| id.to_hex().starts_with(digits))
            .collect();
        found.sort();
        found
    };
    let mut several = 0;
    for id in &ids {
        let digits = &id.to_hex()[..4];
        match admin.find(digits).await.unwrap() {
            Found::One(seen) => assert_eq!(begins(digits), [seen.record.id]),
            Found::Many(found) => {
                assert_eq!(found, begins(digits));
                several += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(several > 0);
    let one = ids[0];
    for digits in [one.to_string(), one.to_hex(), one.to_hex().to_uppercase()] {
        match admin.find(&digits).await.unwrap() {
            Found::One(seen) => {
                assert_eq!(seen.record.id, one);
                assert!(seen.record.answer.is_some());
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(admin.find(&"0".repeat(64)).await, Ok(Found::Nothing));
    for wrong in ["", "abc", "wxyz", &"0".repeat(65)] {
        misuse(admin.find(wrong).await);
    }
    // What has expired is found by its whole id only.
    t.clock().advance(DAY * 2);
    assert_eq!(admin.find(&one.to_string()).await, Ok(Found::Nothing));
    assert!(matches!(admin.find(&one.to_hex()).await, Ok(Found::One(_))));
}

#[tokio::test]
async fn at_most_ten_are_told_and_the_first_and_the_last_ids_are_found() {
    let store = MemoryStore::new();
    let engine = engine(store.clone()).await;
    let reserve = async |bytes: [u8; 32]| {
        let request = Reserve {
            id: RecordId::from_bytes(bytes),
            operation: "records.edge".to_owned(),
            label: None,
            scope: None,
            fingerprint: Fingerprint::from_bytes([0; 32]),
            elements: Vec::new(),
            claim: Claim::random().unwrap(),
            lease_us: 30_000_000,
            grace_us: 5_000_000,
            takeover: Takeover::Refuse,
            max_takeovers: 5,
            version: None,
        };
        store.reserve(&request).await.unwrap();
    };
    for last in (0..12).rev() {
        let mut bytes = [0; 32];
        bytes[31] = last;
        reserve(bytes).await;
    }
    reserve([0xff; 32]).await;
    let admin = engine.admin().unwrap();
    let Found::Many(ids) = admin.find("0000").await.unwrap() else {
        panic!("several");
    };
    let last_bytes: Vec<_> = ids.iter().map(|id| id.as_bytes()[31]).collect();
    assert_eq!(last_bytes, (0..10).collect::<Vec<_>>());
    assert!(matches!(admin.find("ffff").await, Ok(Found::One(_))));
    assert_eq!(admin.find("fffe").await, Ok(Found::Nothing));
}

#[tokio::test]
async fn a_record_is_found_wherever_it_stands() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let engine = Engine::builder(store).lease(DAY).max_run(DAY).build();
    let engine = engine.await.unwrap();
    let (_open, gate) = oneshot::channel::<()>();
    let (start, started) = oneshot::channel();
    let running = tokio::spawn(engine.call("records.stand", &1, DAY).run(async {
        start.send(()).unwrap();
        gate.await.ok();
        Answer::Ok(1)
    }));
    started.await.unwrap();
    let admin = engine.admin().unwrap();
    let find = async |key: u32| {
        let id = engine.record("records.stand").key(&key).id().unwrap();
        match admin.find(&id.to_string()).await.unwrap() {
            Found::One(seen) => seen.record.standing(seen.now_us, 5_000_000),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(find(1).await, Some(Standing::InProgress));
    clock.advance(DAY * 2);
    assert_eq!(find(1).await, Some(Standing::Lapsed));
    let failed = || Refused::Declined(String::new());
    let call = |key: u32| engine.call("records.stand", &key, DAY);
    let unknown = call(2).on_error(idem::on_error::Unknown);
    unknown
        .run(async move { Answer::Err(failed()) })
        .await
        .unwrap_err();
    assert_eq!(find(2).await, Some(Standing::Unknown));
    let released = call(3).on_error(idem::on_error::Release);
    released
        .run(async move { Answer::Err(failed()) })
        .await
        .unwrap_err();
    assert_eq!(find(3).await, Some(Standing::Released));
    running.abort();
}

#[tokio::test]
async fn without_a_list_of_finished_records_they_are_found_by_the_whole_id() {
    let engine = engine(Faulty::default().unlisted()).await;
    let call = |key: u32| engine.call("records.unlisted", &key, DAY);
    call(1).run(async { Answer::Ok(1) }).await.unwrap();
    let failed = Refused::Declined(String::new());
    let doubtful = call(2).on_error(idem::on_error::Unknown);
    let body = async move { Answer::Err(failed) };
    doubtful.run(body).await.unwrap_err();
    let admin = engine.admin().unwrap();
    let id = |key: u32| engine.record("records.unlisted").key(&key).id().unwrap();
    let found = admin.find(&id(2).to_string()).await;
    assert!(matches!(found, Ok(Found::One(_))), "{found:?}");
    let short = admin.find(&id(1).to_string()).await;
    assert_eq!(short, Ok(Found::Nothing));
    let whole = admin.find(&id(1).to_hex()).await;
    assert!(matches!(whole, Ok(Found::One(_))), "{whole:?}");
    let listed = admin.list(&Filter::new(Standing::Completed)).await;
    assert!(matches!(listed, Err(Error::Store(_))));
}
#[tokio::test]
async fn a_file_tells_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("records.db"));
    let engine = engine(store.await.unwrap()).await;
    for key in 0..25 {
        let failed = Refused::Declined(String::new());
        let call = engine.call("records.file", &key, DAY);
        let call = call.on_error(idem::on_error::Unknown);
        call.run(async move { Answer::Err(failed) })
            .await
            .unwrap_err();
    }
    let admin = engine.admin().unwrap();
    let mut filter = Filter::new(Standing::Unknown);
    filter.limit = 10;
    let mut ids = Vec::new();
    loop {
        let page = admin.list(&filter).await.unwrap();
        ids.extend(page.records.iter().map(|record| record.id));
        filter.after = page.next;
        if page.next.is_none() {
            break;
        }
    }
    assert!(ids.len() == 25 && ids.is_sorted());
    filter.older_than = Some(DAY);
    assert_eq!(admin.list(&filter).await.unwrap().records, []);
    for (at, id) in ids.into_iter().enumerate() {
        let Ok(Found::One(seen)) = admin.find(&id.to_string()).await else {
            panic!("it is there");
        };
        assert_eq!(seen.record.id, id);
        let record = admin.record(id).seen(seen.record.fence, seen.record.state);
        let settled = match at % 3 {
            0 => record.resolve(Answer::Ok(7), "ada", "charged").await,
            1 => record.release("ada", "not sent").await,
            _ => record.forget("ada", "a test").await,
        };
        assert_eq!(settled, Ok(Settled::Done));
        assert_eq!(record.release("ada", "late").await, Ok(Settled::Changed));
        assert_eq!(record.audit().await.unwrap().len(), 1);
    }
    let counts = admin.counts(true).await.unwrap();
    assert_eq!((counts.unknown, counts.finished), (0, Some(25)));
}
