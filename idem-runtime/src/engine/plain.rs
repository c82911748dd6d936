//! A call without an annotated function.

use std::borrow::Cow;
use std::fmt::Display;

use serde::Serialize;

use super::Engine;
use super::call::Call;
use super::driver;
use crate::__private;
use crate::answer::{Answer, ErrorMapping, FromError, MapError, policy};
use crate::codec::Json;
use crate::error::Error;
use crate::outcome::{self, Outcome};
use crate::policy::{OnInProgress, OnStale, OnUnknown, Recovered, Ttl};
use crate::version::Version;

/// A call that [`Engine::call`] started; its defaults are the attribute's.
#[derive(Debug)]
#[must_use = "call `run`"]
pub struct PlainCall<P = policy::Store, M = FromError> {
    call: Call,
    policy: P,
    map: M,
}

impl PlainCall {
    pub(super) fn new<K: Serialize + ?Sized>(
        engine: &Engine,
        operation: Cow<'static, str>,
        key: &K,
        ttl: Ttl,
    ) -> Self {
        Self {
            call: Call::plain(operation).engine(engine).ttl(ttl).key(key),
            policy: policy::Store,
            map: FromError,
        }
    }
}

impl<M> PlainCall<policy::Store, M> {
    /// Makes this a call in the transaction that has begun on `conn`: reservation,
    /// body and answer commit or roll back with it.
    ///
    /// Needs the feature `tx`. The engine's store must be in the same database. An
    /// `Err` of the body is not recorded unless
    /// [`TxCall::on_error`](super::TxCall::on_error) says so. A choice of
    /// `on_unknown` is refused when the call is made.
    ///
    /// # Examples
    /// ```
    /// # #[cfg(feature = "tx")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("shop.db");
    /// use std::time::Duration;
    ///
    /// use idem::store::SqliteStore;
    /// use idem::sqlx::{self, Connection, SqliteConnection};
    ///
    /// let engine = idem::Engine::builder(SqliteStore::open(&path).await?).build().await?;
    /// let mut conn = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await?;
    /// sqlx::query("CREATE TABLE orders (id TEXT)").execute(&mut conn).await?;
    ///
    /// for _ in 0..2 {
    ///     let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    ///     let number: Result<u32, idem::Error> = engine
    ///         .call("orders.place", &"o-7", Duration::from_secs(3600))
    ///         .in_transaction(&mut tx)
    ///         .run(async |conn| {
    ///             let insert = sqlx::query("INSERT INTO orders VALUES ('o-7')");
    ///             insert.execute(conn).await.expect("the table is there");
    ///             Ok(42)
    ///         })
    ///         .await;
    ///     assert_eq!(number?, 42);
    ///     tx.commit().await?;
    /// }
    /// let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(&mut conn).await?;
    /// assert_eq!(rows, 1);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "tx"))] fn main() {}
    /// ```
    pub fn in_transaction<C>(
        self,
        conn: &mut C,
    ) -> super::TxCall<'_, C::Connection, policy::Unknown, M>
    where
        C: crate::transaction::TxConnection,
    {
        super::TxCall {
            call: self.call,
            policy: policy::Unknown,
            map: self.map,
            within: driver::Within::Transaction,
            conn: conn.connection(),
            session: crate::transaction::TxConnection::session,
        }
    }
}

impl<P, M> PlainCall<P, M> {
    fn with(self, change: impl FnOnce(Call) -> Call) -> Self {
        Self {
            call: change(self.call),
            ..self
        }
    }

    /// Sets the arguments that must be equal when the key repeats. The elements
    /// of a tuple of several are named by their position when they differ.
    pub fn payload<T: Serialize + ?Sized>(self, payload: &T) -> Self {
        self.with(|call| call.payload_element(Cow::Borrowed(""), payload))
    }

    /// Sets the tenant or caller, part of the identity.
    pub fn scope<T: Serialize + ?Sized>(self, scope: &T) -> Self {
        self.with(|call| call.scope(scope))
    }

    /// Sets text for operators, stored in clear, cut to 128 bytes.
    pub fn label(self, label: &(impl Display + ?Sized)) -> Self {
        self.with(|call| call.label(label))
    }

    /// Sets what orders the calls of this key: once a version is recorded, a
    /// lower one never runs, the same one is replayed, and a higher one runs
    /// again. The payload is compared between equal versions only.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let engine = idem::Engine::builder(idem::store::MemoryStore::new()).build().await?;
    /// let apply = |version: u64| {
    ///     let call = engine.call("customer.apply", &7, Duration::from_secs(3_600));
    ///     call.version(&version).run(async move { Ok::<_, idem::Error>(version) })
    /// };
    /// assert_eq!(apply(2).await?, 2);
    /// assert!(apply(1).await.is_err_and(|error| error.is_stale()));
    /// assert_eq!(apply(3).await?, 3);
    /// # Ok(()) }
    /// ```
    pub fn version<V: Version + ?Sized>(self, version: &V) -> Self {
        self.with(|call| call.version(version))
    }

    /// Sets what happens when a newer version is recorded. Default: the error
    /// [`Error::Stale`](crate::Error::Stale). Without
    /// [`version`](Self::version) the call is refused.
    pub fn on_stale(self, choice: OnStale) -> Self {
        self.with(|call| call.on_stale(choice))
    }

    /// Sets what happens while another attempt runs. Default: wait 30 s.
    pub fn on_in_progress(mut self, choice: OnInProgress) -> Self {
        self.call.on_in_progress(choice);
        self
    }

    /// Sets what happens when an earlier attempt ended without an answer.
    /// Default: refuse. To ask the outside world, use
    /// [`run_or_recover`](Self::run_or_recover).
    pub fn on_unknown(mut self, choice: OnUnknown) -> Self {
        if choice == OnUnknown::Recover {
            self.call.fail(Error::misuse(
                "`on_unknown(OnUnknown::Recover)` has nobody to ask: call `run_or_recover(probe, body)` instead",
            ));
        }
        self.call.on_unknown(choice);
        self
    }

    /// Sets what happens when the body returns `Err`. Default: it is recorded.
    pub fn on_error<Q>(self, policy: Q) -> PlainCall<Q, M> {
        PlainCall {
            call: self.call,
            policy,
            map: self.map,
        }
    }

    /// Sets how an error of the engine's becomes an `E`. Default: `From`.
    pub fn map_err<F>(self, map: F) -> PlainCall<P, MapError<F>> {
        PlainCall {
            call: self.call,
            policy: self.policy,
            map: MapError(map),
        }
    }

    /// Runs the body once, in a task of its own, or replays its answer.
    ///
    /// # Concurrent calls
    /// One runs; the others wait for its answer.
    ///
    /// # Cancel safety
    /// Dropping the future before the body's first poll runs nothing. After
    /// that the body goes on, and its answer is recorded: the next call gets it.
    ///
    /// # Errors
    /// Those of the body, and [`Error`](crate::Error) through `E: From<Error>`.
    ///
    /// # Panics
    /// If the body panics; the outcome is then unknown.
    pub fn run<R, F>(self, body: F) -> impl Future<Output = R> + Send + use<R, F, P, M>
    where
        R: Answer<Json, P, M>,
        F: Future<Output = R> + Send + 'static,
    {
        driver::detached(self.call, R::ops(self.policy, self.map), body)
    }

    /// As [`run`](Self::run), and says how the answer came about.
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub async fn run_detailed<R, F>(self, body: F) -> (R, Outcome)
    where
        R: Answer<Json, P, M>,
        F: Future<Output = R> + Send + 'static,
    {
        let call = driver::detached(self.call, R::ops(self.policy, self.map), body);
        let (answer, outcome) = outcome::observe(call).await;
        (answer, outcome.unwrap_or(Outcome::refused(None)))
    }

    /// As [`run`](Self::run), in the caller's task, so that the body may
    /// borrow.
    ///
    /// # Cancel safety
    /// Dropping the future while the body runs leaves the outcome unknown.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub async fn run_borrowed<R, F>(self, body: F) -> R
    where
        R: Answer<Json, P, M>,
        F: Future<Output = R>,
    {
        let ops = R::ops_in_place(self.policy, self.map);
        driver::in_place(self.call, ops, std::pin::pin!(body)).await
    }

    /// As [`run`](Self::run), and asks the outside world with `probe` first if
    /// an earlier attempt ended without an answer.
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    ///
    /// # Errors
    /// As [`run`](Self::run), and the probe's own, which leave the outcome
    /// unknown.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn run_or_recover<T, E, Q, F>(
        mut self,
        probe: Q,
        body: F,
    ) -> impl Future<Output = Result<T, E>> + Send + use<T, E, Q, F, P, M>
    where
        Result<T, E>: Answer<Json, P, M>,
        T: Send + 'static,
        E: Send + 'static,
        M: ErrorMapping<E> + Clone,
        Q: Future<Output = Result<Recovered<T>, E>> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.call.on_unknown(OnUnknown::Recover);
        let map = self.map.clone();
        let body = async move {
            if __private::must_probe()
                && let Some(answer) = __private::probed(None, probe.await, &map)
            {
                return answer;
            }
            body.await
        };
        driver::detached(self.call, Answer::ops(self.policy, self.map), body)
    }
}
