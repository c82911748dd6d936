//! Records by age.
//!
//! A store gives records in the order of their ids, which are digests: the
//! first few of many are a random sample. What is open is usually few, so all
//! of it is read, up to a bound, and sorted here.

use idem::Error;
use idem::admin::{Admin, Filter};
use idem::record::{Record, Standing};

/// The most open records of one standing that are read for a page.
pub(super) const MOST_OPEN: usize = 2_000;
/// The most finished ones.
pub(super) const MOST_FINISHED: usize = 5_000;
/// How many are asked for at once.
const AT_ONCE: u32 = 1_000;

/// Records, the oldest open ones or the newest finished ones first.
#[derive(Debug)]
pub(super) struct Gathered {
    /// The store's time when it was asked last.
    pub(super) now_us: i64,
    pub(super) records: Vec<Record>,
    /// Whether there are no more; otherwise these are a random sample.
    pub(super) complete: bool,
}

/// Reads the records that stand there, and sorts them.
pub(super) async fn gather(
    admin: &Admin,
    standing: Standing,
    operation: Option<&str>,
) -> Result<Gathered, Error> {
    let most = if standing.is_open() {
        MOST_OPEN
    } else {
        MOST_FINISHED
    };
    let mut filter = Filter::new(standing);
    filter.operation = operation.map(str::to_owned);
    filter.limit = AT_ONCE;
    let mut records: Vec<Record> = Vec::new();
    let (now_us, complete) = loop {
        let page = admin.list(&filter).await?;
        records.extend(page.records);
        filter.after = page.next;
        if page.next.is_none() || records.len() >= most {
            break (page.now_us, page.next.is_none() && records.len() <= most);
        }
    };
    records.truncate(most);
    if standing.is_open() {
        records.sort_by_key(|record| (since(record, standing), record.id));
    } else {
        records.sort_by_key(|record| std::cmp::Reverse((record.finished_us, record.id)));
    }
    Ok(Gathered {
        now_us,
        records,
        complete,
    })
}

/// Since when a record stands where it stands.
pub(super) fn since(record: &Record, standing: Standing) -> i64 {
    match standing {
        Standing::Unknown => record.since_us.unwrap_or(record.started_us),
        Standing::Lapsed | Standing::InProgress => record.started_us,
        Standing::Tombstone | Standing::Completed | Standing::Released => {
            record.finished_us.unwrap_or(record.started_us)
        }
    }
}
