//! What is looked at when an engine starts.

use sqlx::Row as _;

use super::MySqlStore;
use super::error::store_error;
use crate::clock::{Clock as _, SystemClock};
use crate::error::StoreError;
use crate::store::Finding;
use crate::store::sql::{damaged, is_apart};
use crate::sync::Ordering;

pub(super) async fn check(store: &MySqlStore) -> Result<Vec<Finding>, StoreError> {
    let (texts, statements) = (&store.link.texts, &store.link.texts.statements);
    let database = statements.database.as_deref();
    let asked_us = SystemClock.unix_us();
    let row = texts
        .query(statements.check)
        .bind(database)
        .bind(statements.newest.as_str())
        .bind(database)
        .bind(statements.records.as_str())
        .bind(statements.meta_table.as_str())
        .bind(database)
        .bind(statements.records.as_str())
        .bind(texts.clock_us())
        .fetch_one(&store.pool)
        .await
        .map_err(|error| store_error(&error))?;
    let number = |at| -> Result<i64, StoreError> {
        row.try_get(at).map_err(|_| damaged("server's settings"))
    };
    texts.packet.store(number(7)?, Ordering::SeqCst);
    let found = [
        (number(0)? != 0, Finding::Replica),
        (number(1)? == 0, Finding::NotDurable),
        (number(2)? == 0, Finding::NoSchema),
        (number(3)? != 0, Finding::NotTransactional),
        (number(4)? == 0, Finding::NoAutocommit),
        (reads_uncommitted(store).await?, Finding::DirtyReads),
        (number(5)? != 0, Finding::OtherUniqueIndex),
        (number(6)? == 0, Finding::NotStrict),
        (is_apart(asked_us, number(8)?), Finding::ClockApart),
    ];
    let found = found.into_iter().filter(|(is_so, _)| *is_so);
    Ok(found.map(|(_, finding)| finding).collect())
}

async fn reads_uncommitted(store: &MySqlStore) -> Result<bool, StoreError> {
    let row = store
        .link
        .texts
        .query(store.link.texts.statements.isolation)
        .fetch_one(&store.pool)
        .await
        .map_err(|error| store_error(&error))?;
    let level: String = row.try_get(1).map_err(|_| damaged("server's settings"))?;
    Ok(level == "READ-UNCOMMITTED")
}

/// A packet holds an answer and what else is written with it.
pub(super) fn largest_answer(packet: i64) -> Option<usize> {
    const BESIDE: usize = 64 * 1024;
    let packet = usize::try_from(packet).ok().filter(|packet| *packet > 0)?;
    Some(std::cmp::max(packet.saturating_sub(BESIDE), packet / 2))
}
