//! Inside of the caller's transaction, on the caller's connection.

use async_trait::async_trait;
use sqlx::mysql::MySqlConnection;

use super::error::{is_duplicate, is_wait_over, missing_table, rolled_back, store_error};
use super::{Dialect, MySqlStore, rows};
use crate::error::{StoreError, StoreErrorKind};
use crate::store::sql::damaged;
use crate::store::swap::{self, Inserted, Looked, Tries};
use crate::store::transactional::{Entrance, Transactional, other_database, other_kind};
use crate::store::{Complete, Reserve, Reserved, Won, Written};
use crate::transaction::Session;
use crate::transition;

fn connection(session: Session<'_>) -> Result<&mut MySqlConnection, StoreError> {
    match session {
        Session::MySql(conn) => Ok(conn),
        _ => Err(other_kind()),
    }
}

/// Classifies an error of a statement on the caller's connection.
pub(crate) fn in_session(error: &sqlx::Error) -> StoreError {
    if missing_table(error) {
        tracing::debug!(target: "idem::store", error = %error, "MySQL error");
        return other_database();
    }
    match rolled_back(error) {
        Some(number) => {
            tracing::debug!(target: "idem::store", error = %error, "MySQL error");
            gone().with_code(number.to_string())
        }
        None => store_error(error),
    }
}

/// The server has ended the transaction by itself.
fn gone() -> StoreError {
    StoreError::new(
        StoreErrorKind::Transient,
        "the server has rolled the whole transaction back, as it does to end a deadlock: roll back here too, and begin again",
    )
}

/// How an insertion on the caller's connection failed.
enum Failure {
    Store(StoreError),
    /// The session's time for a lock is over.
    Waited,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        if is_wait_over(&error) {
            return Self::Waited;
        }
        Self::Store(in_session(&error))
    }
}

impl MySqlStore {
    /// Inserts a fresh record, or finds and locks what stands there.
    async fn insert_in(
        &self,
        conn: &mut MySqlConnection,
        instance: &[u8; 16],
        request: &Reserve,
    ) -> Result<Inserted, Failure> {
        let texts = &self.link.texts;
        let sql = match texts.dialect {
            Dialect::MariaDb => &texts.statements.reserve_in,
            Dialect::MySql => &texts.statements.insert_in,
        };
        // It has no lease.
        let query = texts.insert(sql, None, request).bind(instance.as_slice());
        match texts.dialect {
            Dialect::MariaDb => {
                let query = query.bind(texts.clock_us());
                let Some(row) = query.fetch_optional(&mut *conn).await? else {
                    return Err(self.why_not(conn, instance).await?.into());
                };
                let (_, looked) = rows::found(&row)?;
                Ok(match &looked.record {
                    Some(record) if record.claim == request.claim => Inserted::Won(record.fence),
                    _ => Inserted::Found(looked),
                })
            }
            Dialect::MySql => match query.execute(&mut *conn).await {
                Ok(done) if done.rows_affected() == 0 => {
                    Err(self.why_not(conn, instance).await?.into())
                }
                Ok(done) if done.last_insert_id() == 0 => {
                    let looked = self.look_in(conn, request).await?;
                    let fence = looked.record.map(|record| record.fence);
                    Ok(Inserted::Won(fence.ok_or_else(|| damaged("fence"))?))
                }
                // A fresh fence is the time of the reservation.
                Ok(done) => Ok(Inserted::Won(
                    i64::try_from(done.last_insert_id()).map_err(|_| damaged("fence"))?,
                )),
                Err(error) if is_duplicate(&error) => {
                    Ok(Inserted::Found(self.look_in(conn, request).await?))
                }
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Reads the newest row and locks it: the transaction's own snapshot may be
    /// older than the answer.
    async fn look_in(
        &self,
        conn: &mut MySqlConnection,
        request: &Reserve,
    ) -> Result<Looked, Failure> {
        let row = self
            .link
            .texts
            .query(&self.link.texts.statements.look_in)
            .bind(self.link.texts.clock_us())
            .bind(request.id.as_bytes().as_slice())
            .fetch_one(conn)
            .await?;
        Ok(rows::found(&row)?.1)
    }

    /// Says why a guarded insertion did nothing.
    async fn why_not(
        &self,
        conn: &mut MySqlConnection,
        instance: &[u8; 16],
    ) -> Result<StoreError, Failure> {
        let same = self
            .link
            .texts
            .query(&self.link.texts.statements.same)
            .bind(instance.as_slice())
            .fetch_optional(conn)
            .await?;
        Ok(if same.is_some() {
            gone()
        } else {
            other_database()
        })
    }
}

#[async_trait]
impl Transactional for MySqlStore {
    async fn reserve_in(
        &self,
        session: Session<'_>,
        instance: &[u8; 16],
        request: &Reserve,
    ) -> Result<Entrance, StoreError> {
        let conn = connection(session)?;
        let mut tries = Tries::new();
        while tries.again().await {
            let looked = match self.insert_in(conn, instance, request).await {
                Ok(Inserted::Won(fence)) => {
                    return Ok(Entrance::Answered(Reserved::Won(Won {
                        fence,
                        attempt: 1,
                        doubt: false,
                        doubt_for_us: 0,
                        resent: false,
                    })));
                }
                Ok(Inserted::Told(reply)) => return Ok(Entrance::Answered(reply)),
                Ok(Inserted::Found(looked)) => looked,
                Err(Failure::Waited) => return Ok(Entrance::Held { waited: true }),
                Err(Failure::Store(error)) => return Err(error),
            };
            // Gone between the two looks: absent is no answer, ask again.
            let Some(seen) = looked.record else {
                continue;
            };
            let decision = transition::reserve_in_transaction(Some(&seen), request, looked.now_us);
            let Some(next) = decision.write else {
                return Ok(Entrance::Answered(decision.reply));
            };
            if transition::begins_life(&seen, &next) {
                let ended = self.link.texts.end_steps(&seen).execute(&mut *conn).await;
                ended.map_err(|error| in_session(&error))?;
            }
            match self.link.texts.swap(&seen, &next).execute(&mut *conn).await {
                Ok(done) if done.rows_affected() == 1 => {
                    return Ok(Entrance::Answered(decision.reply));
                }
                Ok(_) => {}
                Err(error) if is_wait_over(&error) => {
                    return Ok(Entrance::Held { waited: true });
                }
                Err(error) => return Err(in_session(&error)),
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
