//! `assert_executed!` and its like: they give the answer back, and fail with
//! what was expected, what it was, and the answer.

use idem::testing::{Testbed, assert_executed, assert_how, assert_replayed};
use idem::{Error, idempotent};

#[idempotent(name = "asserts.echo", key = key, payload = text, ttl = "1h")]
async fn echo(key: u32, text: String) -> Result<String, Error> {
    let _ = key;
    Ok(text)
}

fn text() -> String {
    "hello".to_owned()
}

/// The message of a panic in a task of its own.
async fn panic_of(test: impl Future<Output = ()> + Send + 'static) -> String {
    let panic = tokio::spawn(test).await.unwrap_err().into_panic();
    panic.downcast_ref::<String>().unwrap().clone()
}

#[tokio::test]
async fn they_give_the_answer_back() {
    let t = Testbed::new().await;
    assert_eq!(assert_executed!(t.scope(echo(1, text()))), Ok(text()));
    assert_eq!(assert_replayed!(t.scope(echo(1, text()))), Ok(text()));
    let other = "bye".to_owned();
    assert!(assert_how!(Refused, t.scope(echo(1, other))).is_err());
}

#[tokio::test]
async fn they_fail_with_what_it_was_and_the_answer() {
    let said = panic_of(async {
        let t = Testbed::new().await;
        drop(assert_replayed!(t.scope(echo(1, text()))));
    });
    assert_eq!(
        said.await,
        "`t.scope(echo(1, text()))` was to be replayed, and was executed: Ok(\"hello\")"
    );
    let said = panic_of(async {
        let t = Testbed::new().await;
        t.scope(echo(1, text())).await.unwrap();
        drop(assert_executed!(t.scope(echo(1, text()))));
    });
    assert!(said.await.contains("was to be executed, and was replayed"));
}

#[tokio::test]
async fn they_fail_if_there_was_no_call() {
    let said = panic_of(async {
        drop(assert_executed!(async { text() }));
    });
    assert!(said.await.contains("made no call that idem knows of"));
}
