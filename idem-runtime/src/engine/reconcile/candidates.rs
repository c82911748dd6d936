//! Which records are in doubt.

use std::collections::VecDeque;

use super::Inner;
use crate::clock::micros;
use crate::error::{Error, StoreError, StoreErrorKind};
use crate::identity::RecordId;
use crate::record::Standing;
use crate::store::{Page, Scan};
use crate::sync::Arc;
use crate::telemetry::StoreStep;

const PAGE: u32 = 100;

/// The unknown and lapsed records of one operation, page by page, from a random
/// id to the last one and from the first one to there.
pub(super) struct Candidates {
    operation: String,
    ranges: VecDeque<Range>,
}

/// Records in a row.
struct Range {
    standing: Standing,
    after: Option<RecordId>,
    /// The last one; none if it goes to the end.
    last: Option<RecordId>,
}

impl Candidates {
    pub(super) fn new(operation: &str) -> Result<Self, Error> {
        let mut bytes = [0; 33];
        getrandom::fill(&mut bytes).map_err(|_| {
            StoreError::new(
                StoreErrorKind::Permanent,
                "the operating system gave no random bytes to begin with",
            )
        })?;
        let [coin, start @ ..] = bytes;
        let start = Some(RecordId::from_bytes(start));
        let standings = if coin % 2 == 0 {
            [Standing::Unknown, Standing::Lapsed]
        } else {
            [Standing::Lapsed, Standing::Unknown]
        };
        let range = |standing, after, last| Range {
            standing,
            after,
            last,
        };
        Ok(Self {
            operation: operation.to_owned(),
            ranges: standings
                .into_iter()
                .flat_map(|standing| [range(standing, start, None), range(standing, None, start)])
                .collect(),
        })
    }

    /// Returns the next page, which may be empty; none if there is no more.
    pub(super) async fn next(&mut self, engine: &Arc<Inner>) -> Result<Option<Page>, Error> {
        let Some(range) = self.ranges.pop_front() else {
            return Ok(None);
        };
        let request = Scan {
            standing: range.standing,
            operation: Some(self.operation.clone()),
            grace_us: micros(engine.limits.grace),
            after: range.after,
            limit: PAGE,
        };
        let inner = Arc::clone(engine);
        let scanned = engine.detached(async move {
            let limit = inner.limits.store_timeout;
            match inner.store.admin() {
                Some(admin) => {
                    let scanned = admin.scan(&request);
                    Some(inner.store_call(StoreStep::List, limit, scanned).await)
                }
                None => None,
            }
        });
        let Some(page) = scanned.await? else {
            return Ok(None);
        };
        let mut page = page?;
        let is_in = |id: &RecordId| range.last.is_none_or(|last| *id <= last);
        page.records.retain(|record| is_in(&record.id));
        if let Some(next) = page.next.take().filter(is_in) {
            self.ranges.push_front(Range {
                after: Some(next),
                ..range
            });
        }
        Ok(Some(page))
    }
}
