//! What generated code names, and nothing else may.
//!
//! Not part of the public interface: it changes without notice, and the macro
//! crate is pinned to this version.

use crate::answer::ErrorMapping;
pub use crate::answer::{Answer, FromError, MapError, Movable, policy};
pub use crate::codec::Json;
use crate::context::context;
use crate::engine::attempt::Phase;
pub use crate::engine::call::Call;
pub use crate::engine::driver::{Detached, Ops, OpsInPlace, OpsWithin, detached, in_place};
pub use crate::engine::driver::{TxEnded, TxPermit, TxRun, Within, tx_reserve};
pub use crate::engine::site::{Name, Site, path_of};
use crate::error::Error;
use crate::policy::Recovered;
pub use crate::policy::{OnInProgress, OnMissingKey, OnStale, OnUnknown, Ttl};
use crate::record::UnknownReason;

/// Checks the whole return type, and makes the typed half of the call.
pub fn ops<R, C, P, M>(policy: P, map: M) -> Ops<R>
where
    R: Answer<C, P, M>,
{
    R::ops(policy, map)
}

/// Does the same for a body that runs in its caller's task.
pub fn ops_in_place<R, C, P, M>(policy: P, map: M) -> OpsInPlace<R>
where
    R: Answer<C, P, M>,
{
    R::ops_in_place(policy, map)
}

/// Does the same for a call in its caller's transaction.
pub fn ops_within<R, C, P, M>(policy: P, map: M) -> OpsWithin<R>
where
    R: Answer<C, P, M>,
{
    R::ops_within(policy, map)
}

/// Returns whether the outside world must be asked before the body runs.
#[must_use]
pub fn must_probe() -> bool {
    context().is_ok_and(|context| context.state().must_probe())
}

/// Weighs what the outside world said. None means that the body must run.
///
/// The first argument only says what kind of answer is expected, so that a probe
/// of another one is an error at the probe.
pub fn probed<T, E, M>(
    _: Option<Result<T, E>>,
    answer: Result<Recovered<T>, E>,
    map: &M,
) -> Option<Result<T, E>>
where
    M: ErrorMapping<E>,
{
    let context = match context() {
        Ok(context) => context,
        Err(error) => return Some(Err(map.map(error))),
    };
    let state = context.state();
    match answer {
        Ok(Recovered::Done(answer)) => {
            state.set_recovered();
            state.enter(Phase::Running);
            Some(Ok(answer))
        }
        Ok(Recovered::NotDone) => {
            state.set_not_done();
            None
        }
        Ok(Recovered::Unknown) => {
            state.set_undecided();
            Some(Err(map.map(Error::UnknownOutcome {
                record: state.holder.id,
                exhausted: false,
                reason: UnknownReason::Undecided,
                retry_after: state
                    .mark_undecided()
                    .undecided_retry_us
                    .map(crate::clock::from_micros),
            })))
        }
        Err(error) => {
            state.set_undecided();
            Some(Err(error))
        }
    }
}

/// Clones a borrowed argument for the body's task.
pub fn to_movable<T: ToOwned + ?Sized>(value: &T) -> T::Owned
where
    T::Owned: Movable,
{
    value.to_owned()
}

/// Does the same for a type that mentions a type parameter.
pub fn to_owned<T: ToOwned + ?Sized>(value: &T) -> T::Owned {
    value.to_owned()
}

/// Checks that a parameter's type can move into the body's task.
pub fn movable<T: Movable + ?Sized>() {}

/// Checks the same for a type that mentions a type parameter, where the
/// compiler's own suggestion is the best one.
pub fn sendable<T: Send + ?Sized>() {}

/// Makes a driver, and is called by nobody.
///
/// For its sake the parts of a call that know nothing of its answer, and those of
/// the codec that know [`Error`], are compiled with this crate. A crate with
/// annotated functions takes them over, where its profile shares what is generic (as
/// `dev` does); otherwise it would compile all of them again.
#[must_use]
pub fn built_here() -> Ops<Result<(), Error>> {
    ops::<_, Json, _, _>(policy::Store, FromError)
}
