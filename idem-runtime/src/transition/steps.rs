//! When a step may be kept, and when steps end.

use super::held;
use crate::record::{Record, State};
use crate::store::{Holder, Written};

/// Decides whether a step of this attempt may be kept or read: also when
/// lapsed, as long as nobody took over. [`Written::Done`] says yes.
#[must_use]
pub fn holds_steps(current: Option<&Record>, holder: &Holder) -> Written {
    match held(current, holder, &[State::InProgress]) {
        Ok(_) => Written::Done,
        Err(written) => written,
    }
}

/// Returns whether writing `next` over `seen` begins a new life of the key: no
/// attempt of it may read what an earlier life has kept.
///
/// A life ends when its record is completed, a tombstone or released, and such
/// a record changes only into a new life with a larger fence, or by hand. So
/// once a record was seen like that, steps of its fence and smaller ones can be
/// deleted at any time.
#[must_use]
pub fn begins_life(seen: &Record, next: &Record) -> bool {
    next.state == State::InProgress && ends_life(seen)
}

/// Returns whether nobody will read the steps of this record any more.
#[must_use]
pub fn ends_life(record: &Record) -> bool {
    !matches!(record.state, State::InProgress | State::Unknown)
}
