//! Recovery points inside of a body.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{Kept, keep_json};
use crate::context::{Context, context};
use crate::engine::steps::{self, CODEC, Running};
use crate::error::{Error, StepReason};
use crate::record::TombstoneReason;
use crate::store::Step;

/// Runs a part of the body that is not done again once it has finished.
///
/// What it gives is kept beside the record. If the process then dies, the
/// attempt that takes over under `rerun` or `recover` gets it back instead of
/// running the step again. It gets the same value in the first attempt too: a
/// copy that was read back from what is kept.
///
/// An `Err` is not kept: it goes through, and the next attempt runs the step
/// again. So does a step that was cut off between its effect and its record:
/// let it send [`Context::downstream_key`] with its own label.
///
/// Steps live and die with the record: when it is completed, released, settled
/// by hand or expired, they are gone, and the next run of the key does all of
/// them. They belong to one payload and version.
///
/// # Labels
/// A label has 1 to 128 bytes without control characters, is used once an
/// attempt, and stays the same over deploys. It is stored in clear and shown in
/// errors: no data of people.
///
/// A step that was finished is found by its label. One that was not runs only
/// if no finished step of another label stood where it begins, or before, that
/// this attempt has not asked for: else a renamed step would be done twice.
/// Retry inside of a step, not around it.
///
/// # Concurrent steps
/// Steps may run at the same time, as by `join!`. Of a step that began while
/// another one ran only the label counts, so renaming it is not noticed. A step
/// cannot begin inside of another one.
///
/// # Cost
/// One write to the store. An attempt that takes over reads once, at its first
/// step. A result counts against the limit of an answer (1 MiB).
///
/// # Cancel safety
/// Dropped before `future` has ended, the step has not finished; dropped later,
/// its record is written all the same.
///
/// # Errors
/// [`Error::NoContext`] outside of a body, and in a call that runs unprotected;
/// [`Error::Step`] if it cannot begin, or its result cannot be kept or read back; [`Error::Superseded`] if the lease is over or another
/// attempt took over; [`Error::Store`] if the store did not answer or did not
/// confirm. After `Step` with [`NotKept`](StepReason::NotKept), `Superseded` and `Store`
/// the step may have run, and nothing hides it. A body that then returns `Err`
/// leaves its record unknown.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # let engine = idem::Engine::builder(idem::store::MemoryStore::new()).build().await?;
/// # async fn reserve_stock() -> Result<u32, idem::Error> { Ok(7) }
/// # async fn capture(_: u32, key: String) -> Result<String, idem::Error> { Ok(key) }
/// let receipt: Result<String, idem::Error> = engine
///     .call("orders.place", &"o-7", Duration::from_secs(60))
///     .on_unknown(idem::OnUnknown::Rerun)
///     .run(async {
///         let stock = idem::step("reserve-stock", reserve_stock()).await?;
///         idem::step("capture", async {
///             capture(stock, idem::context()?.downstream_key("capture")).await
///         })
///         .await
///     })
///     .await;
/// assert_eq!(receipt?.len(), 64);
/// # Ok(()) }
/// ```
pub async fn step<T, E, F>(label: &str, future: F) -> Result<T, E>
where
    T: Serialize + DeserializeOwned,
    E: From<Error>,
    F: Future<Output = Result<T, E>>,
{
    let context = context()?;
    let running = match enter(&context, label).await {
        Ok(Entered::Finished(value)) => return Ok(value),
        Ok(Entered::Run(running)) => running,
        Err(error) => return Err(spoiled(&context, error)),
    };
    let value = context.within_step().scope(future).await?;
    match record(&context, &running, label, value).await {
        Ok(copy) => Ok(copy),
        Err(error) => Err(spoiled(&context, error)),
    }
}

/// An error of ours must not become the recorded answer.
fn spoiled<E: From<Error>>(context: &Context, error: Error) -> E {
    context.taint(None);
    error.into()
}

enum Entered<T> {
    /// An earlier attempt has finished it.
    Finished(T),
    Run(Running),
}

async fn enter<T: DeserializeOwned>(context: &Context, label: &str) -> Result<Entered<T>, Error> {
    let running = steps::begin(context, label)?;
    Ok(match running.finished(context.engine()).await? {
        Some(step) => Entered::Finished(read(context, &step)?),
        None => Entered::Run(running),
    })
}

fn read<T: DeserializeOwned>(context: &Context, step: &Step) -> Result<T, Error> {
    let unreadable = |reason| Error::step(&step.label, StepReason::NotReadable(reason));
    if !step.is_intact(&context.record_id()) {
        return Err(unreadable(TombstoneReason::Damaged));
    }
    if step.codec != CODEC {
        return Err(unreadable(TombstoneReason::OtherCodec));
    }
    serde_json::from_slice(&step.bytes).map_err(|_| unreadable(TombstoneReason::NotDecodable))
}

async fn record<T>(context: &Context, running: &Running, label: &str, value: T) -> Result<T, Error>
where
    T: Serialize + DeserializeOwned,
{
    let not_kept = |reason| Error::step(label, StepReason::NotKept(reason));
    let engine = context.engine();
    let bytes = match keep_json(&value, engine.limits.answer_limit) {
        Kept::Bytes(bytes) => bytes,
        Kept::Nothing(reason) => return Err(not_kept(reason)),
    };
    let copy = serde_json::from_slice(&bytes);
    let copy = copy.map_err(|_| not_kept(TombstoneReason::NotDecodable))?;
    drop(value);
    running.record(engine, bytes).await?;
    Ok(copy)
}
