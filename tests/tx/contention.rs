//! Two transactions with one key: one runs, and neither breaks the other.

use std::sync::Arc;
use std::time::Duration;

use idem::{Error, StoreErrorKind};

use crate::operation::{Act, Failure};
use crate::world::{Kind, Pool, Tx, World};

fn is_in_progress(answer: &Result<u32, Failure>) -> bool {
    matches!(answer, Err(Failure::Idem(Error::InProgress { .. })))
}

/// The transactions go on after a duplicate was refused: both of them.
#[cfg(feature = "servers")]
#[tokio::test]
async fn a_duplicate_breaks_no_transaction() {
    for &kind in Kind::ALL.iter().filter(|kind| !kind.is_sqlite()) {
        let world = World::new(kind).await;
        let order = world.order("a", Act::Answer);
        let mut first = world.begin().await;
        assert_eq!(first.place(&order).await, Ok(42), "{kind:?}");

        let mut second = world.begin().await;
        if kind.is_mysql() {
            second
                .execute("set session innodb_lock_wait_timeout = 1")
                .await;
        }
        let refused = second.place(&order).await;
        assert!(is_in_progress(&refused), "{kind:?}: {refused:?}");
        assert_eq!(second.place(&world.order("b", Act::Answer)).await, Ok(42));
        second.commit().await;
        first.commit().await;
        assert_eq!(
            (world.rows("a").await, world.rows("b").await),
            (1, 1),
            "{kind:?}"
        );
    }
}

/// Who waits gets the answer, or runs if the first was rolled back.
#[cfg(feature = "servers")]
#[tokio::test]
async fn a_duplicate_waits_for_the_first() {
    for &kind in Kind::ALL.iter().filter(|kind| !kind.is_sqlite()) {
        for commits in [true, false] {
            let world = Arc::new(World::new(kind).await);
            let order = world.order("a", Act::Answer);
            let mut first = world.begin().await;
            assert_eq!(first.patient(&order).await, Ok(42), "{kind:?}");
            let mut second = world.begin().await;
            let waits = tokio::spawn(async move {
                let answer = second.patient(&order).await;
                second.commit().await;
                answer
            });
            // Only to make it likely that it waits: it passes either way.
            tokio::time::sleep(Duration::from_millis(50)).await;
            if commits {
                first.commit().await;
            } else {
                first.rollback().await;
            }
            assert_eq!(waits.await.unwrap(), Ok(42), "{kind:?}");
            assert_eq!(world.rows("a").await, 1, "{kind:?}");
            assert_eq!(world.records().await, (0, 1), "{kind:?}");
        }
    }
}

/// The same operation and key in two sets of tables is two records.
#[cfg(feature = "servers")]
#[tokio::test]
async fn two_sets_of_tables_do_not_hold_each_other_up() {
    for &kind in Kind::ALL.iter().filter(|kind| !kind.is_sqlite()) {
        let (one, other) = (World::new(kind).await, World::new(kind).await);
        let (mut first, mut second) = (one.begin().await, other.begin().await);
        assert_eq!(first.place(&one.order("a", Act::Answer)).await, Ok(42));
        let answer = second.place(&other.order("a", Act::Answer)).await;
        assert_eq!(answer, Ok(42), "{kind:?}");
        first.commit().await;
        second.commit().await;
    }
}

/// Twenty at once: one row, one answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_runs_once() {
    for &kind in Kind::ALL {
        let world = Arc::new(World::new(kind).await);
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let world = Arc::clone(&world);
            tasks.spawn(async move {
                let mut tx = world.begin().await;
                let answer = tx.patient(&world.order("a", Act::Answer)).await;
                tx.commit().await;
                answer
            });
        }
        for answer in tasks.join_all().await {
            assert_eq!(answer, Ok(42), "{kind:?}");
        }
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
    }
}

/// `MySQL` ends a deadlock by rolling one transaction back as a whole, the one that has changed
/// less: here the one whose reservation waits for the other's.
#[cfg(feature = "servers")]
#[tokio::test]
async fn the_victim_of_a_deadlock_is_told_to_begin_again() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let world = World::new(kind).await;
        let order = world.order("a", Act::Answer);
        let mut setup = world.begin().await;
        let stock = world.table.replace("orders", "stock");
        setup
            .execute(&format!("create table {stock} (id int primary key)"))
            .await;
        setup
            .execute(&format!("insert into {stock} values (1)"))
            .await;
        setup.commit().await;
        let take = format!("select id from {stock} where id = 1 for update");

        let mut heavy = world.begin().await;
        let rows = vec!["('heavy')"; 200].join(", ");
        heavy
            .execute(&format!("insert into {} values {rows}", world.table))
            .await;
        assert_eq!(heavy.place(&order).await, Ok(42), "{kind:?}");
        let mut light = world.begin().await;
        light.execute(&take).await;
        let goes_on = tokio::spawn(async move {
            heavy.execute(&take).await;
            heavy.commit().await;
        });
        // Whichever of them waits last, it is this one that is ended.
        let Err(Failure::Idem(Error::Store(ended))) = light.place(&order).await else {
            panic!("{kind:?}: there was no deadlock");
        };
        goes_on.await.unwrap();
        assert_eq!(ended.code(), Some("1213"), "{kind:?}");
        assert_eq!(ended.kind(), StoreErrorKind::Transient, "{kind:?}");
        let error = Error::from(ended);
        assert!(error.is_retryable(), "{error}");
        let says = "rolled the whole transaction back";
        assert!(error.to_string().contains(says), "{error}");
        light.rollback().await;

        let mut again = world.begin().await;
        assert_eq!(again.place(&order).await, Ok(42), "{kind:?}");
        again.commit().await;
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
        assert_eq!(world.records().await, (0, 1), "{kind:?}");
    }
}

/// A transaction that did not take the write lock when it began.
#[tokio::test]
async fn a_deferred_transaction_of_sqlite_is_told_how_to_begin() {
    let world = World::new(Kind::Sqlite).await;
    #[allow(irrefutable_let_patterns, reason = "without servers there is one kind")]
    let Pool::Sqlite(pool) = &world.pool else {
        panic!("it is a file");
    };
    let mut deferred = Tx::Sqlite(pool.begin().await.unwrap());
    // Its snapshot is older than what is written now.
    deferred
        .execute(&format!("select count(*) from {}", world.table))
        .await;
    let mut other = world.begin().await;
    assert_eq!(other.place(&world.order("b", Act::Answer)).await, Ok(42));
    other.commit().await;

    let answer = deferred.place(&world.order("a", Act::Answer)).await;
    let Err(Failure::Idem(error)) = answer else {
        panic!("{answer:?}");
    };
    assert!(error.is_retryable(), "{error}");
    assert!(error.to_string().contains("BEGIN IMMEDIATE"), "{error}");
    let Error::Store(store) = error else {
        panic!("{error:?}");
    };
    assert_eq!(store.kind(), StoreErrorKind::Transient);
    assert_eq!(store.code(), Some("517"));
    deferred.rollback().await;
    assert_eq!(world.rows("a").await, 0);
}
