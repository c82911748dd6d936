//! Makes a repeated call return the first call's answer instead of doing the
//! work again.

extern crate self as idem;

#[doc(hidden)]
pub mod __private;
mod answer;
pub mod canonical;
mod clock;
pub mod codec;
mod context;
mod engine;
mod error;
pub mod fault;
pub mod identity;
mod outcome;
mod policy;
pub mod record;
mod singleflight;
pub mod store;
mod sync;
pub mod telemetry;
pub mod transition;

#[cfg(feature = "testing")]
pub mod testing;

pub use self::answer::policy as on_error;
pub use self::canonical::optional;
pub use self::clock::{Clock, SystemClock};
pub use self::context::{Context, context};
pub use self::engine::{Drained, Engine, EngineBuilder, PlainCall, Stats, connect, install};
pub use self::error::{Error, StoreError, StoreErrorKind};
pub use self::identity::{RecordId, Secret};
pub use self::outcome::{How, Outcome, observe};
pub use self::policy::{Disposition, OnInProgress, OnUnknown, Recovered, Ttl};
pub use self::record::{TombstoneReason, UnknownReason};
#[cfg(feature = "macros")]
pub use idem_macros::idempotent;
#[cfg(feature = "sqlite")]
pub use sqlx;
