//! Metrics, spans and events: every name of one, in one place.
//!
//! Metrics go through the `metrics` facade (feature `metrics`), spans and events
//! through `tracing`. None ever holds a key, a scope, a label, an argument or a
//! stored value: of what users pass, only the names of operations are there, and
//! records appear by the first digits of their id.
//!
//! 1. **Each call is counted once**, in [`names::CALLS`], however it ended:
//!    summed over `outcome` it is the number of calls that were polled.
//! 2. **Each won reservation ends once**, in [`names::ATTEMPTS`]: without those
//!    that ended, [`names::RESERVATIONS`] is what is running, or died with its
//!    process. An attempt that a shutdown marked unknown and that ended after all
//!    is there twice; one in its caller's transaction only if it was completed.
//! 3. **`operation` has as many values as there are names** in the source. What
//!    makes names at run time, one for each tenant, makes as many series.
//! 4. One span a call, `idem.call`, at the level `debug`, around the body too,
//!    with `operation`, and with `outcome`, `attempt` and `record` once they are
//!    known. The target of spans and events is [`TARGET`]; what a database's
//!    driver says of an error goes to `idem::store`, at the level `debug`.
//!
//! The recorder must be the process's (`metrics::set_global_recorder`), since a
//! call crosses threads; installed before the engine is built, it gets the
//! descriptions too.
//!
//! What is in the store, rather than in this process, is known when it is asked:
//! see [`Engine::observe_store`](crate::Engine::observe_store).

mod call;
mod events;
mod gauges;
pub mod names;

pub(crate) use self::call::{Watch, refusal};
pub(crate) use self::events::*;
pub(crate) use self::gauges::{begin, begin_operation, counts, describe, moved};
pub(crate) use self::names::StoreStep;

/// The target of every span and event.
pub const TARGET: &str = "idem";

/// The name of the span around a call.
pub const SPAN: &str = "idem.call";

/// Adds to a counter of `names`.
macro_rules! count {
    ($name:ident $(, $label:literal => $value:expr)* $(; by $by:expr)?) => {
        #[cfg(feature = "metrics")]
        {
            #[allow(unused_mut, unused_assignments, reason = "`by` is optional")]
            let mut by = 1;
            $(by = $by;)?
            metrics::counter!($crate::telemetry::names::$name $(, $label => $value)*).increment(by);
        }
    };
}
use count;
