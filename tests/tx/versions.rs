//! Versions of one key, applied in their caller's transaction.

use std::sync::Arc;

use idem::record::VersionBytes;
use idem::transaction::TxConnection;
use idem::{Error, How, idempotent, observe};

use crate::operation::{Act, Failure, Order, execute};
use crate::world::{Kind, World};

#[idempotent(
    name = "tx.apply",
    key = order.key,
    version = version,
    payload = version,
    ttl = "1h",
    engine = order.engine,
    tx = conn
)]
pub(crate) async fn apply<C: TxConnection>(
    conn: &mut C,
    order: &Order,
    version: u64,
) -> Result<u64, Failure> {
    body(conn, order, version).await
}

/// The same, but an `Err` is an answer too.
#[idempotent(
    name = "tx.apply_or_record",
    key = order.key,
    version = version,
    payload = version,
    ttl = "1h",
    engine = order.engine,
    on_error = store_text,
    tx = conn
)]
pub(crate) async fn apply_or_record<C: TxConnection>(
    conn: &mut C,
    order: &Order,
    version: u64,
) -> Result<u64, Failure> {
    body(conn, order, version).await
}

async fn body<C: TxConnection>(conn: &mut C, order: &Order, version: u64) -> Result<u64, Failure> {
    let row = format!("insert into {} values ('v{version}')", order.table);
    execute(&mut conn.session(), &row).await;
    match order.act {
        Act::Decline => Err(Failure::Declined),
        _ => Ok(version),
    }
}

/// One version in a transaction of its own, which is committed if it may be.
async fn committed(world: &World, version: u64) -> (Result<u64, Failure>, Option<How>) {
    let mut tx = world.begin().await;
    let (answer, outcome) = observe(tx.apply(&world.order("a", Act::Answer), version)).await;
    match answer {
        Ok(_) => tx.commit().await,
        Err(_) => tx.rollback().await,
    }
    (answer, outcome.map(|outcome| outcome.how))
}

fn stale(applied: u64) -> Result<u64, Failure> {
    Err(Failure::Idem(Error::Stale {
        applied: Some(VersionBytes::of(&applied)),
    }))
}

#[tokio::test]
async fn an_older_one_is_stale_a_newer_one_runs_and_an_equal_one_is_replayed() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let executed = |version| (Ok(version), Some(How::Executed));
        assert_eq!(committed(&world, 2).await, executed(2), "{kind:?}");
        assert_eq!(committed(&world, 1).await.0, stale(2), "{kind:?}");
        let replayed = (Ok(2), Some(How::Replayed));
        assert_eq!(committed(&world, 2).await, replayed, "{kind:?}");
        assert_eq!(committed(&world, 3).await, executed(3), "{kind:?}");
        assert_eq!(committed(&world, 2).await.0, stale(3), "{kind:?}");
        for (row, count) in [("v1", 0), ("v2", 1), ("v3", 1)] {
            assert_eq!(world.rows(row).await, count, "{kind:?}: {row}");
        }
        assert_eq!(world.records().await, (0, 1), "{kind:?}");
    }
}

#[tokio::test]
async fn a_newer_one_that_is_rolled_back_leaves_the_older_answer() {
    for &kind in Kind::ALL {
        for act in [Act::Answer, Act::Decline] {
            let world = World::new(kind).await;
            assert_eq!(committed(&world, 2).await.0, Ok(2), "{kind:?}");
            let mut tx = world.begin().await;
            let newer = tx.apply(&world.order("a", act), 3).await;
            assert_eq!(newer.is_ok(), act == Act::Answer, "{kind:?}");
            tx.rollback().await;

            assert_eq!(world.rows("v3").await, 0, "{kind:?}");
            assert_eq!(committed(&world, 1).await.0, stale(2), "{kind:?}");
            let replayed = (Ok(2), Some(How::Replayed));
            assert_eq!(committed(&world, 2).await, replayed, "{kind:?}");
            let executed = (Ok(3), Some(How::Executed));
            assert_eq!(committed(&world, 3).await, executed, "{kind:?}");
            assert_eq!(world.rows("v3").await, 1, "{kind:?}");
        }
    }
}

/// It is recorded, so that older ones are stale, but nothing of it was applied.
#[tokio::test]
async fn an_err_that_is_recorded_is_not_applied() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        for (act, version, expected) in [
            (Act::Answer, 2, Ok(2)),
            (Act::Decline, 3, Err(Failure::Declined)),
            (Act::Answer, 1, stale(2)),
            (Act::Answer, 2, stale(2)),
            (Act::Answer, 4, Ok(4)),
        ] {
            let mut tx = world.begin().await;
            let answer = tx.apply_or_record(&world.order("a", act), version).await;
            tx.commit().await;
            assert_eq!(answer, expected, "{kind:?}: {version}");
        }
    }
}

/// Six versions at once, each in a transaction that waits for its turn: whoever
/// comes after a newer one is stale, and nobody runs twice.
#[tokio::test(flavor = "multi_thread")]
async fn at_once_what_is_applied_only_rises() {
    const NEWEST: u64 = 6;
    for &kind in Kind::ALL {
        let world = Arc::new(World::new(kind).await);
        let mut tasks = tokio::task::JoinSet::new();
        for version in (1..=NEWEST).rev().chain(1..=NEWEST) {
            let world = Arc::clone(&world);
            tasks.spawn(async move {
                loop {
                    match committed(&world, version).await.0 {
                        // A deadlock: begin again, as the error says.
                        Err(Failure::Idem(error @ Error::Store(_))) if error.is_retryable() => {}
                        answer => return (version, answer),
                    }
                }
            });
        }
        for (version, answer) in tasks.join_all().await {
            let newer = (version + 1..=NEWEST).any(|newer| answer == stale(newer));
            assert!(answer == Ok(version) || newer, "{kind:?}: {answer:?}");
        }
        for version in 1..=NEWEST {
            let rows = world.rows(&format!("v{version}")).await;
            assert!(rows <= 1, "{kind:?}: version {version} ran {rows} times");
        }
        assert_eq!(world.rows("v6").await, 1, "{kind:?}");
        assert_eq!(committed(&world, 5).await.0, stale(6), "{kind:?}");
    }
}
