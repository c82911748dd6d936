//! Refused before anything is written.

use std::time::Duration;

#[cfg(feature = "servers")]
use idem::sqlx;
use idem::sqlx::{Connection as _, SqliteConnection};
use idem::store::MemoryStore;
use idem::{Engine, Error, StepReason, StoreErrorKind};

use crate::operation::{self, Act, Failure, Order};
use crate::world::{Kind, Pool, Tx, World};

fn error(answer: Result<u32, Failure>) -> Error {
    match answer {
        Err(Failure::Idem(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn is_misconfigured(error: &Error, says: &str) -> bool {
    matches!(error, Error::Store(store) if store.kind() == StoreErrorKind::Misconfigured)
        && error.to_string().contains(says)
}

#[tokio::test]
async fn a_connection_without_a_transaction() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let order = world.order("a", Act::Answer);
        let answer = match &world.pool {
            Pool::Sqlite(pool) => {
                operation::place(&mut pool.acquire().await.unwrap(), &order).await
            }
            #[cfg(feature = "servers")]
            Pool::Postgres(pool) => {
                operation::place(&mut pool.acquire().await.unwrap(), &order).await
            }
            #[cfg(feature = "servers")]
            Pool::MySql(pool) => operation::place(&mut pool.acquire().await.unwrap(), &order).await,
        };
        let error = error(answer);
        assert!(matches!(error, Error::Misuse { .. }), "{kind:?}: {error:?}");
        assert!(error.to_string().contains("in no transaction"), "{error}");
        assert_eq!(world.rows("a").await, 0, "{kind:?}");
        assert_eq!(world.records().await, (0, 0), "{kind:?}");
    }
}

#[tokio::test]
async fn a_step_inside() {
    let world = World::new(Kind::Sqlite).await;
    let mut tx = world.begin().await;
    let error = error(tx.place(&world.order("a", Act::Step)).await);
    assert!(
        matches!(&error, Error::Step { reason, .. } if *reason == StepReason::InTransaction),
        "{error:?}"
    );
}

/// The tables have the same names, but it is another database.
#[tokio::test]
async fn another_instance() {
    let (one, other) = (
        World::new(Kind::Sqlite).await,
        World::new(Kind::Sqlite).await,
    );
    let mut tx = other.begin().await;
    let order = Order {
        table: other.table.clone(),
        ..one.order("a", Act::Answer)
    };
    let refused = error(tx.place(&order).await);
    assert!(is_misconfigured(&refused, "another database"), "{refused}");
    tx.commit().await;
    assert_eq!(other.rows("a").await, 0);
    assert_eq!(other.records().await, (0, 0));
}

/// Another set of tables in the same database, which has another instance id.
#[cfg(feature = "servers")]
#[tokio::test]
async fn another_instance_on_a_server() {
    for &kind in Kind::ALL.iter().filter(|kind| !kind.is_sqlite()) {
        let world = World::new(kind).await;
        // The same tables, but the id that the engine has pinned is gone.
        let meta = world.table.replace("orders", "meta");
        let mut tx = world.begin().await;
        let other = if kind == Kind::Postgres {
            "decode(repeat('ab', 16), 'hex')"
        } else {
            "unhex(repeat('ab', 16))"
        };
        tx.execute(&format!("update {meta} set instance = {other}"))
            .await;
        tx.commit().await;
        let mut tx = world.begin().await;
        let refused = error(tx.place(&world.order("a", Act::Answer)).await);
        assert!(
            is_misconfigured(&refused, "another database"),
            "{kind:?}: {refused}"
        );
        tx.commit().await;
        assert_eq!(world.rows("a").await, 0, "{kind:?}");
        assert_eq!(world.records().await, (0, 0), "{kind:?}");
    }
}

#[cfg(feature = "servers")]
#[tokio::test]
async fn another_kind_of_database() {
    for (of_engine, of_tx) in [
        (Kind::Sqlite, Kind::Postgres),
        (Kind::Postgres, Kind::MariaDb),
        (Kind::MySql, Kind::Sqlite),
    ] {
        let (engine, tx) = (World::new(of_engine).await, World::new(of_tx).await);
        let mut begun = tx.begin().await;
        let refused = error(begun.place(&engine.order("a", Act::Answer)).await);
        assert!(
            is_misconfigured(&refused, "another kind of database"),
            "{refused}"
        );
        begun.commit().await;
        assert_eq!(tx.rows("a").await, 0);
    }
}

#[tokio::test]
async fn a_store_that_is_no_database() {
    let world = World::new(Kind::Sqlite).await;
    let engine = Engine::builder(MemoryStore::new()).build().await.unwrap();
    let mut tx = world.begin().await;
    let order = Order {
        engine,
        ..world.order("a", Act::Answer)
    };
    let refused = error(tx.place(&order).await);
    assert!(is_misconfigured(&refused, "`memory`"), "{refused}");
    tx.commit().await;
    assert_eq!(world.rows("a").await, 0);
}

#[tokio::test]
async fn a_choice_of_on_unknown() {
    let world = World::new(Kind::Sqlite).await;
    let mut conn = match &world.pool {
        Pool::Sqlite(pool) => pool.begin_with("BEGIN IMMEDIATE").await.unwrap(),
        #[cfg(feature = "servers")]
        _ => panic!("it is a file"),
    };
    let call = world.engine.call("tx.plain", &"a", Duration::from_secs(60));
    let answer: Result<u32, Error> = call
        .on_unknown(idem::OnUnknown::Rerun)
        .in_transaction(&mut conn)
        .run(async |_| panic!("the body does not run"))
        .await;
    assert!(matches!(answer, Err(Error::Misuse { .. })), "{answer:?}");
}

/// Above it the transaction cannot see what was committed since it began.
#[cfg(feature = "servers")]
#[tokio::test]
async fn isolation_above_read_committed_on_postgres() {
    let world = World::new(Kind::Postgres).await;
    for level in ["repeatable read", "serializable"] {
        let mut tx = world.begin().await;
        tx.execute(&format!("set transaction isolation level {level}"))
            .await;
        let refused = error(tx.place(&world.order("a", Act::Answer)).await);
        assert!(is_misconfigured(&refused, "READ COMMITTED"), "{refused}");
        tx.commit().await;
    }
    assert_eq!(world.rows("a").await, 0);
    assert_eq!(world.records().await, (0, 0));
}

/// `MySQL` reads with a lock, so its default isolation sees the answer.
#[cfg(feature = "servers")]
#[tokio::test]
async fn an_old_snapshot_on_mysql_sees_the_answer() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let world = World::new(kind).await;
        let mut old = world.begin().await;
        old.execute(&format!("select count(*) from {}", world.table))
            .await;
        let mut tx = world.begin().await;
        assert_eq!(tx.place(&world.order("a", Act::Answer)).await, Ok(42));
        tx.commit().await;
        assert_eq!(
            old.place(&world.order("a", Act::Answer)).await,
            Ok(42),
            "{kind:?}"
        );
        old.commit().await;
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
    }
}

/// After an error, Postgres takes only a rollback.
#[cfg(feature = "servers")]
#[tokio::test]
async fn a_transaction_that_has_failed() {
    let world = World::new(Kind::Postgres).await;
    let mut tx = world.begin().await;
    let failed = operation::try_execute(&mut tx.session(), "select 1 / 0").await;
    assert!(matches!(failed, Err(sqlx::Error::Database(_))));
    let refused = error(tx.place(&world.order("a", Act::Answer)).await);
    assert!(refused.to_string().contains("rolled back"), "{refused}");
    tx.rollback().await;
}

/// A deadlock ends the whole transaction, which the driver does not see; so does
/// a statement. Only `MariaDB` tells in the reservation itself; otherwise it is
/// left behind, unfinished, and nothing runs on it.
#[cfg(feature = "servers")]
#[tokio::test]
async fn a_transaction_that_the_server_has_ended() {
    let world = World::new(Kind::MariaDb).await;
    let mut tx = world.begin().await;
    tx.execute("rollback").await;
    let refused = error(tx.place(&world.order("a", Act::Answer)).await);
    assert!(refused.is_retryable(), "{refused}");
    assert!(
        refused
            .to_string()
            .contains("rolled the whole transaction back"),
        "{refused}"
    );
    tx.rollback().await;
    assert_eq!(world.rows("a").await, 0);
    assert_eq!(world.records().await, (0, 0));
}

/// A database that has none of the engine's tables.
#[tokio::test]
async fn a_database_without_the_tables() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let order = world.order("a", Act::Answer);
        // Kept open: what was said to its connection would hold for the next user of it.
        let (answer, _tx): (_, Option<Tx>) = match &world.pool {
            Pool::Sqlite(_) => {
                let mut conn = SqliteConnection::connect("sqlite::memory:").await.unwrap();
                let mut tx = conn.begin().await.unwrap();
                (operation::place(&mut tx, &order).await, None)
            }
            #[cfg(feature = "servers")]
            _ => {
                let mut tx = world.begin().await;
                tx.execute(if kind == Kind::Postgres {
                    "set local search_path = pg_catalog"
                } else {
                    "use mysql"
                })
                .await;
                (tx.place(&order).await, Some(tx))
            }
        };
        let refused = error(answer);
        assert!(
            is_misconfigured(&refused, "another database"),
            "{kind:?}: {refused}"
        );
        assert_eq!(world.records().await, (0, 0), "{kind:?}");
    }
}
