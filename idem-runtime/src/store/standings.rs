//! Where many records stand, in one question.

#[cfg(any(feature = "_sql", feature = "redis"))]
use std::collections::HashMap;

use crate::error::{StoreError, StoreErrorKind};
use crate::identity::RecordId;
#[cfg(any(feature = "_sql", feature = "redis"))]
use crate::record::Standing;

/// A question where many records stand.
#[derive(Debug, Clone)]
pub struct Standings {
    /// The records, at most [`MOST`](Self::MOST). One may be there twice.
    pub ids: Vec<RecordId>,
    /// How much later than its lease an attempt counts as lapsed.
    pub grace_us: i64,
}

impl Standings {
    /// The most ids in one question: few enough for one statement of every
    /// database, many enough for thousands in a few trips.
    pub const MOST: usize = 1_000;

    /// Puts what was found of some ids into the order of the question.
    #[cfg(any(feature = "_sql", feature = "redis"))]
    pub(in crate::store) fn in_order(
        &self,
        found: &HashMap<RecordId, Standing>,
    ) -> Vec<Option<Standing>> {
        self.ids.iter().map(|id| found.get(id).copied()).collect()
    }
}

/// The answer of a store that has no way to look at many records.
pub(super) fn lacking(request: &Standings) -> StoreError {
    StoreError::new(
        StoreErrorKind::Permanent,
        format!(
            "it cannot look at many records at once ({} were asked for); nothing was done",
            request.ids.len()
        ),
    )
}
