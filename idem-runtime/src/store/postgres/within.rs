//! Inside of the caller's transaction, on the caller's connection.

use async_trait::async_trait;
use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use super::{PostgresStore, error, rows};
use crate::error::{StoreError, StoreErrorKind};
use crate::store::sql::damaged;
use crate::store::swap::{self, Tries};
use crate::store::transactional::{Entrance, Transactional, other_database, other_kind};
use crate::store::{Complete, Reserve, Reserved, Won, Written};
use crate::transaction::Session;
use crate::transition;

fn connection(session: Session<'_>) -> Result<&mut PgConnection, StoreError> {
    match session {
        Session::Postgres(conn) => Ok(conn),
        _ => Err(other_kind()),
    }
}

/// Classifies an error of a statement on the caller's connection: after it, the
/// server only takes a rollback.
pub(crate) fn in_session(error: &sqlx::Error) -> StoreError {
    let (kind, what) = match error::code(error).as_deref() {
        // No such table, or schema.
        Some("42P01" | "3F000") => return other_database(),
        Some("25P02") => (
            StoreErrorKind::Transient,
            "an earlier statement of the transaction failed, so it can only be rolled back",
        ),
        Some("25006") => (
            StoreErrorKind::Misconfigured,
            "the transaction is read-only",
        ),
        Some("40001" | "40P01") => (
            StoreErrorKind::Transient,
            "another transaction was in the way, so this one can only be rolled back",
        ),
        Some("55P03" | "57014") => (
            StoreErrorKind::Transient,
            "a statement took longer than the session allows, so the transaction can only be rolled back",
        ),
        _ => return error::store_error(error),
    };
    tracing::debug!(target: "idem::store", error = %error, "Postgres error");
    StoreError::new(kind, what).with_code(error::code(error).unwrap_or_default())
}

/// The lock's number, of the digest and the set of tables, so that two records
/// hardly share one.
fn lock_of(request: &Reserve, instance: &[u8; 16]) -> i64 {
    let bytes = request.id.as_bytes().iter().zip(instance).take(8);
    bytes.fold(0, |number, (id, instance)| {
        (number << 8) | i64::from(id ^ instance)
    })
}

#[async_trait]
impl Transactional for PostgresStore {
    async fn reserve_in(
        &self,
        session: Session<'_>,
        instance: &[u8; 16],
        request: &Reserve,
    ) -> Result<Entrance, StoreError> {
        let conn = connection(session)?;
        let texts = &self.link.texts;
        let failed = |error: sqlx::Error| in_session(&error);
        let mut tries = Tries::new();
        while tries.again().await {
            let query = texts.query(&texts.statements.reserve_in);
            let row = rows::bind_request(query, request)
                .bind(request.version.as_ref().map(|v| v.as_bytes().to_vec()))
                .bind(texts.clock_us())
                .bind(lock_of(request, instance))
                .bind(instance.as_slice())
                .fetch_one(&mut *conn)
                .await
                .map_err(failed)?;
            let is = |what: &str| {
                row.try_get::<bool, _>(what)
                    .map_err(|_| damaged("transaction"))
            };
            if !is("same")? {
                return Err(other_database());
            }
            if !is("sees")? {
                return Err(isolated());
            }
            if !is("free")? {
                return Ok(Entrance::Held { waited: false });
            }
            let (won, looked) = rows::found(&row)?;
            if let Some(fence) = won {
                return Ok(Entrance::Answered(Reserved::Won(Won {
                    fence,
                    attempt: 1,
                    doubt: false,
                    doubt_for_us: 0,
                    resent: false,
                })));
            }
            // Committed after this statement began: the next one sees it.
            let Some(seen) = looked.record else {
                continue;
            };
            let decision = transition::reserve_in_transaction(Some(&seen), request, looked.now_us);
            let Some(next) = decision.write else {
                return Ok(Entrance::Answered(decision.reply));
            };
            let swapped = texts
                .swap(&seen, &next)
                .execute(&mut *conn)
                .await
                .map_err(failed)?;
            if swapped.rows_affected() == 1 {
                return Ok(Entrance::Answered(decision.reply));
            }
        }
        Err(swap::in_the_way())
    }

    async fn complete_in(
        &self,
        session: Session<'_>,
        request: &Complete,
    ) -> Result<Written, StoreError> {
        let conn = connection(session)?;
        let done = self
            .link
            .texts
            .complete(request)
            .execute(conn)
            .await
            .map_err(|error| in_session(&error))?;
        Ok(if done.rows_affected() == 1 {
            Written::Done
        } else {
            Written::Superseded
        })
    }
}

fn isolated() -> StoreError {
    StoreError::new(
        StoreErrorKind::Misconfigured,
        "the transaction's isolation is above READ COMMITTED, so it cannot see an answer that was committed since it began: begin it with READ COMMITTED",
    )
}
