//! The one connection that writes, on a thread of its own.
//!
//! Whatever waits when it is free goes into one `BEGIN IMMEDIATE … COMMIT`, and
//! the callers are answered after the commit: one flush for many, and no delay
//! when there is only one. `BEGIN IMMEDIATE` is what makes each decision
//! atomic: between a record's read and its write nobody else writes.

use sqlx::Executor as _;
use sqlx::sqlite::SqliteConnection;

use super::error::store_error;
use super::time::StoreTime;
use super::{rows, schema, statements};
use crate::error::{StoreError, StoreErrorKind};
use crate::fault;
use crate::identity::RecordId;
use crate::record::Record;
use crate::store::{Complete, MarkUnknown, Meta, Release, Reserve, Reserved, Sweep, Written};
use crate::sync::{mpsc, oneshot};
use crate::transition::{self, Decision};

/// The most jobs in one transaction.
const BATCH: usize = 256;

pub(super) enum Op {
    Pin(Meta),
    Reserve(Reserve),
    Complete(Complete),
    Release(Release),
    MarkUnknown(MarkUnknown),
    Sweep(Sweep),
}

pub(super) enum Done {
    Pinned(Meta),
    Reserved(Reserved),
    Written(Written),
    Swept(u64),
}

pub(super) struct Job {
    pub(super) op: Op,
    pub(super) reply: oneshot::Sender<Result<Done, StoreError>>,
}

/// Serves jobs until every sender is gone.
pub(super) async fn serve(
    mut conn: SqliteConnection,
    mut jobs: mpsc::Receiver<Job>,
    time: StoreTime,
) {
    let mut batch = Vec::new();
    while jobs.recv_many(&mut batch, BATCH).await > 0 {
        // Nobody waits for it any more: it will be sent again if it matters.
        batch.retain(|job| !job.reply.is_closed());
        let done = transact(&mut conn, &batch, &time).await;
        if done.is_err() && batch.len() > 1 {
            // One bad job must not fail its neighbours.
            for job in batch.drain(..) {
                let done = transact(&mut conn, std::slice::from_ref(&job), &time).await;
                answer(vec![job], done).await;
            }
        } else {
            answer(std::mem::take(&mut batch), done).await;
        }
    }
}

async fn answer(batch: Vec<Job>, done: Result<Vec<Result<Done, StoreError>>, StoreError>) {
    match done {
        Ok(done) => {
            for (job, done) in batch.into_iter().zip(done) {
                fault::point(match job.op {
                    Op::Reserve(_) => "reserve-committed",
                    Op::Complete(_) => "complete-committed",
                    _ => "other-committed",
                })
                .await;
                // The caller may have gone; what was written stays.
                job.reply.send(done).ok();
            }
        }
        Err(error) => {
            for job in batch {
                job.reply.send(Err(error.clone())).ok();
            }
        }
    }
}

/// Runs jobs in one transaction; an error means that none of them happened,
/// unless it is ambiguous.
async fn transact(
    conn: &mut SqliteConnection,
    batch: &[Job],
    time: &StoreTime,
) -> Result<Vec<Result<Done, StoreError>>, StoreError> {
    schema::begin(conn).await?;
    match run_all(conn, batch, time).await {
        Ok(done) => match conn.execute(statements::COMMIT).await {
            Ok(_) => Ok(done),
            Err(error) => {
                conn.execute(statements::ROLLBACK).await.ok();
                Err(store_error(&error).ambiguous())
            }
        },
        Err(error) => {
            conn.execute(statements::ROLLBACK).await.ok();
            Err(store_error(&error))
        }
    }
}

async fn run_all(
    conn: &mut SqliteConnection,
    batch: &[Job],
    time: &StoreTime,
) -> Result<Vec<Result<Done, StoreError>>, sqlx::Error> {
    let now_us = time.in_transaction(conn).await?;
    let mut done = Vec::with_capacity(batch.len());
    for job in batch {
        done.push(run(conn, &job.op, now_us).await?);
    }
    Ok(done)
}

/// Runs one job. The outer error rolls back, the inner one is this job's own.
async fn run(
    conn: &mut SqliteConnection,
    op: &Op,
    now_us: i64,
) -> Result<Result<Done, StoreError>, sqlx::Error> {
    Ok(match op {
        Op::Pin(meta) => Ok(Done::Pinned(pin(conn, meta, now_us).await?)),
        Op::Reserve(request) => step(conn, &request.id, |current| {
            transition::reserve(current, request, now_us)
        })
        .await?
        .map(Done::Reserved),
        Op::Complete(request) => step(conn, &request.holder.id, |current| {
            transition::complete(current, request, now_us)
        })
        .await?
        .map(Done::Written),
        Op::Release(request) => step(conn, &request.holder.id, |current| {
            transition::release(current, request, now_us)
        })
        .await?
        .map(Done::Written),
        Op::MarkUnknown(request) => step(conn, &request.holder.id, |current| {
            transition::mark_unknown(current, request, now_us)
        })
        .await?
        .map(Done::Written),
        Op::Sweep(request) => {
            let deleted = sqlx::query(statements::SWEEP)
                .bind(now_us.saturating_sub(request.grace_us))
                .bind(i64::from(request.limit))
                .execute(conn)
                .await?;
            Ok(Done::Swept(deleted.rows_affected()))
        }
    })
}

/// Reads a record, decides, and writes: atomic inside the transaction.
pub(super) async fn step<T>(
    conn: &mut SqliteConnection,
    id: &RecordId,
    decide: impl FnOnce(Option<&Record>) -> Decision<T>,
) -> Result<Result<T, StoreError>, sqlx::Error> {
    let row = sqlx::query(statements::FIND)
        .bind(id.as_bytes().as_slice())
        .fetch_optional(&mut *conn)
        .await?;
    let current = match row.as_ref().map(rows::record).transpose() {
        Ok(current) => current,
        Err(damaged) => return Ok(Err(damaged)),
    };
    let decision = decide(current.as_ref());
    if let Some(record) = &decision.write {
        rows::write(record).execute(conn).await?;
    }
    Ok(Ok(decision.reply))
}

async fn pin(conn: &mut SqliteConnection, meta: &Meta, now_us: i64) -> Result<Meta, sqlx::Error> {
    sqlx::query(statements::PIN)
        .bind(meta.format.as_str())
        .bind(meta.instance.as_slice())
        .bind(meta.secret_check.as_slice())
        .bind(now_us)
        .execute(&mut *conn)
        .await?;
    let (format, instance, secret_check): (String, Vec<u8>, Vec<u8>) =
        sqlx::query_as(statements::META).fetch_one(conn).await?;
    Ok(Meta {
        format,
        // The table checks the lengths.
        instance: instance.try_into().unwrap_or_default(),
        secret_check: secret_check.try_into().unwrap_or_default(),
    })
}

pub(super) fn gone() -> StoreError {
    StoreError::new(
        StoreErrorKind::Transient,
        "the thread that writes to the SQLite file ended",
    )
    .ambiguous()
}
