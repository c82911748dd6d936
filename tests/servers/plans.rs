//! How much a Postgres server reads for a call, whatever it knew of its table when
//! it planned.

use std::time::Duration;

use idem::store::PostgresStore;
use idem::{Engine, Error};
use tokio::task::JoinSet;

use crate::place::{Server, prefix};
use crate::session::Session;

const CALLERS: i64 = 40;
const KEYS: i64 = 60;
const CALLS: i64 = CALLERS * KEYS;
const TTL: Duration = Duration::from_secs(3_600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_of_a_table_that_was_never_analyzed_reads_a_few_rows_a_call() {
    let read = rows_read_a_call(&[]).await;
    assert!(read <= MOST, "{read}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_of_a_table_that_is_known_to_be_empty_reads_a_few_rows_a_call() {
    let read = rows_read_a_call(&["vacuum analyze"]).await;
    assert!(read <= MOST, "{read}");
}

/// Of table and indexes, of versions that are dead too.
const MOST: i64 = 8;

/// Fills an empty table by many callers at once, while nothing tells the server
/// how large it has become, and counts what was read for it.
async fn rows_read_a_call(told: &[&str]) -> i64 {
    let (url, prefix) = (Server::Postgres.url(), prefix());
    let store = PostgresStore::options().prefix(&*prefix).connections(8);
    let store = store.connect(&url).await.unwrap();
    store.migrate().await.unwrap();
    let mut session = Session::open(&url).await;
    let records = format!("{prefix}records");
    let still = format!("alter table {records} set (autovacuum_enabled = off)");
    session.run(&still).await;
    for tell in told {
        session.run(&format!("{tell} {records}")).await;
    }

    let engine = Engine::builder(store).build().await.unwrap();
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let engine = engine.clone();
        callers.spawn(async move {
            for key in 0..KEYS {
                let call = engine.call("plans", &(caller, key), TTL);
                let answer = call.run(async { Ok::<_, Error>(1) }).await;
                assert_eq!(answer, Ok(1));
            }
        });
    }
    while let Some(called) = callers.join_next().await {
        called.unwrap();
    }
    // A session tells what it has read at its end, at the latest.
    engine.shutdown(Duration::from_secs(10)).await.unwrap();
    drop(engine);
    let of = format!("where schemaname = current_schema() and relname = '{records}'");
    let written = format!("select n_tup_upd from pg_stat_user_tables {of}");
    session.until(&written, CALLS).await;
    let rows = format!("select seq_tup_read + idx_tup_fetch from pg_stat_user_tables {of}");
    let entries = format!("select sum(idx_tup_read)::bigint from pg_stat_user_indexes {of}");
    let (rows, entries) = (session.number(&rows).await, session.number(&entries).await);
    println!("{rows} rows and {entries} entries of indexes for {CALLS} calls");
    (rows + entries) / CALLS
}
