//! Parameters as people write them.

use idem::{Error, idempotent};

use crate::{Runs, engine, once};

#[derive(Debug, Clone)]
struct Order {
    id: u32,
    lines: [u32; 3],
    note: String,
}

fn order() -> Order {
    Order {
        id: 1,
        lines: [10, 20, 30],
        note: "note".to_owned(),
    }
}

#[idempotent(key = (id, first), payload = note, ttl = "1h")]
async fn patterns(
    runs: Runs,
    Order {
        id,
        lines: [first, .., mut last],
        note,
    }: Order,
    (): (),
    (left, _): (u32, String),
) -> Result<String, Error> {
    runs.add();
    last += left;
    Ok(format!("{id} {first} {last} {note}"))
}

#[idempotent(key = total, ttl = "1h")]
async fn mutable(runs: Runs, mut total: u32, mut text: String) -> Result<String, Error> {
    runs.add();
    total += 1;
    text.push('!');
    Ok(format!("{total}{text}"))
}

/// A borrowed parameter is set to something of the body's own.
#[idempotent(key = text, ttl = "1h", on_cancel = abandon)]
async fn rebound(runs: &Runs, mut text: &str) -> Result<usize, Error> {
    runs.add();
    let local = text.repeat(2);
    if !local.is_empty() {
        text = &local;
    }
    Ok(text.len())
}

#[idempotent(key = id, ttl = "1h")]
async fn unnamed(runs: Runs, id: u32, _: String, _unused: u32) -> Result<u32, Error> {
    runs.add();
    Ok(id)
}

#[idempotent(key = (r#type, r#match.0), ttl = "1h", label = r#type)]
async fn r#loop(runs: Runs, r#type: u32, r#match: (u32, u32)) -> Result<u32, Error> {
    runs.add();
    Ok(r#type + r#match.1)
}

#[idempotent(key = id, ttl = "1h")]
async fn with_cfg(
    runs: Runs,
    id: u32,
    #[cfg(test)] here: u32,
    #[cfg(not(test))] gone: Missing,
    #[cfg_attr(test, cfg(not(test)))] also_gone: Missing,
    #[cfg_attr(test, cfg(test))] mut also_here: u32,
) -> Result<u32, Error> {
    runs.add();
    also_here += here;
    Ok(id + also_here)
}

/// Names that an expansion might use for itself.
#[idempotent(key = (key, call), payload = (ops, body), ttl = "1h")]
async fn names(runs: Runs, key: u32, call: u32, ops: u32, body: u32) -> Result<u32, Error> {
    runs.add();
    Ok(key + call + ops + body)
}

#[idempotent(key = (id), payload = (id,), ttl = "1h",)]
async fn trailing_commas(runs: Runs, id: u32) -> Result<u32, Error> {
    runs.add();
    Ok(id)
}

#[tokio::test]
async fn patterns_and_mut() {
    let runs = Runs::default();
    let call = || patterns(runs.clone(), order(), (), (5, String::new()));
    assert_eq!(once(&runs, call).await, "1 10 35 note");
    let call = || mutable(runs.clone(), 1, "a".to_owned());
    assert_eq!(once(&runs, call).await, "2a!");
    assert_eq!(once(&runs, || rebound(&runs, "ab")).await, 4);
}

#[tokio::test]
async fn no_name_and_raw_names() {
    let runs = Runs::default();
    let call = || unnamed(runs.clone(), 1, String::new(), 2);
    assert_eq!(once(&runs, call).await, 1);
    assert_eq!(once(&runs, || r#loop(runs.clone(), 1, (2, 3))).await, 4);
    assert_eq!(once(&runs, || names(runs.clone(), 1, 2, 3, 4)).await, 10);
    assert_eq!(once(&runs, || trailing_commas(runs.clone(), 1)).await, 1);
}

#[tokio::test]
async fn parameters_that_cfg_takes_away() {
    let runs = Runs::default();
    assert_eq!(once(&runs, || with_cfg(runs.clone(), 1, 2, 3)).await, 6);
}

#[tokio::test]
async fn a_payload_bound_by_a_pattern_is_compared() {
    let (runs, engine) = (Runs::default(), engine().await);
    let call = |order| engine.scope(patterns(runs.clone(), order, (), (0, String::new())));
    call(order()).await.unwrap();
    let other = Order {
        note: "another".to_owned(),
        ..order()
    };
    assert!(matches!(
        call(other).await,
        Err(Error::PayloadMismatch { .. })
    ));
}
