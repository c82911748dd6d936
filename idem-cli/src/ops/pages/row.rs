//! A record in a table.

use idem::record::{Record, Standing};

use crate::ops::gather::since;
use crate::ops::time::Moment;
use crate::ops::words;

#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) short: String,
    pub(super) standing: &'static str,
    pub(super) slug: &'static str,
    pub(super) operation: String,
    pub(super) label: String,
    pub(super) why: &'static str,
    /// Since when it stands where it stands.
    pub(super) since: Moment,
    pub(super) attempt: i32,
    /// When the lease of a running attempt ends.
    pub(super) lease: Option<Moment>,
    pub(super) expires: Option<Moment>,
}

impl Row {
    pub(super) fn new(record: &Record, standing: Standing, now_us: i64) -> Self {
        Self {
            id: record.id.to_hex(),
            short: record.id.to_string(),
            standing: words::name(standing),
            slug: words::slug(standing),
            operation: record.operation.clone(),
            label: label(record),
            why: words::why(record, standing),
            since: Moment::new(since(record, standing), now_us),
            attempt: record.attempt,
            lease: Moment::optional(record.lease_until_us, now_us),
            expires: Moment::optional(record.expires_us, now_us),
        }
    }
}

pub(super) fn label(record: &Record) -> String {
    let label = record.label.as_ref();
    label
        .map(|label| label.as_str().to_owned())
        .unwrap_or_default()
}
