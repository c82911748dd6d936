//! A message of a queue, received in its caller's transaction.

use std::sync::Arc;
use std::time::Duration;

use idem::inbox::{Inbox, Received, Uncommitted};
use idem::transaction::TxConnection;
use idem::{Delivery, Disposition, Error, OnUnknown, UnknownReason};

use crate::operation::{Failure, execute};
use crate::world::{Kind, Tx, World};

type Told = Uncommitted<u32, Failure>;

/// What the handler returns after its row is written.
type Answer = Result<u32, Failure>;

/// Writes one row, and answers so.
async fn handler<C: TxConnection>(conn: &mut C, row: &str, answer: Answer) -> Answer {
    execute(&mut conn.session(), row).await;
    answer
}

/// One delivery, on whichever database; a macro, since a policy has no name.
macro_rules! receive {
    ($tx:expr, $message:expr, $row:expr, $answer:expr) => {{
        let (message, row, answer) = ($message, $row, $answer);
        match $tx {
            Tx::Sqlite(tx) => {
                message
                    .receive_in(tx, async |conn| handler(conn, row, answer).await)
                    .await
            }
            #[cfg(feature = "servers")]
            Tx::Postgres(tx) => {
                message
                    .receive_in(tx, async |conn| handler(conn, row, answer).await)
                    .await
            }
            #[cfg(feature = "servers")]
            Tx::MySql(tx) => {
                message
                    .receive_in(tx, async |conn| handler(conn, row, answer).await)
                    .await
            }
        }
    }};
}

fn inbox(world: &World) -> Inbox {
    world.engine.inbox("tx.inbox")
}

/// One delivery of the message `a`.
async fn deliver(world: &World, tx: &mut Tx, number: u32, answer: Answer) -> Told {
    let message = inbox(world).max_attempts(3).message("a").delivery(number);
    receive!(tx, message, &world.row("a"), answer)
}

/// Ends the transaction as it should be, and says what the broker is told.
async fn end(tx: Tx, told: Told) -> Received<u32, Failure> {
    if told.must_roll_back() {
        tx.rollback().await;
    } else {
        tx.commit().await;
    }
    told.ended()
}

#[tokio::test]
async fn a_commit_keeps_row_and_answer_of_a_message() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let mut tx = world.begin().await;
        let told = deliver(&world, &mut tx, 1, Ok(42)).await;
        assert!(!told.must_roll_back(), "{kind:?}");
        assert_eq!(end(tx, told).await, Received::First(42), "{kind:?}");

        // What is handled stays a duplicate above the limit, too.
        for number in [2, 9] {
            let mut tx = world.begin().await;
            let told = deliver(&world, &mut tx, number, Ok(0)).await;
            let again = end(tx, told).await;
            assert_eq!(again, Received::Duplicate(42), "{kind:?}");
            assert!(again.delivery().is_ack(), "{kind:?}");
        }
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
        assert_eq!(world.records().await, (0, 1), "{kind:?}");
    }
}

#[tokio::test]
async fn a_delivery_whose_commit_never_came_is_the_first_again() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let mut tx = world.begin().await;
        let told = deliver(&world, &mut tx, 1, Ok(1)).await;
        assert!(!told.must_roll_back(), "{kind:?}");
        // As the server does when the connection closes.
        tx.rollback().await;
        assert_eq!(world.records().await, (0, 0), "{kind:?}");

        let mut tx = world.begin().await;
        let told = deliver(&world, &mut tx, 2, Ok(2)).await;
        assert_eq!(end(tx, told).await, Received::First(2), "{kind:?}");
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
    }
}

#[tokio::test]
async fn a_failed_delivery_leaves_nothing_and_comes_again_after_a_growing_pause() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        for (number, seconds) in [(1, 1), (2, 2), (3, 4)] {
            let mut tx = world.begin().await;
            let told = deliver(&world, &mut tx, number, Err(Failure::Declined)).await;
            assert!(told.must_roll_back(), "{kind:?}");
            let delivery = Delivery::Retry {
                after: Duration::from_secs(seconds),
            };
            let failed = end(tx, told).await;
            assert_eq!(failed.delivery(), delivery, "{kind:?}");
            let error = Failure::Declined;
            assert_eq!(failed, Received::Failed { error, delivery }, "{kind:?}");
            assert_eq!(world.rows("a").await, 0, "{kind:?}");
            assert_eq!(world.records().await, (0, 0), "{kind:?}");
        }
    }
}

#[tokio::test]
async fn one_delivery_too_many_is_parked_and_leaves_nothing_to_roll_back() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let mut tx = world.begin().await;
        let told = deliver(&world, &mut tx, 4, Ok(1)).await;
        assert!(!told.must_roll_back(), "{kind:?}");
        let over = end(tx, told).await;
        assert_eq!(over, Received::OverLimit { deliveries: 4 }, "{kind:?}");
        assert_eq!(over.delivery(), Delivery::Park, "{kind:?}");
        // It was committed: a reservation would be in doubt for ever.
        assert_eq!(world.rows("a").await, 0, "{kind:?}");
        assert_eq!(world.records().await, (0, 0), "{kind:?}");

        // Somebody sends the dead letter again.
        let mut tx = world.begin().await;
        let told = deliver(&world, &mut tx, 1, Ok(42)).await;
        assert_eq!(end(tx, told).await, Received::First(42), "{kind:?}");
    }
}

#[tokio::test]
async fn a_limit_without_the_brokers_number_is_refused() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let mut tx = world.begin().await;
        let message = inbox(&world).max_attempts(3).message("a");
        let told = receive!(&mut tx, message, &world.row("a"), Ok(1));
        assert!(told.must_roll_back(), "{kind:?}");
        let Received::Refused(Error::Misuse { reason }) = end(tx, told).await else {
            panic!("{kind:?}: it ran");
        };
        assert!(
            reason.contains("`message(id).delivery(number)`"),
            "{reason}"
        );
        assert_eq!(world.rows("a").await, 0, "{kind:?}");

        // Without a limit no number is needed.
        let mut tx = world.begin().await;
        let message = inbox(&world).message("a");
        let told = receive!(&mut tx, message, &world.row("a"), Ok(1));
        assert_eq!(end(tx, told).await, Received::First(1), "{kind:?}");
    }
}

#[tokio::test]
async fn nothing_is_taken_over_in_a_transaction() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let mut tx = world.begin().await;
        let message = inbox(&world).on_unknown(OnUnknown::Rerun).message("a");
        let told = receive!(&mut tx, message, &world.row("a"), Ok(1));
        let refused = end(tx, told).await;
        let is_misuse = matches!(refused, Received::Refused(Error::Misuse { .. }));
        assert!(is_misuse, "{kind:?}: {refused:?}");
        assert_eq!(world.rows("a").await, 0, "{kind:?}");
    }
}

#[tokio::test]
async fn a_message_that_is_at_fault_is_committed_and_rejected_from_then_on() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let inbox = inbox(&world).on_error(|_: &Failure| Disposition::Store);
        let mut tx = world.begin().await;
        let message = inbox.message("a");
        let told = receive!(&mut tx, message, &world.row("a"), Err(Failure::Declined));
        assert!(!told.must_roll_back(), "{kind:?}");
        assert_eq!(end(tx, told).await.delivery(), Delivery::Park, "{kind:?}");

        let mut tx = world.begin().await;
        let told = receive!(&mut tx, inbox.message("a"), &world.row("a"), Ok(1));
        assert!(!told.must_roll_back(), "{kind:?}");
        let message = "declined".to_owned();
        let rejected = end(tx, told).await;
        assert_eq!(rejected, Received::Rejected { message }, "{kind:?}");
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
    }
}

/// Against what it was told.
#[tokio::test]
async fn a_failure_that_is_committed_all_the_same_is_parked_and_never_run_again() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let mut tx = world.begin().await;
        let told = deliver(&world, &mut tx, 1, Err(Failure::Declined)).await;
        assert!(told.must_roll_back(), "{kind:?}");
        tx.commit().await;

        let mut tx = world.begin().await;
        let told = deliver(&world, &mut tx, 2, Ok(1)).await;
        let unknown = end(tx, told).await;
        let Received::Unknown { reason, .. } = &unknown else {
            panic!("{kind:?}: {unknown:?}");
        };
        assert_eq!(*reason, UnknownReason::Unfinished, "{kind:?}");
        assert_eq!(unknown.delivery(), Delivery::Park, "{kind:?}");
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
    }
}

/// On `SQLite` only one transaction at a time can be there.
#[cfg(feature = "servers")]
#[tokio::test]
async fn a_duplicate_beside_an_open_transaction_is_never_acknowledged() {
    for &kind in Kind::ALL.iter().filter(|kind| !kind.is_sqlite()) {
        let world = World::new(kind).await;
        let mut first = world.begin().await;
        let told = deliver(&world, &mut first, 1, Ok(42)).await;
        assert!(!told.must_roll_back(), "{kind:?}");

        let mut second = world.begin().await;
        if kind.is_mysql() {
            second
                .execute("set session innodb_lock_wait_timeout = 1")
                .await;
        }
        let beside = deliver(&world, &mut second, 2, Ok(0)).await;
        assert!(!beside.must_roll_back(), "{kind:?}");
        let beside = end(second, beside).await;
        assert!(matches!(beside, Received::InProgress { .. }), "{kind:?}");
        assert!(matches!(beside.delivery(), Delivery::Retry { .. }));

        assert_eq!(end(first, told).await, Received::First(42), "{kind:?}");
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
    }
}

/// The future is one that can be spawned.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_deliveries_at_once_one_is_the_first() {
    for &kind in Kind::ALL {
        let world = Arc::new(World::new(kind).await);
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let world = Arc::clone(&world);
            tasks.spawn(async move {
                let mut tx = world.begin().await;
                let told = deliver(&world, &mut tx, 1, Ok(42)).await;
                end(tx, told).await
            });
        }
        let mut first = 0;
        for received in tasks.join_all().await {
            match received {
                Received::First(42) => first += 1,
                Received::Duplicate(42) | Received::InProgress { .. } => {}
                other => panic!("{kind:?}: {other:?}"),
            }
        }
        assert_eq!((first, world.rows("a").await), (1, 1), "{kind:?}");
    }
}
