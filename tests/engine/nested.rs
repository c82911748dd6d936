//! Calls inside of bodies: the same key is an error, and "try later" never
//! becomes somebody's recorded answer.

use idem::{Engine, Error, OnInProgress, UnknownReason};
use tokio::sync::oneshot;

use crate::faulty::{Fault, Faulty};
use crate::{DAY, Runs, engine, memory};

#[tokio::test]
async fn the_same_key_inside_its_own_body_is_an_error_not_a_deadlock() {
    let engine = memory().await;
    let inner = engine.clone();
    let answer: Result<Error, Error> = engine
        .call("nested.same", &1, DAY)
        .run(async move {
            // Through another operation, also in a task of its own.
            let middle = inner.clone();
            inner
                .call("nested.middle", &1, DAY)
                .run(async move {
                    let again: Result<Error, Error> = middle
                        .call("nested.same", &1, DAY)
                        .run(async { panic!("a second run") })
                        .await;
                    Ok(again.unwrap_err())
                })
                .await
        })
        .await;
    assert_eq!(answer, Ok(Error::Reentrant));
}

/// An inner call that does not wait.
async fn inner(engine: &Engine) -> Result<(), Error> {
    engine
        .call("nested.inner", &1, DAY)
        .on_in_progress(OnInProgress::Reject)
        .run(async { Ok(()) })
        .await
}

/// An outer call whose body returns what the inner call answers.
async fn outer(engine: &Engine, runs: &Runs) -> Result<(), Error> {
    let (engine, runs) = (engine.clone(), runs.clone());
    let call = engine.call("nested.outer", &1, DAY);
    call.run(async move {
        runs.add();
        inner(&engine).await
    })
    .await
}

/// Keeps the inner key in progress until told to go on.
async fn occupy(engine: &Engine) -> oneshot::Sender<()> {
    let (start, started) = oneshot::channel();
    let (open, gate) = oneshot::channel();
    tokio::spawn(engine.call("nested.inner", &1, DAY).run(async move {
        start.send(()).ok();
        gate.await.ok();
        Ok::<_, Error>(())
    }));
    started.await.unwrap();
    open
}

fn is_nested(answer: &Result<(), Error>) -> bool {
    matches!(
        answer,
        Err(Error::UnknownOutcome {
            reason: UnknownReason::Nested,
            ..
        })
    )
}

#[tokio::test]
async fn an_inner_in_progress_does_not_become_the_recorded_answer() {
    let (engine, runs) = (memory().await, Runs::default());
    let _open = occupy(&engine).await;
    let own = outer(&engine, &runs).await;
    assert!(own.unwrap_err().is_in_progress(), "the caller's own");
    let next = outer(&engine, &runs).await;
    assert!(is_nested(&next), "{next:?}");
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn an_in_progress_two_calls_down_does_not_become_the_recorded_answer() {
    let (engine, runs) = (memory().await, Runs::default());
    let _open = occupy(&engine).await;
    let outermost = || {
        let (inside, runs) = (engine.clone(), runs.clone());
        let call = engine.call("nested.outermost", &1, DAY);
        call.run(async move {
            runs.add();
            outer(&inside, &Runs::default()).await
        })
    };
    let own: Result<(), Error> = outermost().await;
    assert!(own.unwrap_err().is_in_progress(), "the caller's own");
    let next = outermost().await;
    assert!(is_nested(&next), "{next:?}");
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn an_inner_store_error_does_not_become_the_recorded_answer() {
    // The outer reservation passes, the inner one breaks.
    let runs = Runs::default();
    let held = std::sync::Arc::new(tokio::sync::Notify::new());
    let store = Faulty::default().on_reserve([Fault::HoldUntil(held.clone()), Fault::Break]);
    held.notify_one();
    let engine = engine(store).await;
    let own = outer(&engine, &runs).await;
    assert!(matches!(own, Err(Error::Store(_))), "{own:?}");
    let next = outer(&engine, &runs).await;
    assert!(is_nested(&next), "{next:?}");
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn an_inner_call_that_answers_in_the_end_leaves_the_error_to_be_recorded() {
    let (engine, runs) = (memory().await, Runs::default());
    let failed = || Error::Failed {
        message: "declined".to_owned(),
    };
    for _ in 0..2 {
        let (inside, runs) = (engine.clone(), runs.clone());
        let answer: Result<(), Error> = engine
            .call("nested.retries", &1, DAY)
            .run(async move {
                runs.add();
                let open = occupy(&inside).await;
                assert!(inner(&inside).await.unwrap_err().is_in_progress());
                open.send(()).unwrap();
                while inner(&inside).await.is_err() {
                    tokio::task::yield_now().await;
                }
                Err(failed())
            })
            .await;
        assert_eq!(answer, Err(failed()));
    }
    assert_eq!(runs.count(), 1, "recorded, and replayed");
}

#[tokio::test]
async fn a_final_inner_error_may_be_the_answer() {
    let (engine, runs) = (memory().await, Runs::default());
    let first: Result<(), Error> = engine
        .call("nested.inner", &1, DAY)
        .payload(&1)
        .run(async { Ok(()) })
        .await;
    first.unwrap();
    for _ in 0..2 {
        let answer = outer(&engine, &runs).await;
        assert!(answer.unwrap_err().is_mismatch());
    }
    assert_eq!(runs.count(), 1, "recorded, and replayed");
}

#[tokio::test]
async fn an_inner_error_that_the_body_copes_with_does_no_harm() {
    let (engine, runs) = (memory().await, Runs::default());
    let _open = occupy(&engine).await;
    for _ in 0..2 {
        let (inside, runs) = (engine.clone(), runs.clone());
        let answer: Result<String, Error> = engine
            .call("nested.copes", &1, DAY)
            .run(async move {
                runs.add();
                inner(&inside).await.ok();
                Ok("went on".to_owned())
            })
            .await;
        assert_eq!(answer.as_deref(), Ok("went on"));
    }
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn classify_decides_also_over_an_inner_error() {
    let (engine, runs) = (memory().await, Runs::default());
    let _open = occupy(&engine).await;
    for _ in 0..2 {
        let (inside, runs) = (engine.clone(), runs.clone());
        let answer: Result<(), Error> = engine
            .call("nested.classified", &1, DAY)
            .on_error(idem::on_error::Classify(|_: &Error| {
                idem::Disposition::Store
            }))
            .run(async move {
                runs.add();
                inner(&inside).await
            })
            .await;
        assert!(answer.unwrap_err().is_in_progress());
    }
    assert_eq!(runs.count(), 1, "recorded, as the classifier said");
}
