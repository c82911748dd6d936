//! The side for operators.

use std::sync::Arc;
use std::time::Duration;

use idem::identity::RecordId;
use idem::record::{Note, Standing};
use idem::sqlx::{self, Connection as _};
use idem::store::{Count, Holder, Scan, Settle, SqliteStore, Store as _, StoreAdmin as _, Written};
use idem::transition::Settlement;

use super::{File, GRACE, LAPSE, SECOND, meta, request, win};

fn scan(standing: Standing) -> Scan {
    Scan {
        standing,
        operation: None,
        grace_us: GRACE,
        after: None,
        limit: 10,
    }
}

fn not_done(holder: Holder) -> Settle {
    Settle {
        state: None,
        id: holder.id,
        fence: holder.fence,
        settlement: Settlement::NotDone,
        force: true,
        ttl_us: None,
        grace_us: GRACE,
        note: Note::new("ops", "looked at the gateway").unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_of_version_1_is_upgraded_by_eight_at_once_and_keeps_its_records() {
    let file = File::new();
    std::fs::File::create(&file.path).unwrap();
    let mut conn = file.raw().await;
    let records = include_str!("../../../idem-runtime/migrations/sqlite/0001_records.sql");
    for sql in [
        "CREATE TABLE idem_schema (version INTEGER NOT NULL PRIMARY KEY, applied_us INTEGER NOT NULL);
         INSERT INTO idem_schema VALUES (1, 0)",
        records,
        "INSERT INTO idem_records (id, operation, payload_digest, payload_elements, state, fence,
           attempt, claim, takeovers, doubt, started_us, since_us, reason)
         VALUES (unhex(replace(hex(zeroblob(32)), '00', '01')), 'shop.charge', zeroblob(32), x'',
           4, 7, 1, zeroblob(16), 0, 0, 5, 6, 2)",
    ] {
        sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
    }
    conn.close().await.unwrap();

    let start = Arc::new(tokio::sync::Barrier::new(8));
    let mut opened = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (path, start) = (file.path.clone(), Arc::clone(&start));
        opened.spawn(async move {
            start.wait().await;
            let store = SqliteStore::open(path).await.unwrap();
            store.scan(&scan(Standing::Unknown)).await.unwrap().records
        });
    }
    for records in opened.join_all().await {
        let [record] = &records[..] else {
            panic!("expected one record, got {records:?}");
        };
        assert_eq!(record.id, RecordId::from_bytes([1; 32]));
        assert_eq!(
            (record.fence, record.started_us, record.since_us),
            (7, 5, Some(6))
        );
    }
    let versions: Vec<i64> = sqlx::query_scalar("SELECT version FROM idem_schema")
        .fetch_all(&mut file.raw().await)
        .await
        .unwrap();
    assert_eq!(versions, [1, 2, 3]);
}

#[tokio::test]
async fn a_change_that_cannot_be_audited_is_not_made() {
    let file = File::new();
    let store = file.open().await;
    let (holder, _) = win(&store, &request(1, 1)).await;
    let before = store.get(&holder.id).await.unwrap();
    file.execute(
        "CREATE TRIGGER full BEFORE INSERT ON idem_audit
         BEGIN SELECT RAISE(ABORT, 'full'); END",
    )
    .await;
    assert!(store.settle(&not_done(holder)).await.is_err());
    assert_eq!(store.get(&holder.id).await.unwrap(), before);
    file.execute("DROP TRIGGER full").await;
    assert_eq!(store.settle(&not_done(holder)).await, Ok(Written::Done));
    assert_eq!(store.audit(&holder.id).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_attempt_without_a_lease_is_shown_as_unknown_and_settled() {
    let file = File::new();
    let store = file.open().await;
    let (holder, _) = win(&store, &request(1, 1)).await;
    file.execute("UPDATE idem_records SET lease_until_us = NULL")
        .await;
    for (standing, shown) in [
        (Standing::Unknown, 1),
        (Standing::InProgress, 0),
        (Standing::Lapsed, 0),
    ] {
        let page = store.scan(&scan(standing)).await.unwrap();
        assert_eq!(page.records.len(), shown, "{standing:?}");
    }
    let request = Count {
        grace_us: GRACE,
        finished: false,
    };
    let counts = store.count(&request).await.unwrap();
    assert_eq!(
        (counts.in_progress, counts.lapsed, counts.unknown),
        (0, 0, 1)
    );
    assert_eq!(counts.oldest_started_us, None);
    let unforced = Settle {
        force: false,
        ..not_done(holder)
    };
    assert_eq!(store.settle(&unforced).await, Ok(Written::Done));
}

#[tokio::test]
async fn operators_see_no_time_before_what_is_stored() {
    let file = File::new();
    let store = file.open().await;
    store.pin(&meta(1)).await.unwrap();
    win(&store, &request(1, 1)).await;
    let other = file.open().await;
    file.clock.advance(LAPSE);
    file.clock.advance(Duration::from_secs(2));
    // Of another process, which stores the time.
    win(&other, &request(2, 2)).await;
    file.clock.step(-60 * SECOND);
    let page = store.scan(&scan(Standing::Lapsed)).await.unwrap();
    assert_eq!(page.records.len(), 1, "it had lapsed, and still has");
    let seen = store.get(&page.records[0].id).await.unwrap().unwrap();
    assert_eq!(seen.now_us, page.now_us);
}
