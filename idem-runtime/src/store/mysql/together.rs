//! Reservations and ends of attempts, one by one or many in one statement.
//!
//! A statement for many has as many places as the next power of two, so that few
//! texts are prepared: the last request is in the places that are left.

use std::collections::HashMap;

use sqlx::mysql::{MySql, MySqlArguments, MySqlRow};
use sqlx::query::Query;

use super::Dialect;
use super::error::{is_conflict, is_duplicate, store_error};
use super::rows;
use super::texts::Texts;
use crate::error::StoreError;
use crate::identity::RecordId;
use crate::store::connections::Connections;
use crate::store::gather::{Replies, Trip};
use crate::store::sql::{Ended, damaged};
use crate::store::swap::{self, Inserted, Looked, Tries};
use crate::store::{Complete, Reserve};
use crate::sync::Arc;

type Bound<'q> = Query<'q, MySql, MySqlArguments>;

/// What single statements are sent with.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) connections: Connections<MySql>,
    pub(super) texts: Arc<Texts>,
}

impl Link {
    pub(super) async fn find(&self, id: &RecordId) -> Result<MySqlRow, sqlx::Error> {
        let query = self
            .texts
            .query(&self.texts.statements.find)
            .bind(self.texts.clock_us())
            .bind(id.as_bytes().as_slice());
        self.connections.fetch_one(query).await
    }

    /// `MariaDB`: in one trip. The outer error is the statement's.
    async fn insert_returning(
        &self,
        request: &Reserve,
    ) -> Result<Result<Inserted, StoreError>, sqlx::Error> {
        let texts = &self.texts;
        let clock_us = texts.clock_us();
        let query = bind_fresh(texts.query(&texts.statements.reserve), request, clock_us);
        let row = self.connections.fetch_one(query.bind(clock_us)).await?;
        Ok(inserted(&row, request))
    }

    /// `MySQL`: by the error that the key is there.
    async fn insert_or_select(
        &self,
        request: &Reserve,
    ) -> Result<Result<Inserted, StoreError>, sqlx::Error> {
        let texts = &self.texts;
        let query = texts.insert(&texts.statements.insert, Some(request.lease_us), request);
        let inserted = self.connections.execute(query).await;
        match inserted {
            // A server that does not tell the fence is asked for it.
            Ok(done) if done.last_insert_id() == 0 => {
                let row = self.find(&request.id).await?;
                Ok(rows::found(&row).map(|(_, looked)| Inserted::Found(looked)))
            }
            Ok(done) => {
                // A fresh fence is the time of the reservation.
                let fence = i64::try_from(done.last_insert_id()).map_err(|_| damaged("fence"));
                Ok(fence.map(Inserted::Won))
            }
            Err(error) if is_duplicate(&error) => {
                let row = self.find(&request.id).await?;
                Ok(rows::found(&row).map(|(_, looked)| Inserted::Found(looked)))
            }
            Err(error) => Err(error),
        }
    }
}

/// What a row of `MariaDB` says of a reservation.
fn inserted(row: &MySqlRow, request: &Reserve) -> Result<Inserted, StoreError> {
    rows::found(row).map(|found| won(found, request))
}

/// The claim decides who owns it; the server's variable only tells a first
/// request from a repeated one.
fn won((before, looked): (bool, Looked), request: &Reserve) -> Inserted {
    match &looked.record {
        Some(record) if record.claim == request.claim && !before => Inserted::Won(record.fence),
        _ => Inserted::Found(looked),
    }
}

/// Binds a row of `MariaDB`'s reservation.
fn bind_fresh<'q>(query: Bound<'q>, request: &'q Reserve, clock_us: Option<i64>) -> Bound<'q> {
    rows::bind_request(query, request)
        .bind(clock_us)
        .bind(request.claim.as_bytes().as_slice())
        .bind(clock_us)
        .bind(request.lease_us)
        .bind(clock_us)
        .bind(request.version.as_ref().map(|v| v.as_bytes().to_vec()))
}

/// Requests, as many as there are places.
fn padded<T>(requests: &[T]) -> impl Iterator<Item = &T> + Clone {
    let places = requests.len().next_power_of_two();
    let left = places - requests.len();
    requests
        .iter()
        .chain(requests.last().into_iter().cycle().take(left))
}

/// Whether a statement for many was refused by the server: whose error it is
/// shows when each is sent by itself.
fn is_refusal(error: &sqlx::Error) -> bool {
    let is_refusal = matches!(error, sqlx::Error::Database(_));
    if is_refusal {
        tracing::debug!(target: "idem::store", %error, "MySQL refused a batch");
    }
    is_refusal
}

#[derive(Debug)]
pub(super) struct Reserving(pub(super) Link);

impl Trip for Reserving {
    type Request = Reserve;
    type Reply = Inserted;

    async fn alone(&self, request: &Reserve) -> Result<Inserted, StoreError> {
        let mut tries = Tries::new();
        while tries.again().await {
            let tried = match self.0.texts.dialect {
                Dialect::MariaDb => self.0.insert_returning(request).await,
                Dialect::MySql => self.0.insert_or_select(request).await,
            };
            match tried {
                Ok(inserted) => return inserted,
                Err(error) if is_conflict(&error) => {}
                Err(error) => return Err(store_error(&error)),
            }
        }
        Err(swap::in_the_way())
    }

    async fn together(&self, requests: &[Reserve]) -> Result<Replies<Inserted>, StoreError> {
        let Link { connections, texts } = &self.0;
        let all = padded(requests);
        let text = texts.statements.reserve_many(all.clone().count());
        let clock_us = texts.clock_us();
        let mut query = texts.query(&text);
        for request in all {
            query = bind_fresh(query, request, clock_us);
        }
        let found = match connections.fetch_all(query.bind(clock_us)).await {
            Ok(found) => found,
            Err(error) if is_refusal(&error) => return Ok(Replies::Refused),
            Err(error) => return Err(store_error(&error)),
        };
        let mut replies = HashMap::with_capacity(requests.len());
        for row in &found {
            let row = rows::found(row);
            // Of the request in several places, the first is what it came to.
            let id = match &row {
                Ok((_, looked)) => looked.record.as_ref().map(|record| record.id),
                Err(_) => return Ok(Replies::Refused),
            };
            if let Some(id) = id {
                replies.entry(id).or_insert(row);
            }
        }
        let reply = |request: &Reserve| {
            let row = replies.remove(&request.id);
            let row = row.unwrap_or_else(|| Err(damaged("reply")))?;
            Ok(won(row, request))
        };
        Ok(Replies::Each(requests.iter().map(reply).collect()))
    }
}

#[derive(Debug)]
pub(super) struct Completing(pub(super) Link);

impl Trip for Completing {
    type Request = Complete;
    /// Whether it was the holder's to end.
    type Reply = bool;

    async fn alone(&self, request: &Complete) -> Result<bool, StoreError> {
        let Link { connections, texts } = &self.0;
        match connections.execute(texts.complete(request)).await {
            Ok(done) => Ok(done.rows_affected() == 1),
            Err(error) if is_conflict(&error) => Ok(false),
            Err(error) => Err(store_error(&error)),
        }
    }

    async fn together(&self, requests: &[Complete]) -> Result<Replies<bool>, StoreError> {
        let Link { connections, texts } = &self.0;
        let all: Vec<_> = padded(requests)
            .map(|request| (request, Ended::of(&request.ending)))
            .collect();
        let text = texts.statements.complete_many(texts.dialect, all.len());
        let clock_us = texts.clock_us();
        let query = texts.query(&text);
        let query = of(query, &all, |query, _, ended| query.bind(ended.applies()));
        let query = of(query.bind(clock_us), &all, |query, end, _| {
            query.bind(end.ttl_us)
        });
        let query = of(query.bind(clock_us), &all, |query, end, _| {
            query.bind(end.ttl_us)
        });
        let query = query.bind(clock_us);
        let query = of(query, &all, |query, _, ended| query.bind(ended.reason));
        let query = of(query, &all, |query, _, ended| query.bind(ended.codec));
        let query = of(query, &all, |query, _, ended| query.bind(ended.failed));
        let query = of(query, &all, |query, _, ended| query.bind(ended.bytes));
        let query = of(query, &all, |query, _, ended| query.bind(ended.digest));
        let mut query = of(query, &all, |query, _, ended| query.bind(ended.state));
        for (request, _) in &all {
            let holder = &request.holder;
            query = query
                .bind(holder.id.as_bytes().as_slice())
                .bind(holder.claim.as_bytes().as_slice())
                .bind(holder.fence);
        }
        match connections.execute(query).await {
            Ok(done) if usize::try_from(done.rows_affected()) == Ok(requests.len()) => {
                Ok(Replies::Each(requests.iter().map(|_| Ok(true)).collect()))
            }
            // Which of them were not their holders' is not told: each is asked
            // for by itself, and was done by the same attempt before if it was.
            Ok(_) => Ok(Replies::Refused),
            Err(error) if is_refusal(&error) => Ok(Replies::Refused),
            Err(error) => Err(store_error(&error)),
        }
    }
}

/// Binds the pairs of id and value of one column.
fn of<'q>(
    mut query: Bound<'q>,
    all: &[(&'q Complete, Ended<'q>)],
    value: impl Fn(Bound<'q>, &'q Complete, &Ended<'q>) -> Bound<'q>,
) -> Bound<'q> {
    for (request, ended) in all {
        query = value(
            query.bind(request.holder.id.as_bytes().as_slice()),
            request,
            ended,
        );
    }
    query
}
