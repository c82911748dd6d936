//! The `#[idempotent]` attribute of `idem-runtime`. Depend on that crate, which
//! re-exports the attribute as `idem::idempotent`; this one is an implementation
//! detail and moves in lockstep with it.
//!
//! The way of an attribute through this crate:
//!
//! ```text
//! args, input   what was written          (args/, input.rs)
//! check         which rules it breaks     (check/)
//! plan          what was decided          (plan.rs)
//! generate      the tokens                (generate/)
//! ```
//!
//! Mistakes are collected (`diagnostics.rs`) and shown together, beside the
//! untouched function (`fallback.rs`).

mod args;
mod check;
mod diagnostics;
mod fallback;
mod generate;
mod input;
mod pipeline;
mod plan;
mod rename;
mod runtime_path;
mod shape;
mod syntax;
#[cfg(test)]
mod tests;

/// Runs a function once per key, and gives every repeated call the recorded answer.
///
/// ```ignore
/// use idem::idempotent;
///
/// #[idempotent(key = (merchant_id, order_id), payload = (amount, currency), ttl = "24h")]
/// async fn charge(gateway: Gateway, merchant_id: MerchantId, order_id: OrderId, amount: u64, currency: Currency)
///     -> Result<Charge, ChargeError>
/// {
///     gateway.charge(order_id, amount, currency).await
/// }
/// ```
///
/// A call takes five steps: it digests the selected arguments, reserves a record
/// in the store before any side effect, runs the body, records the serialized
/// answer, and gives that same answer to every later call until the TTL ends.
/// Callers that arrive while it runs, in this process or another, wait for it.
///
/// What is promised: until its TTL ends, on a store that keeps what it
/// acknowledged: one recorded answer per key, and at most one run of the body,
/// unless you chose `rerun`, `recover` or `release` for that case.
///
/// # The function
///
/// An `async fn`, free or a method, that returns `Result<T, E>` under any alias.
/// `T` must be serializable and owned. `E` must be able to carry an error of the
/// engine, by `impl From<idem::Error> for E` or [`map_err`](#map_err).
///
/// - Parameters may be patterns, `mut`, `_`, generic, `impl Trait`, or carry `#[cfg]`.
/// - `&mut` parameters and receivers are refused, but for the one that [`tx`](#tx)
///   names: changes made through them would be missing when an answer is replayed.
/// - Borrowed parameters and `&self` need [`clone`](#clone) or
///   [`on_cancel = abandon`](#on_cancel); owned ones and `self: Arc<Self>` need nothing.
/// - Methods below `#[async_trait]`, and a `fn` whose whole body is one
///   `async move` block, boxed or not, work as well, under any alias such as
///   `BoxFuture`.
/// - Arguments live as long as the body and are dropped after it, the last one
///   first, as in any async function; so a permit in `_permit` is held until then.
/// - `#[instrument]` and the like go below this attribute if they shall see only
///   real runs, and above it if they shall see every call. `#[tokio::test]` goes
///   below: it takes the `async` away.
/// - In `macro_rules!`, key and parameters must come from the same side.
///
/// Every shape, with the test that shows it, is in `docs/shapes.md`.
///
/// # Parameters
///
/// `key` and `ttl` are required; everything else has a default that never runs
/// the body a second time. Expressions in `key`, `payload`, `scope`, `version`,
/// `label`, `engine` and `ttl` see the arguments, also those bound by patterns, and
/// `self`. They are evaluated before anything is reserved, so they may not
/// contain `.await`, `?`, `return` or `break`.
///
/// ## `key`
///
/// `key = expression`. **Required.** What makes two calls the same intent: any
/// `Serialize`, borrowed, never moved. The elements of a tuple are taken one by
/// one. Choose what stays the same when the sender repeats itself: an order
/// number, the id of an event.
///
/// Keys that differ on every delivery (`Uuid::new_v4()`, `Utc::now()`, random
/// numbers, a broker's delivery tag) and keys that never differ are compile
/// errors. A key, or an element of a key, that turns out `None` or blank is
/// `Error::InvalidKey`; `idem::optional(x)` says that an absent part is meant.
///
/// ```ignore
/// #[idempotent(key = (event.source, event.id), ttl = "7d")]
/// ```
///
/// ## `ttl`
///
/// `ttl = "24h"`, a `Duration` expression, or `forever`. **Required.** How long
/// an answer is kept, counted from its completion, the same for `Ok` and `Err`.
///
/// Text is checked while compiling: whole numbers with the units `w`, `d`, `h`,
/// `m`, `s`, `ms`, from large to small, each once (`"1h30m"`). Zero is an error.
/// A repeated call after the TTL runs again, so make it longer than the longest
/// time after which a sender may still repeat itself. `forever` is for ever:
/// there is no call yet that forgets a record.
///
/// ```ignore
/// #[idempotent(key = order_id, ttl = Duration::from_secs(config.ttl_seconds))]
/// ```
///
/// ## `name`
///
/// `name = "payments.charge"`, 1 to 128 visible ASCII characters. Default: crate,
/// module path and function, for free functions that are not generic. The name is
/// part of every record's identity.
///
/// **A derived name changes when the code moves, and the records under the old
/// name are then not found**: give a name to everything that matters, or keep the
/// old one with `name = "my_crate::old::path"` after a move. It is required for
/// methods, for generic functions, and for functions inside functions or
/// `impl` blocks (what the attribute cannot see there, the first call refuses).
///
/// ## `scope`
///
/// `scope = expression`. Default: none. The tenant or caller; part of the identity,
/// so that the same key of two tenants is two records, and all records of one can
/// be found and erased.
///
/// ## `payload`
///
/// `payload = expression`. Default: none. What must be equal when a key repeats.
/// A repeated key with another payload is `Error::PayloadMismatch`, which names
/// the elements that differ by their source text, never their values.
///
/// ```ignore
/// #[idempotent(key = order_id, payload = (amount, currency, cart.total()), ttl = "24h")]
/// ```
///
/// ## `version`
///
/// `version = expression`, an `idem::Version`: an integer, a `SystemTime`, a
/// `[u8; N]` (a `UUIDv7`: `id.into_bytes()`), or a pair of those; text is none,
/// because `"10" < "9"`. Default: none. For jobs that apply the newest state of
/// something: what orders the calls of one key, such as the sender's revision.
///
/// | this call's version is | then |
/// |---|---|
/// | lower than the recorded one | `Error::Stale`, or what [`on_stale`](#on_stale) says; the body does not run |
/// | the recorded one | its answer is replayed |
/// | higher | the body runs |
/// | anything else while one runs | it waits, as [`on_in_progress`](#on_in_progress) says, and asks again |
/// | anything else, and an attempt ended without an answer | [`on_unknown`](#on_unknown) decides, for a higher one too |
///
/// The [`payload`](#payload) is compared between equal versions only. An `Err`
/// that is recorded makes lower versions stale as well. The highest version
/// whose answer was an `Ok` is kept for ever, beyond the [`ttl`](#ttl).
/// `docs/sync.md` says what is promised, and what is not.
///
/// ```ignore
/// #[idempotent(key = customer.id, version = customer.revision, ttl = "7d")]
/// ```
///
/// ## `on_stale`
///
/// `error` (default) or `replay`. What a call gets whose version is lower than
/// the recorded one: `Error::Stale { applied }`, or the newest recorded answer,
/// which is of that other version. Needs [`version`](#version).
///
/// ## `label`
///
/// `label = expression`, any `Display`, at most 128 bytes. Default: none. Stored
/// **in clear**, for the people who look at records: an order number, never a card number.
///
/// ## `engine`
///
/// `engine = expression`, any `Borrow<Engine>`. Default: the engine of the task
/// (`engine.scope(..)`), else the installed one. It is evaluated first.
///
/// ```ignore
/// #[idempotent(key = req.id, ttl = "24h", engine = app.idem)]
/// async fn create(State(app): State<App>, Json(req): Json<Request>) -> Result<Json<Order>, ApiError>
/// ```
///
/// ## `on_in_progress`
///
/// `wait("30s")` (the default) or `reject`. What happens while another attempt
/// holds its lease: it runs, or its process died and lease and grace (30 s and
/// 5 s by default) are not over. Wait that long for its answer, then
/// `Error::InProgress`; or that error at once. The text follows the rules of [`ttl`](#ttl).
///
/// ## `on_error`
///
/// What an `Err` of the body means. An `Err` is an answer too: by default a
/// timeout that the body returns is recorded, and replayed until the TTL ends.
///
/// | choice | the `Err` is | needs |
/// |---|---|---|
/// | `store` (default) | recorded, and replayed as the same value | `E: Serialize + DeserializeOwned` |
/// | `store_text` | recorded as text, replayed as `Error::Failed` in your `E` | `E: Display` |
/// | `unknown` | an unknown outcome, see [`on_unknown`](#on_unknown) | |
/// | `classify(path)` | what `fn(&E) -> Disposition` says: `Store`, `Release`, `Unknown` | as `store` |
/// | `classify(path, store_text)` | the same, recorded as text | `E: Display` |
/// | `release` | forgotten: the next call runs again | that an `Err` proves that nothing happened |
///
/// ```ignore
/// #[idempotent(key = order_id, ttl = "24h", on_error = classify(ChargeError::disposition))]
/// ```
///
/// ## `on_unknown`
///
/// What happens when an earlier attempt ended without an answer: a crash, a
/// panic, a lost lease, a shutdown; or when its body runs longer than
/// [`max_run`](#max_run).
///
/// - `refuse` (default): `Error::UnknownOutcome`, until somebody settles it.
/// - `rerun`: the body runs again, so it runs *at least once*. What it did in an
///   `idem::step` that has finished is not done again, here and after `recover`.
/// - `recover(expr)`: asks the outside world first. `expr` is a future of
///   `Result<Recovered<T>, E>`; it may borrow every argument, also those that
///   the body consumes, and is made only when it is needed. It may not contain
///   `.await`, `?` or `return` outside of an `async` block. Under
///   [`finish`](#on_cancel) what it borrows must be `Sync`.
///
/// ```ignore
/// #[idempotent(key = order_id, ttl = "24h", on_unknown = recover(gateway.find(&order_id)))]
/// ```
///
/// ## `on_cancel`
///
/// What happens when the caller's future is dropped: a client that went away, a
/// timeout, `select!`.
///
/// - `finish` (default): the body runs in a task of its own, so it goes on and its
///   answer is recorded. What it uses must be `Send + 'static`.
/// - `abandon`: the body runs in place and may borrow; when it is dropped halfway,
///   the outcome is unknown.
///
/// ## `on_missing_key`
///
/// `error` (default) or `run`. For a key that is one `Option` and turns out
/// `None`: `Error::InvalidKey`, or the body runs unprotected.
///
/// ## `clone`
///
/// `clone = self`, or `clone = (self, request)`. Default: none. Under `finish`,
/// clones `&self` and the listed `&T` parameters once per call for the body's
/// task, through `ToOwned`. Every call pays for it, replays too, so it is meant
/// for types that are cheap to clone.
///
/// In the body, `self` is then the clone. `format!("{self:?}")` hides it from the
/// attribute, in `recover(..)` too: write `format!("{:?}", self)`. In an `impl` block with a lifetime of
/// its own (`impl Shop<'_>`) the clone still borrows; use `abandon` there.
///
/// ## `map_err`
///
/// `map_err = path`, `fn(idem::Error) -> E`. Default: `From<idem::Error>`. For an
/// `E` of another crate.
///
/// ## `codec`
///
/// `codec = path`. Default: `idem::codec::Json`. How an answer is stored: a type
/// that implements `idem::codec::Codec`.
///
/// ## `lease`
///
/// `lease = "30s"`, at least 100 ms. Default: the engine's. How long an attempt
/// counts as alive without a renewal; a shorter lease notices a crash sooner. The
/// text follows the rules of [`ttl`](#ttl).
///
/// ## `max_run`
///
/// `max_run = "15m"`. Default: the engine's (15 minutes). After it the lease is
/// no longer renewed: the body is not aborted, but a warning is logged and the
/// record lapses. A repetition then meets [`on_unknown`](#on_unknown) while the
/// body may still run. Make it longer than the body can take.
///
/// ## `tx`
///
/// `tx = conn` or `tx = savepoint(conn)`. Default: none. The record lives in the
/// caller's transaction on `conn`, a parameter that is `&mut` to a connection or
/// transaction of sqlx: reservation, the body's own rows and the answer commit or
/// roll back together. The engine's store must be the same database. The body
/// runs in place and may borrow. Needs the feature `tx` of `idem-runtime`.
///
/// An `Err` is not recorded, unless [`on_error`](#on_error) is written: roll back.
/// With `savepoint` it undoes what the call has done, and nothing else. If a
/// transaction is committed without an answer, the outcome is unknown.
///
/// [`on_unknown`](#on_unknown), [`on_cancel`](#on_cancel), [`lease`](#lease),
/// [`max_run`](#max_run) and [`clone`](#clone) have no meaning beside it.
/// `docs/same-transaction.md` is the guide.
///
/// ```ignore
/// #[idempotent(key = order_id, ttl = "24h", tx = tx)]
/// async fn place(tx: &mut sqlx::Transaction<'_, sqlx::Postgres>, order_id: OrderId) -> Result<Order, OrderError>
/// ```
///
/// ## `crate`
///
/// `crate = path`. Default: `::idem`, or the name that your manifest gives to
/// `idem-runtime`. Where the runtime is, for crates that re-export it.
///
/// # Concurrent calls
///
/// Calls with the same name, scope and key are ordered by the store: one runs,
/// the others get its answer, or `Error::InProgress` when their patience ends.
/// Inside one process they share one trip to the store. A body that calls the
/// same key again gets `Error::Reentrant`.
///
/// # Cancel safety
///
/// A dropped call never leaves a body running twice.
///
/// - **Before the body is polled first**, nothing has happened: a reservation that
///   was won is given back, and the next caller runs.
/// - **While the body runs**, `finish` lets it go on: the reservation is held, the
///   effect happens, and the next caller gets the answer. `abandon` stops it: the
///   effect may or may not have happened, the record becomes unknown, and the next
///   caller meets [`on_unknown`](#on_unknown).
/// - **After the body has returned**, its answer is always recorded.
///
/// # Errors
///
/// The function returns its own `E`. An error of the engine comes as
/// `E::from(idem::Error)`; none of them is ever recorded as the answer of the
/// call that it is about. A final one of an *inner* call (`PayloadMismatch`,
/// `Stale`, `InvalidKey`, `Fingerprint`, a replayed `Failed`) that the body passes on is
/// an `Err` of the body like any other: under `store` it is recorded and
/// replayed. So turn it into a variant of your own before `is_mismatch()`
/// becomes a 422.
///
/// # Expands to
///
/// The function stays where it is; only its body changes. In outline:
///
/// ```text
/// async fn charge(gateway: Gateway, order_id: OrderId, amount: u64) -> Result<Charge, ChargeError> {
///     let call = Call::new(const { &Site { name, policies, .. } })   // from borrows
///         .ttl(24 h).key(&order_id).payload("amount", &amount);
///     let ops = ops::<Result<Charge, ChargeError>, Json, ..>(Store, FromError);
///     detached(call, ops, async move { /* your body */ }).await
/// }
/// ```
///
/// Your tokens appear once, with their own spans: warnings, errors and coverage
/// are those of the function as you wrote it. Names that start with `__idem` are
/// reserved.
#[proc_macro_attribute]
pub fn idempotent(
    attr: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    pipeline::expand(attr.into(), item.into()).into()
}
