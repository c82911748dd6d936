//! The one connection that writes, on a thread of its own.
//!
//! Whatever waits when it is free goes into one `BEGIN IMMEDIATE … COMMIT`, and
//! the callers are answered after the commit: one flush for many, and no delay
//! when there is only one. `BEGIN IMMEDIATE` is what makes each decision
//! atomic: between a record's read and its write nobody else writes.

use rusqlite::Connection;

use super::connection::{Database, begin, execute};
use super::error::store_error;
use super::jobs::{self, Done, Inbox, Job, Jobs, Op};
use super::time::StoreTime;
use super::{gone, no_thread, rows, schema, statements, steps};
use crate::error::{StoreError, StoreErrorKind};
use crate::fault;
use crate::identity::RecordId;
use crate::record::Record;
use crate::store::{Audited, Meta, Settle, Written};
use crate::sync::oneshot;
use crate::transition::{self, Decision};

/// Opens the file and its schema on the thread that writes from then on.
pub(super) async fn start(database: Database, time: StoreTime) -> Result<Jobs, StoreError> {
    let (jobs, inbox) = jobs::queue();
    let (opened, opens) = oneshot::channel();
    std::thread::Builder::new()
        .name("idem-sqlite".to_owned())
        .spawn(move || match open(&database, &time) {
            Ok(conn) => {
                opened.send(Ok(())).ok();
                let writer = Writer {
                    database,
                    conn: Some(conn),
                    time,
                };
                writer.serve(inbox);
            }
            Err(error) => drop(opened.send(Err(error))),
        })
        .map_err(|_| no_thread())?;
    opens.await.map_err(|_| gone())??;
    Ok(jobs)
}

fn open(database: &Database, time: &StoreTime) -> Result<Connection, StoreError> {
    if !database.create {
        // Before anything is asked of it that would change another's file.
        schema::require(&database.path)?;
    }
    let conn = database.connect()?;
    if database.create {
        schema::migrate(&conn, time.host_us())?;
    }
    // The host's clock may have stepped back since the file was written.
    time.stored(&conn).map_err(|error| store_error(&error))?;
    Ok(conn)
}

/// The writing connection and what it takes to open it again.
struct Writer {
    database: Database,
    /// None after an error inside a transaction, until it is opened again:
    /// closing is the rollback that cannot fail.
    conn: Option<Connection>,
    time: StoreTime,
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
    fn serve(mut self, mut inbox: Inbox) {
        let mut batch = Vec::new();
        while inbox.wait(&mut batch) {
            match self.transact(&mut batch) {
                Ok(results) => answer(&mut batch, results),
                Err(failed) if failed.inside && batch.len() > 1 => {
                    // One bad job must not fail its neighbours.
                    for job in std::mem::take(&mut batch) {
                        self.serve_one(job);
                    }
                }
                Err(failed) => refuse(&mut batch, &failed.error),
            }
        }
    }

    fn serve_one(&mut self, job: Job) {
        let mut alone = vec![job];
        match self.transact(&mut alone) {
            Ok(results) => answer(&mut alone, results),
            Err(failed) => refuse(&mut alone, &failed.error),
        }
    }

    /// Runs jobs in one transaction. An error means that none of them
    /// happened, unless it is ambiguous.
    fn transact(&mut self, batch: &mut Vec<Job>) -> Result<Results, Failed> {
        let outside = |error| Failed {
            error,
            inside: false,
        };
        let conn = match &mut self.conn {
            Some(conn) => conn,
            none => none.insert(self.database.connect().map_err(outside)?),
        };
        if let Err(error) = begin(conn) {
            if error.kind() != StoreErrorKind::Transient {
                self.conn = None;
            }
            return Err(outside(error));
        }
        // Whoever waited for the lock in vain has been told so: not running it
        // now keeps that true.
        batch.retain(|job| !job.reply.is_closed());
        let ran = match run_all(conn, batch, &self.time) {
            Ok(results) => match execute(conn, statements::COMMIT) {
                Ok(()) => return Ok(results),
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

fn answer(batch: &mut Vec<Job>, results: Results) {
    for (job, result) in batch.drain(..).zip(results) {
        fault::point_on_thread(match job.op {
            Op::Reserve(_) => "reserve-committed",
            Op::Complete(_) => "complete-committed",
            _ => "other-committed",
        });
        // The caller may have gone; what was written stays.
        job.reply.send(result).ok();
    }
}

fn refuse(batch: &mut Vec<Job>, error: &StoreError) {
    for job in batch.drain(..) {
        job.reply.send(Err(error.clone())).ok();
    }
}

fn run_all(conn: &Connection, batch: &[Job], time: &StoreTime) -> rusqlite::Result<Results> {
    let now_us = time.in_transaction(conn)?;
    let mut results = Vec::with_capacity(batch.len());
    for job in batch {
        results.push(run(conn, &job.op, now_us)?);
    }
    Ok(results)
}

/// Runs one job. The outer error rolls back, the inner one is this job's own.
fn run(conn: &Connection, op: &Op, now_us: i64) -> rusqlite::Result<Result<Done, StoreError>> {
    Ok(match op {
        Op::Pin(meta) => Ok(Done::Pinned(pin(conn, meta, now_us)?)),
        Op::Reserve(request) => step(conn, &request.id, |current| {
            transition::reserve(current, request, now_us)
        })?
        .map(Done::Reserved),
        Op::Complete(request) => step(conn, &request.holder.id, |current| {
            transition::complete(current, request, now_us)
        })?
        .map(Done::Written),
        Op::Release(request) => step(conn, &request.holder.id, |current| {
            transition::release(current, request, now_us)
        })?
        .map(Done::Written),
        Op::MarkUnknown(request) => step(conn, &request.holder.id, |current| {
            transition::mark_unknown(current, request, now_us)
        })?
        .map(Done::Written),
        Op::Sweep(request) => {
            let before_us = now_us.saturating_sub(request.grace_us);
            let deleted = conn
                .prepare_cached(statements::SWEEP)?
                .execute((before_us, request.limit))?;
            Ok(Done::Swept(deleted as u64))
        }
        Op::Settle(request) => settle(conn, request, now_us)?.map(Done::Written),
        Op::RecordStep(request) => steps::record(conn, request, now_us)?.map(Done::Written),
    })
}

/// Reads a record, decides, and writes: atomic inside the transaction.
pub(super) fn step<T>(
    conn: &Connection,
    id: &RecordId,
    decide: impl FnOnce(Option<&Record>) -> Decision<T>,
) -> rusqlite::Result<Result<T, StoreError>> {
    let current = match rows::find(conn, id)? {
        Ok(current) => current,
        Err(damaged) => return Ok(Err(damaged)),
    };
    let decision = decide(current.as_ref());
    if let Some(record) = &decision.write {
        rows::write(conn, record)?;
    }
    Ok(Ok(decision.reply))
}

/// Changes a record by hand, with its entry in the audit.
fn settle(
    conn: &Connection,
    request: &Settle,
    now_us: i64,
) -> rusqlite::Result<Result<Written, StoreError>> {
    let mut was = None;
    let written = step(conn, &request.id, |current| {
        was = current.map(|record| record.state);
        transition::settle(current, request, now_us)
    })?;
    if let (Ok(Written::Done), Some(was)) = (&written, was) {
        let entry = Audited::of(request, was, now_us);
        rows::note(conn, &request.id, &entry)?;
    }
    Ok(written)
}

fn pin(conn: &Connection, meta: &Meta, now_us: i64) -> rusqlite::Result<Meta> {
    conn.prepare_cached(statements::PIN)?.execute((
        meta.format.as_str(),
        meta.instance.as_slice(),
        meta.secret_check.as_slice(),
        now_us,
    ))?;
    conn.prepare_cached(statements::META)?.query_row((), |row| {
        Ok(Meta {
            format: row.get(0)?,
            instance: row.get(1)?,
            secret_check: row.get(2)?,
        })
    })
}
