//! Reservations and ends of attempts, one by one or many in one statement.

use std::collections::HashMap;

use sqlx::Row as _;
use sqlx::postgres::{PgArguments, PgRow, Postgres};
use sqlx::query::Query;

use super::error::{is_conflict, store_error};
use super::rows;
use super::texts::Texts;
use crate::error::StoreError;
use crate::identity::RecordId;
use crate::record::Label;
use crate::store::connections::Connections;
use crate::store::gather::{Replies, Trip};
use crate::store::sql::{Ended, damaged, fixed, write_elements};
use crate::store::swap::{self, Inserted, Tries};
use crate::store::{Complete, Reserve};
use crate::sync::Arc;

/// What single statements are sent with.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) connections: Connections<Postgres>,
    pub(super) texts: Arc<Texts>,
}

impl Link {
    /// Sends one statement for many; none if the server refuses it.
    async fn fetch(
        &self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<Option<Vec<PgRow>>, StoreError> {
        match self.connections.fetch_all(query).await {
            Ok(rows) => Ok(Some(rows)),
            Err(sqlx::Error::Database(error)) => {
                tracing::debug!(target: "idem::store", %error, "Postgres refused a batch");
                Ok(None)
            }
            Err(error) => Err(store_error(&error)),
        }
    }
}

#[derive(Debug)]
pub(super) struct Reserving(pub(super) Link);

impl Trip for Reserving {
    type Request = Reserve;
    type Reply = Inserted;

    async fn alone(&self, request: &Reserve) -> Result<Inserted, StoreError> {
        let Link { connections, texts } = &self.0;
        let mut tries = Tries::new();
        while tries.again().await {
            match connections.fetch_one(texts.reserve(request)).await {
                Ok(row) => {
                    let (won, looked) = rows::found(&row)?;
                    if let Some(fence) = won {
                        return Ok(Inserted::Won(fence));
                    }
                    if looked.record.is_some() {
                        return Ok(Inserted::Found(looked));
                    }
                }
                Err(error) if is_conflict(&error) => {}
                Err(error) => return Err(store_error(&error)),
            }
        }
        Err(swap::in_the_way())
    }

    async fn together(&self, requests: &[Reserve]) -> Result<Replies<Inserted>, StoreError> {
        let texts = &self.0.texts;
        let each = |of: fn(&Reserve) -> Vec<u8>| requests.iter().map(of).collect::<Vec<_>>();
        let operations: Vec<_> = requests.iter().map(|r| r.operation.as_str()).collect();
        let labels: Vec<_> = requests
            .iter()
            .map(|r| r.label.as_ref().map(Label::as_str))
            .collect();
        let scopes: Vec<_> = requests
            .iter()
            .map(|r| r.scope.as_ref().map(<[u8; 32]>::as_slice))
            .collect();
        let leases: Vec<_> = requests.iter().map(|r| r.lease_us).collect();
        let versions: Vec<_> = requests
            .iter()
            .map(|r| r.version.as_ref().map(|v| v.as_bytes().to_vec()))
            .collect();
        let query = texts
            .query(&texts.statements.reserve_many)
            .bind(each(|r| r.id.as_bytes().to_vec()))
            .bind(operations)
            .bind(labels)
            .bind(scopes)
            .bind(each(|r| r.fingerprint.as_bytes().to_vec()))
            .bind(each(|r| write_elements(&r.elements)))
            .bind(each(|r| r.claim.as_bytes().to_vec()))
            .bind(leases)
            .bind(versions)
            .bind(texts.clock_us());
        let Some(found) = self.0.fetch(query).await? else {
            return Ok(Replies::Refused);
        };
        let mut replies = HashMap::with_capacity(found.len());
        for row in &found {
            replies.insert(rows::asked(row)?, inserted(row));
        }
        let reply = |request: &Reserve| {
            let reply = replies.remove(&request.id);
            reply.unwrap_or_else(|| Err(damaged("reply")))
        };
        Ok(Replies::Each(requests.iter().map(reply).collect()))
    }
}

/// What one of many came to. Neither won nor found is asked again by whoever
/// asked: another session has committed the same key meanwhile.
fn inserted(row: &PgRow) -> Result<Inserted, StoreError> {
    let (won, looked) = rows::found(row)?;
    Ok(won.map_or(Inserted::Found(looked), Inserted::Won))
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
        let texts = &self.0.texts;
        let ends: Vec<_> = requests.iter().map(|r| Ended::of(&r.ending)).collect();
        let holders = || requests.iter().map(|request| &request.holder);
        let query = texts
            .query(&texts.statements.complete_many)
            .bind(
                holders()
                    .map(|h| h.id.as_bytes().as_slice())
                    .collect::<Vec<_>>(),
            )
            .bind(
                holders()
                    .map(|h| h.claim.as_bytes().as_slice())
                    .collect::<Vec<_>>(),
            )
            .bind(holders().map(|h| h.fence).collect::<Vec<_>>())
            .bind(ends.iter().map(|end| end.state).collect::<Vec<_>>())
            .bind(requests.iter().map(|r| r.ttl_us).collect::<Vec<_>>())
            .bind(ends.iter().map(|end| end.reason).collect::<Vec<_>>())
            .bind(ends.iter().map(|end| end.codec).collect::<Vec<_>>())
            .bind(ends.iter().map(|end| end.failed).collect::<Vec<_>>())
            .bind(ends.iter().map(|end| end.bytes).collect::<Vec<_>>())
            .bind(ends.iter().map(|end| end.digest).collect::<Vec<_>>())
            .bind(texts.clock_us());
        let Some(ended) = self.0.fetch(query).await? else {
            return Ok(Replies::Refused);
        };
        let mut done = std::collections::HashSet::with_capacity(ended.len());
        for row in &ended {
            let id = row.try_get::<Vec<u8>, _>(0).map_err(|_| damaged("id"))?;
            done.insert(RecordId::from_bytes(fixed(id, "id")?));
        }
        let replies = holders().map(|holder| Ok(done.contains(&holder.id)));
        Ok(Replies::Each(replies.collect()))
    }
}
