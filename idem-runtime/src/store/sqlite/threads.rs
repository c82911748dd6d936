//! Threads that do on connections what is asked of them: a few that read, and
//! the one that renews.
//!
//! A driver's call blocks, so none that may take long is made where futures are
//! polled. One jump there and one back are all that it costs.

use std::collections::VecDeque;

use rusqlite::Connection;

use super::connection::Database;
use super::{gone, no_thread};
use crate::error::StoreError;
use crate::sync::{Arc, Condvar, Mutex, lock, oneshot, wait};

type Task = Box<dyn FnOnce(Result<&Connection, StoreError>) + Send>;

/// Threads on one queue. They start when there is more to do than they can
/// take, and end after this is dropped.
#[derive(Debug)]
pub(super) struct Threads(Arc<Shared>);

struct Shared {
    database: Database,
    most: usize,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    /// Connections that nobody uses at the moment.
    spare: Vec<Connection>,
    threads: usize,
    /// Those that wait for work, or are about to wake up for it.
    idle: usize,
    closed: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("database", &self.database)
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

impl Threads {
    pub(super) fn new(database: Database, most: usize) -> Self {
        Self(Arc::new(Shared {
            database,
            most,
            state: Mutex::default(),
            work: Condvar::new(),
        }))
    }

    /// Runs a task on a connection. One whose caller has gone is not begun.
    pub(super) async fn run<T, F>(&self, task: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        self.run_while_wanted(|conn, _| task(conn)).await
    }

    /// As [`run`](Self::run), for a task that asks now and then whether
    /// somebody waits for it still.
    pub(super) async fn run_while_wanted<T, F>(&self, task: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &dyn Fn() -> bool) -> Result<T, StoreError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.push(Box::new(move |conn| {
            let wanted = || !reply.is_closed();
            if !wanted() {
                return;
            }
            let done = conn.and_then(|conn| task(conn, &wanted));
            reply.send(done).ok();
        }))?;
        answer.await.map_err(|_| gone())?
    }

    /// Does a task here and now, on a connection that nobody uses. None if
    /// there is no such connection, or if the task gave nothing.
    pub(super) fn at_once<T>(&self, task: impl FnOnce(&Connection) -> Option<T>) -> Option<T> {
        let lent = Lent {
            conn: Some(lock(&self.0.state).spare.pop()?),
            shared: &self.0,
        };
        lent.conn.as_ref().and_then(task)
    }

    fn push(&self, task: Task) -> Result<(), StoreError> {
        let mut state = lock(&self.0.state);
        state.tasks.push_back(task);
        if state.tasks.len() <= state.idle {
            // Whoever wakes up takes the lock at once.
            drop(state);
            self.0.work.notify_one();
        } else if state.threads < self.0.most {
            let shared = Arc::clone(&self.0);
            let started = std::thread::Builder::new()
                .name("idem-sqlite".to_owned())
                .spawn(move || shared.serve());
            if started.is_ok() {
                state.threads += 1;
            } else if state.threads == 0 {
                state.tasks.pop_back();
                return Err(no_thread());
            }
        }
        Ok(())
    }

    /// Returns how many threads there are, and how many of them wait for work.
    #[cfg(feature = "testing")]
    pub(super) fn count(&self) -> (usize, usize) {
        let state = lock(&self.0.state);
        (state.threads, state.idle)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        lock(&self.0.state).closed = true;
        self.0.work.notify_all();
    }
}

impl Shared {
    fn serve(&self) {
        let _leaving = Leaving(self);
        while let Some((task, spare)) = self.next() {
            let conn = match spare.map_or_else(|| self.database.connect(), Ok) {
                Ok(conn) => conn,
                Err(error) => {
                    task(Err(error));
                    continue;
                }
            };
            let lent = Lent {
                conn: Some(conn),
                shared: self,
            };
            if let Some(conn) = &lent.conn {
                task(Ok(conn));
            }
        }
    }

    /// Waits for a task; none is left if this is over. A connection comes with
    /// it, if there is one.
    fn next(&self) -> Option<(Task, Option<Connection>)> {
        let mut state = lock(&self.state);
        loop {
            if let Some(task) = state.tasks.pop_front() {
                return Some((task, state.spare.pop()));
            }
            if state.closed {
                // Closed here, since the last one may have much to do.
                let spare = std::mem::take(&mut state.spare);
                drop(state);
                drop(spare);
                return None;
            }
            state.idle += 1;
            state = wait(&self.work, state);
            state.idle -= 1;
        }
    }
}

/// A connection in use, until dropped.
struct Lent<'a> {
    conn: Option<Connection>,
    shared: &'a Shared,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // What a panic left open ends with the connection.
        if std::thread::panicking() {
            return;
        }
        let mut state = lock(&self.shared.state);
        if state.spare.len() < self.shared.most {
            state.spare.extend(self.conn.take());
        }
    }
}

/// Counts a thread out, also one that panicked.
struct Leaving<'a>(&'a Shared);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.threads -= 1;
        // Nobody is left to do them: whoever waits for one is told.
        let left = match state.threads {
            0 => std::mem::take(&mut state.tasks),
            _ => VecDeque::new(),
        };
        drop(state);
        drop(left);
    }
}
