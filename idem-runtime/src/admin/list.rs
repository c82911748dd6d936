//! Pages of records.

use std::time::Duration;

use super::operators;
use crate::clock::micros;
use crate::engine::Inner;
use crate::error::Error;
use crate::identity::RecordId;
use crate::record::{Record, Standing};
use crate::store::{Page, Scan};
use crate::telemetry::StoreStep;

/// The most records of a page.
const MOST: u32 = 1_000;
/// The most pages of the store to read for one of ours: few records may be old
/// enough.
const PAGES: usize = 100;

/// Which records to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Where they stand.
    pub standing: Standing,
    /// Of this operation only.
    pub operation: Option<String>,
    /// Only those of which it is at least so long ago, by the store's clock, that
    /// they ended (finished and released ones), became unknown, or were reserved
    /// (in progress and lapsed ones).
    pub older_than: Option<Duration>,
    /// What the page before said as [`Listing::next`].
    pub after: Option<RecordId>,
    /// The most records of the page, 1 to 1,000.
    pub limit: u32,
}

impl Filter {
    /// Asks for the first 100 records that stand there.
    #[must_use]
    pub fn new(standing: Standing) -> Self {
        Self {
            standing,
            operation: None,
            older_than: None,
            after: None,
            limit: 100,
        }
    }

    fn takes(&self, record: &Record, now_us: i64) -> bool {
        self.older_than.is_none_or(|age| {
            let since_us = since_us(record, self.standing);
            since_us <= now_us.saturating_sub(micros(age))
        })
    }
}

/// Since when a record stands there, as far as it tells.
fn since_us(record: &Record, standing: Standing) -> i64 {
    let since_us = match standing {
        Standing::InProgress | Standing::Lapsed => None,
        Standing::Unknown => record.since_us,
        Standing::Released | Standing::Completed | Standing::Tombstone => record.finished_us,
    };
    since_us.unwrap_or(record.started_us)
}

/// One page of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The store's time when it looked, in microseconds since the Unix epoch.
    pub now_us: i64,
    /// In the order of their ids, without their answers.
    pub records: Vec<Record>,
    /// What to send as [`Filter::after`] for the next page; none if this was the
    /// last. A page may be short, or empty, and not the last.
    pub next: Option<RecordId>,
}

pub(super) async fn list(engine: &Inner, filter: &Filter) -> Result<Listing, Error> {
    let limit = filter.limit.clamp(1, MOST);
    let mut listing = Listing {
        now_us: 0,
        records: Vec::new(),
        next: filter.after,
    };
    for _ in 0..PAGES {
        let page = scan(
            engine,
            Scan {
                standing: filter.standing,
                operation: filter.operation.clone(),
                grace_us: micros(engine.limits.grace),
                after: listing.next,
                limit,
            },
        )
        .await?;
        listing.now_us = page.now_us;
        listing.next = page.next;
        let last = page.records.last().map(|record| record.id);
        for record in page.records {
            if !filter.takes(&record, page.now_us) {
                continue;
            }
            let id = record.id;
            listing.records.push(record);
            if listing.records.len() == limit as usize {
                // Others of this page are on the next one.
                if last != Some(id) {
                    listing.next = Some(id);
                }
                return Ok(listing);
            }
        }
        if listing.next.is_none() {
            break;
        }
    }
    Ok(listing)
}

/// Reads one page of the store.
pub(super) async fn scan(engine: &Inner, request: Scan) -> Result<Page, Error> {
    let limit = engine.limits.store_timeout;
    let scanned = operators(engine)?.scan(&request);
    Ok(engine.store_call(StoreStep::List, limit, scanned).await?)
}
