//! Makes a repeated call return the first call's answer instead of doing the
//! work again.
//!
//! The package is `idem-runtime`; its library is named `idem`.
//!
//! What is promised: *until its TTL ends, on a store that keeps what it acknowledged: one recorded answer per key, and at most one run of the body, unless you chose `rerun`, `recover` or `release` for that case.*
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! use idem::store::MemoryStore;
//! use idem::{Engine, idempotent};
//!
//! static CARD: AtomicU32 = AtomicU32::new(0);
//!
//! #[idempotent(name = "payments.charge", key = order, payload = amount, ttl = "24h")]
//! async fn charge(order: String, amount: u64) -> Result<u64, idem::Error> {
//!     CARD.fetch_add(1, Ordering::SeqCst);
//!     Ok(amount)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::builder(MemoryStore::new()).namespace("shop").build().await?;
//! idem::install(engine)?;
//!
//! assert_eq!(charge("o-7".to_owned(), 4_200).await?, 4_200);
//! assert_eq!(charge("o-7".to_owned(), 4_200).await?, 4_200); // replayed
//! assert_eq!(CARD.load(Ordering::SeqCst), 1);
//! # Ok(()) }
//! ```
//!
//! # What a call does
//!
//! 1. It digests the selected arguments: the key makes the record's id, the
//!    payload what must be equal when the key repeats.
//! 2. It reserves the record in the store, before any side effect.
//! 3. It runs the body once.
//! 4. It records the serialized answer, and gives the caller the copy that was
//!    read back from it, so that the first answer equals every replay.
//! 5. Until the TTL ends, every later call gets that answer, and the body is
//!    not polled. Callers that come while it runs, in this process or another,
//!    wait for it.
//!
//! Four questions decide what happens when things go wrong; the attribute's
//! page has them with every other parameter.
//!
//! | question | default | other choices |
//! |---|---|---|
//! | `on_in_progress`: another attempt is running | `wait("30s")` | `wait("5s")`, `reject` |
//! | `on_error`: the body returned `Err` | `store` | `store_text`, `unknown`, `classify(path)`, `release` |
//! | `on_unknown`: an earlier attempt ended without an answer | `refuse` | `rerun`, `recover(expr)` |
//! | `on_cancel`: the caller's future was dropped | `finish` | `abandon` |
//!
//! A body of several effects can be cut into [`step`]s, of which an attempt that
//! takes over does none again that has finished.
//!
//! # Words
//!
//! An *operation* is an annotated function, known by its name. The *key* is
//! what makes two calls the same intent, the *payload* what must then be
//! equal, the *scope* the tenant or caller, the *namespace* the application.
//! They name a *record*, one row in the store. An *attempt* is one try at
//! running the body; it holds the record by a random *claim* and by a *fence*,
//! a number that only grows, for as long as its *lease* is renewed. The *TTL*
//! counts from completion. A record is *in progress*; *completed*, and then
//! replayed; *released*: nothing happened, the next caller runs; *unknown*: the
//! effect may or may not have happened; or a *tombstone*: done, but its answer
//! cannot be given back. *Sweep* deletes what has expired.
//!
//! # Modules
//!
//! | module | what it is |
//! |---|---|
//! | [`admin`] | records from code: what is stuck, and settling it |
//! | [`store`] | the contract of a store, and the stores |
//! | [`record`], [`transition`] | the row, and who may change it into what |
//! | [`canonical`], [`identity`] | how arguments become digests |
//! | [`codec`] | how an answer is stored |
//! | [`transaction`] | calls in their caller's transaction (feature `tx`) |
//! | [`inbox`](mod@inbox) | messages of a queue, each handled once |
//! | [`http`] | the layer for `Idempotency-Key`, parts for handlers (feature `http`) |
//! | [`telemetry`] | metrics, spans and events, and their names |
//! | [`fault`] | named points at which tests stop or kill a call |
//!
//! Calls without an annotated function start at [`Engine::call`]; a body asks
//! about its attempt with [`context`]; [`observe`] says how an answer came
//! about. [`batch`] makes many calls, [`Error::delivery`] says what a queue
//! consumer tells its broker.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `macros` | yes | the attribute `idempotent` |
//! | `sqlite` | yes | `SqliteStore`, with `SQLite` itself bundled |
//! | `postgres` | no | `PostgresStore` |
//! | `mysql` | no | `MySqlStore`, for `MariaDB` and `MySQL` |
//! | `redis` | no | `RedisStore`, for one server or a cluster |
//! | `tx` | with `postgres` or `mysql` | calls in the caller's own transaction of sqlx: `tx = conn`, [`PlainCall::in_transaction`], [`receive_in`](inbox::Message::receive_in); `idem::sqlx` |
//! | `http` | no | [`http`]: the layer for the `Idempotency-Key` header |
//! | `axum` | no | extractors, a codec for responses, errors as responses |
//! | `metrics` | yes | counters, gauges and histograms through the `metrics` facade |
//! | `testing` | no | for tests: a manual clock, fault points, the conformance suite of stores; no semver promise |
//!
//! # Cancel safety
//!
//! A call whose future is dropped never leaves a body running twice.
//!
//! - Before the body's first poll nothing has happened: a reservation that was
//!   won is given back. What was taken over goes back to unknown.
//! - While the body runs, `finish` lets it go on: the reservation is held, and
//!   the next caller gets its answer. With `abandon` the effect may or may not
//!   have happened, and the next caller meets `on_unknown`.
//! - After the body has returned, its answer is always recorded.
//!
//! Dropping a call does no I/O and needs no runtime. What each `async fn`
//! here leaves behind when it is dropped stands in its own section.
//!
//! # What is not promised
//!
//! - Anything after the TTL: the key is then as good as new.
//! - One effect in a system that knows neither of record nor of fence. A
//!   process that dies between effect and record leaves an unknown outcome, and
//!   a holder that was paused past its lease may act late. Send
//!   [`Context::downstream_key`], or let the resource compare
//!   [`Context::fence`].
//! - Two different keys for one intent, work that outlives the body's own
//!   future, rows that somebody deletes, a restored backup.
//! - Secrecy of digests without a [`Secret`].

extern crate self as idem;

#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../../README.md")]
struct Readme;
#[cfg(all(doctest, feature = "macros", feature = "testing"))]
#[doc = include_str!("../../docs/testing.md")]
struct TestingGuide;
#[cfg(all(doctest, feature = "macros", feature = "testing"))]
#[doc = include_str!("../../docs/recovery.md")]
struct RecoveryGuide;
#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../../docs/operations.md")]
struct OperationsGuide;
#[cfg(all(doctest, feature = "testing"))]
#[doc = include_str!("../../docs/custom-store.md")]
struct CustomStoreGuide;

#[cfg(all(doctest, feature = "macros", feature = "sqlite", feature = "tx"))]
#[doc = include_str!("../../docs/outbox.md")]
struct OutboxGuide;
#[cfg(all(doctest, feature = "macros", feature = "sqlite", feature = "tx"))]
#[doc = include_str!("../../docs/same-transaction.md")]
struct SameTransactionGuide;
#[cfg(all(doctest, feature = "macros", feature = "testing"))]
#[doc = include_str!("../../docs/sync.md")]
struct SyncGuide;

#[cfg(all(doctest, feature = "macros", feature = "axum"))]
#[doc = include_str!("../../docs/http.md")]
struct HttpGuide;

#[cfg(all(doctest, feature = "macros", feature = "sqlite", feature = "tx"))]
#[doc = include_str!("../../docs/queues.md")]
struct QueuesGuide;
#[cfg(doctest)]
#[doc = include_str!("../../docs/leaving-your-own-table.md")]
struct LeavingGuide;

#[doc(hidden)]
pub mod __private;
pub mod admin;
mod answer;
mod backoff;
mod batch;
pub mod canonical;
mod clock;
pub mod codec;
mod context;
mod delivery;
mod engine;
mod error;
pub mod fault;
#[cfg(feature = "http")]
pub mod http;
pub mod identity;
pub mod inbox;
mod outcome;
mod panic;
mod policy;
pub mod record;
mod singleflight;
mod step;
pub mod store;
mod sync;
pub mod telemetry;
pub mod transaction;
pub mod transition;
mod version;

#[cfg(feature = "testing")]
pub mod testing;

pub use self::answer::policy as on_error;
pub use self::batch::{Batch, Running, batch};
pub use self::canonical::optional;
pub use self::clock::{Clock, SystemClock};
pub use self::context::{Context, context};
pub use self::delivery::Delivery;
pub use self::engine::TxCall;
pub use self::engine::{Drained, Engine, EngineBuilder, PlainCall, Stats, connect, install};
pub use self::error::{Error, StepReason, StoreError, StoreErrorKind};
pub use self::identity::{RecordId, Secret};
pub use self::inbox::inbox;
pub use self::outcome::{How, Outcome, observe};
pub use self::policy::{Disposition, OnInProgress, OnStale, OnUnknown, Recovered, Ttl};
pub use self::record::{TombstoneReason, UnknownReason};
pub use self::step::step;
pub use self::version::Version;
#[cfg(feature = "macros")]
pub use idem_macros::idempotent;
#[cfg(feature = "redis")]
pub use redis;
#[cfg(feature = "tx")]
pub use sqlx;
