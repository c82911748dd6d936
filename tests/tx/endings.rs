//! How a call ends, and what its caller's commit or rollback makes of it.

use std::time::Duration;

use idem::{Error, How, UnknownReason, observe};

use crate::operation::{Act, Failure};
use crate::world::{Kind, Tx, World};

/// An earlier call was committed without an answer.
fn is_unfinished(answer: &Result<u32, Failure>) -> bool {
    matches!(
        answer,
        Err(Failure::Idem(Error::UnknownOutcome {
            reason: UnknownReason::Unfinished,
            ..
        }))
    )
}

#[tokio::test]
async fn a_commit_keeps_row_and_answer() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let order = world.order("a", Act::Answer);
        let mut tx = world.begin().await;
        let (first, outcome) = observe(tx.place(&order)).await;
        assert_eq!(
            (first, outcome.unwrap().how),
            (Ok(42), How::Executed),
            "{kind:?}"
        );
        tx.commit().await;

        let mut tx = world.begin().await;
        let (second, outcome) = observe(tx.place(&order)).await;
        assert_eq!(
            (second, outcome.unwrap().how),
            (Ok(42), How::Replayed),
            "{kind:?}"
        );
        tx.commit().await;
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
        assert_eq!(world.records().await, (0, 1), "{kind:?}");
        assert_eq!(world.engine.stats(), idem::Stats::default());
    }
}

#[tokio::test]
async fn a_rollback_leaves_nothing() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let order = world.order("a", Act::Answer);
        let mut tx = world.begin().await;
        assert_eq!(tx.place(&order).await, Ok(42), "{kind:?}");
        tx.rollback().await;
        assert_eq!(world.rows("a").await, 0, "{kind:?}");
        assert_eq!(world.records().await, (0, 0), "{kind:?}");

        let mut tx = world.begin().await;
        assert_eq!(tx.place(&order).await, Ok(42), "{kind:?}");
        tx.commit().await;
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
    }
}

#[tokio::test]
async fn a_second_call_in_the_same_transaction_is_a_replay() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let order = world.order("a", Act::Answer);
        let mut tx = world.begin().await;
        assert_eq!(tx.place(&order).await, Ok(42), "{kind:?}");
        assert_eq!(tx.place(&order).await, Ok(42), "{kind:?}");
        tx.commit().await;
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
    }
}

#[tokio::test]
async fn an_err_goes_with_the_rollback() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let mut tx = world.begin().await;
        let declined = tx.place(&world.order("a", Act::Decline)).await;
        assert_eq!(declined, Err(Failure::Declined), "{kind:?}");
        // Its own transaction sees that the call did not end well, and runs
        // nothing on top of it.
        let again = tx.place(&world.order("a", Act::Answer)).await;
        assert!(is_unfinished(&again), "{kind:?}: {again:?}");
        tx.rollback().await;

        let mut tx = world.begin().await;
        let answered = tx.place(&world.order("a", Act::Answer)).await;
        assert_eq!(answered, Ok(42), "{kind:?}");
        tx.commit().await;
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
    }
}

#[tokio::test]
async fn an_err_that_is_committed_is_an_unknown_outcome() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let mut tx = world.begin().await;
        let declined = tx.place(&world.order("a", Act::Decline)).await;
        assert_eq!(declined, Err(Failure::Declined), "{kind:?}");
        tx.commit().await;
        for _ in 0..2 {
            let mut tx = world.begin().await;
            let later = tx.place(&world.order("a", Act::Answer)).await;
            assert!(is_unfinished(&later), "{kind:?}: {later:?}");
            tx.commit().await;
        }
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
        assert_eq!(world.records().await, (1, 0), "{kind:?}");
    }
}

#[tokio::test]
async fn a_timeout_around_the_call_and_a_commit_is_an_unknown_outcome() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let hang = world.order("a", Act::Hang);
        for savepoint in [false, true] {
            let mut tx = world.begin().await;
            let call = async {
                if savepoint {
                    tx.tentative(&hang).await
                } else {
                    tx.place(&hang).await
                }
            };
            let late = tokio::time::timeout(Duration::from_millis(300), call).await;
            assert!(late.is_err(), "{kind:?}");
            tx.commit().await;
            let order = world.order("a", Act::Answer);
            let mut tx = world.begin().await;
            let later = if savepoint {
                tx.tentative(&order).await
            } else {
                tx.place(&order).await
            };
            assert!(is_unfinished(&later), "{kind:?}: {later:?}");
            tx.rollback().await;
        }
        assert_eq!(world.rows("a").await, 2, "{kind:?}: one of each operation");
    }
}

#[tokio::test]
async fn a_savepoint_undoes_an_err_and_nothing_else() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let mut tx = world.begin().await;
        tx.execute(&format!("insert into {} values ('own')", world.table))
            .await;
        for _ in 0..2 {
            let declined = tx.tentative(&world.order("a", Act::Decline)).await;
            assert_eq!(declined, Err(Failure::Declined), "{kind:?}");
        }
        assert_eq!(
            tx.tentative(&world.order("b", Act::Answer)).await,
            Ok(42),
            "{kind:?}"
        );
        tx.commit().await;
        assert_eq!(world.rows("own").await, 1, "{kind:?}");
        assert_eq!(world.rows("a").await, 0, "{kind:?}");
        assert_eq!(world.rows("b").await, 1, "{kind:?}");
        assert_eq!(world.records().await, (0, 1), "{kind:?}");
    }
}

/// Nothing ran, so there is nothing to undo, and what the caller has written stays.
#[tokio::test]
async fn a_refusal_with_a_savepoint_leaves_the_transaction_as_it_was() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let order = world.order("a", Act::Answer);
        let mut tx = world.begin().await;
        assert_eq!(tx.tentative(&order).await, Ok(42), "{kind:?}");
        tx.commit().await;

        let mut tx = world.begin().await;
        tx.execute(&world.row("before")).await;
        let other = crate::operation::Order {
            amount: 43,
            ..order.clone()
        };
        let refused = tx.tentative(&other).await;
        assert!(
            matches!(refused, Err(Failure::Idem(Error::PayloadMismatch { .. }))),
            "{kind:?}: {refused:?}"
        );
        tx.execute(&world.row("after")).await;
        assert_eq!(tx.tentative(&order).await, Ok(42), "{kind:?}: replayed");
        let next = world.order("b", Act::Answer);
        assert_eq!(tx.tentative(&next).await, Ok(42), "{kind:?}");
        tx.commit().await;
        for key in ["before", "after", "a", "b"] {
            assert_eq!(world.rows(key).await, 1, "{kind:?}: {key}");
        }
        assert_eq!(world.records().await, (0, 2), "{kind:?}");
    }
}

/// Gives a transaction back when its task ends in a panic.
struct Returning(Option<(Tx, tokio::sync::oneshot::Sender<Tx>)>);

impl Drop for Returning {
    fn drop(&mut self) {
        if let Some((tx, returned)) = self.0.take() {
            returned.send(tx).ok();
        }
    }
}

#[tokio::test]
async fn a_panic_goes_on_and_is_no_answer() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        for savepoint in [false, true] {
            let panic = world.order("a", Act::Panic);
            let tx = world.begin().await;
            // In a task, which catches it and gives the transaction back.
            let (returned, slot) = tokio::sync::oneshot::channel();
            let call = tokio::spawn(async move {
                let mut guard = Returning(Some((tx, returned)));
                let (tx, _) = guard.0.as_mut().unwrap();
                if savepoint {
                    tx.tentative(&panic).await
                } else {
                    tx.place(&panic).await
                }
            });
            assert!(call.await.unwrap_err().is_panic(), "{kind:?}");
            let tx = slot.await.ok().unwrap();
            if savepoint {
                tx.commit().await;
            } else {
                tx.rollback().await;
            }
        }
        assert_eq!(world.rows("a").await, 0, "{kind:?}");
        assert_eq!(world.records().await, (0, 0), "{kind:?}");
    }
}

#[tokio::test]
async fn an_err_that_is_to_be_recorded_is() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let order = world.order("a", Act::Decline);
        let mut tx = world.begin().await;
        assert_eq!(
            tx.recorded(&order).await,
            Err(Failure::Declined),
            "{kind:?}"
        );
        tx.commit().await;
        let mut tx = world.begin().await;
        let replayed = tx.recorded(&order).await;
        tx.commit().await;
        let Err(Failure::Idem(Error::Failed { message })) = replayed else {
            panic!("{kind:?}: {replayed:?}");
        };
        assert_eq!(message, "declined");
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
    }
}

#[tokio::test]
async fn an_err_of_the_engines_own_is_never_recorded() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let mut tx = world.begin().await;
        let nested = tx.recorded(&world.order("a", Act::Nested)).await;
        assert!(
            matches!(nested, Err(Failure::Idem(Error::Misuse { .. }))),
            "{kind:?}: {nested:?}"
        );
        tx.rollback().await;
        let mut tx = world.begin().await;
        let again = tx.place(&world.order("b", Act::Again)).await;
        assert_eq!(again, Err(Failure::Idem(Error::Reentrant)), "{kind:?}");
        tx.rollback().await;
        assert_eq!(world.records().await, (0, 0), "{kind:?}");
    }
}

#[tokio::test]
async fn a_body_that_ends_the_transaction_gets_no_answer_recorded() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let mut tx = world.begin().await;
        let call = world.engine.call("tx.ends", &"a", Duration::from_secs(60));
        macro_rules! run {
            ($conn:expr) => {
                call.in_transaction($conn)
                    .run(async |conn| {
                        crate::operation::execute(
                            &mut idem::transaction::TxConnection::session(conn),
                            "rollback",
                        )
                        .await;
                        Ok::<_, Error>(1)
                    })
                    .await
            };
        }
        let answer = match &mut tx {
            Tx::Sqlite(tx) => run!(tx),
            #[cfg(feature = "servers")]
            Tx::Postgres(tx) => run!(tx),
            #[cfg(feature = "servers")]
            Tx::MySql(tx) => run!(tx),
        };
        let Err(error @ Error::NotRecorded(_)) = answer else {
            panic!("{kind:?}: {answer:?}");
        };
        assert!(error.is_retryable());
        assert!(error.to_string().contains("roll the transaction back"));
        drop(tx);
        assert_eq!(world.records().await, (0, 0), "{kind:?}");
    }
}

/// Its future is one that a task can run.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_an_attribute_can_be_spawned() {
    let world = World::new(Kind::Sqlite).await;
    let row = world.row("a");
    let call = world.engine.call("tx.plain", &"a", Duration::from_secs(60));
    #[allow(irrefutable_let_patterns, reason = "without servers there is one kind")]
    let Tx::Sqlite(mut tx) = world.begin().await else {
        panic!("it is a file");
    };
    let task = tokio::spawn(async move {
        let answer = call.in_transaction(&mut tx).run(async |conn| {
            let mut session = idem::transaction::TxConnection::session(conn);
            crate::operation::execute(&mut session, &row).await;
            Ok::<_, Error>(1)
        });
        let answer = answer.await;
        tx.commit().await.unwrap();
        answer
    });
    assert_eq!(task.await.unwrap(), Ok(1));
    assert_eq!(world.rows("a").await, 1);
}
