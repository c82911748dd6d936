//! The one connection that writes, on a thread of its own.
//!
//! Whatever waits when it is free goes into one `BEGIN IMMEDIATE … COMMIT`, and
//! the callers are answered after the commit: one flush for many, and no delay
//! when there is only one. `BEGIN IMMEDIATE` is what makes each decision
//! atomic: between a record's read and its write nobody else writes.

use sqlx::Executor as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use super::error::store_error;
use super::time::StoreTime;
use super::{rows, schema, statements, steps};
use crate::error::{StoreError, StoreErrorKind};
use crate::fault;
use crate::identity::RecordId;
use crate::record::Record;
use crate::store::{
    Audited, Complete, MarkUnknown, Meta, RecordStep, Release, Reserve, Reserved, Settle, Sweep,
    Written,
};
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
    Settle(Settle),
    RecordStep(RecordStep),
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

/// The writing connection and what it takes to open it again.
pub(super) struct Writer {
    pub(super) options: SqliteConnectOptions,
    /// None after an error inside a transaction, until it is opened again:
    /// closing is the rollback that cannot fail.
    pub(super) conn: Option<SqliteConnection>,
    pub(super) time: StoreTime,
}

/// Why a transaction did not answer its jobs.
struct Failed {
    error: StoreError,
    /// Whether a job may be to blame, so that the others are worth another try.
    inside: bool,
}

type Results = Vec<Result<Done, StoreError>>;

impl Writer {
    /// Serves jobs until every sender is gone.
    pub(super) async fn serve(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut batch = Vec::new();
        while jobs.recv_many(&mut batch, BATCH).await > 0 {
            match self.transact(&mut batch).await {
                Ok(results) => answer(&mut batch, results).await,
                Err(failed) if failed.inside && batch.len() > 1 => {
                    // One bad job must not fail its neighbours.
                    for job in std::mem::take(&mut batch) {
                        self.serve_one(job).await;
                    }
                }
                Err(failed) => refuse(&mut batch, &failed.error),
            }
        }
    }

    async fn serve_one(&mut self, job: Job) {
        let mut alone = vec![job];
        match self.transact(&mut alone).await {
            Ok(results) => answer(&mut alone, results).await,
            Err(failed) => refuse(&mut alone, &failed.error),
        }
    }

    /// Runs jobs in one transaction. An error means that none of them
    /// happened, unless it is ambiguous.
    async fn transact(&mut self, batch: &mut Vec<Job>) -> Result<Results, Failed> {
        let outside = |error| Failed {
            error,
            inside: false,
        };
        let conn = match &mut self.conn {
            Some(conn) => conn,
            none => none.insert(schema::open(&self.options).await.map_err(outside)?),
        };
        if let Err(error) = schema::begin(conn).await {
            if error.kind() != StoreErrorKind::Transient {
                self.conn = None;
            }
            return Err(outside(error));
        }
        // Whoever waited for the lock in vain has been told so: not running it
        // now keeps that true.
        batch.retain(|job| !job.reply.is_closed());
        let ran = match run_all(conn, batch, &self.time).await {
            Ok(results) => match conn.execute(statements::COMMIT).await {
                Ok(_) => return Ok(results),
                Err(error) => store_error(&error).ambiguous(),
            },
            Err(error) => store_error(&error),
        };
        self.conn = None;
        Err(Failed {
            error: ran,
            inside: true,
        })
    }
}

async fn answer(batch: &mut Vec<Job>, results: Results) {
    for (job, result) in batch.drain(..).zip(results) {
        fault::point(match job.op {
            Op::Reserve(_) => "reserve-committed",
            Op::Complete(_) => "complete-committed",
            _ => "other-committed",
        })
        .await;
        // The caller may have gone; what was written stays.
        job.reply.send(result).ok();
    }
}

fn refuse(batch: &mut Vec<Job>, error: &StoreError) {
    for job in batch.drain(..) {
        job.reply.send(Err(error.clone())).ok();
    }
}

async fn run_all(
    conn: &mut SqliteConnection,
    batch: &[Job],
    time: &StoreTime,
) -> Result<Results, sqlx::Error> {
    let now_us = time.in_transaction(conn).await?;
    let mut results = Vec::with_capacity(batch.len());
    for job in batch {
        results.push(run(conn, &job.op, now_us).await?);
    }
    Ok(results)
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
        Op::Settle(request) => settle(conn, request, now_us).await?.map(Done::Written),
        Op::RecordStep(request) => steps::record(conn, request, now_us)
            .await?
            .map(Done::Written),
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

/// Changes a record by hand, with its entry in the audit.
async fn settle(
    conn: &mut SqliteConnection,
    request: &Settle,
    now_us: i64,
) -> Result<Result<Written, StoreError>, sqlx::Error> {
    let mut was = None;
    let written = step(conn, &request.id, |current| {
        was = current.map(|record| record.state);
        transition::settle(current, request, now_us)
    })
    .await?;
    if let (Ok(Written::Done), Some(was)) = (&written, was) {
        let entry = Audited::of(request, was, now_us);
        rows::note(&request.id, &entry).execute(conn).await?;
    }
    Ok(written)
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
