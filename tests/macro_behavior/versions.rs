//! `version` and `on_stale`, written as people write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idem::record::VersionBytes;
use idem::{Error, How, idempotent, observe};

use crate::{Runs, engine};

#[derive(Debug, Clone)]
struct Row {
    id: u32,
    at: SystemTime,
    sequence: u32,
    name: String,
}

fn row(second: u64, sequence: u32) -> Row {
    Row {
        id: 1,
        at: UNIX_EPOCH + Duration::from_secs(second),
        sequence,
        name: format!("{second}.{sequence}"),
    }
}

/// The version borrows from a pattern's bindings, which the body takes.
#[idempotent(key = id, payload = name, version = (at, sequence), ttl = "1h")]
async fn apply(
    runs: Runs,
    Row {
        id,
        at,
        sequence,
        name,
    }: Row,
) -> Result<String, Error> {
    runs.add();
    Ok(format!("{id} {:?} {sequence} {name}", at.elapsed().is_ok()))
}

#[idempotent(key = id, version = *revision - 1, on_stale = replay, ttl = "1h", on_cancel = abandon, name = "versions.show")]
async fn show(runs: &Runs, id: u32, revision: &i64) -> Result<i64, Error> {
    runs.add();
    assert_eq!(id, 1);
    Ok(*revision)
}

#[tokio::test]
async fn a_pair_orders_by_its_first_part_first() {
    let (engine, runs) = (engine().await, Runs::default());
    let apply = |row| engine.scope(apply(runs.clone(), row));
    assert_eq!(apply(row(5, 2)).await.unwrap(), "1 true 2 5.2");
    let newest = VersionBytes::of(&(row(5, 2).at, 2_u32));
    for older in [row(5, 1), row(4, 9)] {
        let stale = Error::Stale {
            applied: Some(newest.clone()),
        };
        assert_eq!(apply(older).await, Err(stale));
    }
    assert_eq!(apply(row(5, 2)).await.unwrap(), "1 true 2 5.2");
    let other = Row {
        name: "other".to_owned(),
        ..row(5, 2)
    };
    assert!(apply(other).await.unwrap_err().is_mismatch());
    assert_eq!(runs.count(), 1);
    assert_eq!(apply(row(5, 3)).await.unwrap(), "1 true 3 5.3");
    assert_eq!(apply(row(6, 0)).await.unwrap(), "1 true 0 6.0");
    assert_eq!(runs.count(), 3);
}

#[tokio::test]
async fn an_older_one_is_shown_the_newest_answer() {
    let (engine, runs) = (engine().await, Runs::default());
    for (revision, expected, how) in [
        (-7, -7, How::Executed),
        (7, 7, How::Executed),
        (-9, 7, How::Stale),
        (7, 7, How::Replayed),
    ] {
        let (answer, outcome) = observe(engine.scope(show(&runs, 1, &revision))).await;
        assert_eq!((answer, outcome.unwrap().how), (Ok(expected), how));
    }
    assert_eq!(runs.count(), 2);
}
