//! A record as bytes. How is a store's own business; these are JSON, and the
//! answer's bytes beside it.
//!
//! Every field is kept: [`transition`](idem::transition) reads them all.

use idem::identity::{Fingerprint, RecordId};
use idem::record::{Claim, Element, Label, Record, Recorded, State, VersionBytes};
use idem::store::Meta;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Row {
    operation: String,
    label: Option<String>,
    scope: Option<[u8; 32]>,
    fingerprint: [u8; 32],
    elements: Vec<(String, [u8; 8])>,
    state: i16,
    fence: i64,
    attempt: i32,
    claim: [u8; 16],
    takeovers: i32,
    doubt: bool,
    lease_until_us: Option<i64>,
    started_us: i64,
    finished_us: Option<i64>,
    expires_us: Option<i64>,
    since_us: Option<i64>,
    not_before_us: Option<i64>,
    reason: Option<i16>,
    /// Codec, whether it is an `Err`, and digest.
    answer: Option<(String, bool, [u8; 32])>,
    version_applied: Option<Vec<u8>>,
    version_recorded: Option<Vec<u8>>,
    version_running: Option<Vec<u8>>,
    recorded_fingerprint: Option<[u8; 32]>,
    parent: Option<[u8; 32]>,
}

/// Writes all of a record but its id and its answer's bytes.
pub(crate) fn write(record: &Record) -> Option<Vec<u8>> {
    let version = |version: &Option<VersionBytes>| {
        version.as_ref().map(|version| version.as_bytes().to_vec())
    };
    let row = Row {
        operation: record.operation.clone(),
        label: record.label.as_ref().map(|label| label.as_str().to_owned()),
        scope: record.scope,
        fingerprint: *record.fingerprint.as_bytes(),
        elements: record
            .elements
            .iter()
            .map(|element| (element.label.clone(), element.digest))
            .collect(),
        state: record.state.code(),
        fence: record.fence,
        attempt: record.attempt,
        claim: *record.claim.as_bytes(),
        takeovers: record.takeovers,
        doubt: record.doubt,
        lease_until_us: record.lease_until_us,
        started_us: record.started_us,
        finished_us: record.finished_us,
        expires_us: record.expires_us,
        since_us: record.since_us,
        not_before_us: record.not_before_us,
        reason: record.reason,
        answer: record
            .answer
            .as_ref()
            .map(|answer| (answer.codec.clone(), answer.failed, answer.digest)),
        version_applied: version(&record.version_applied),
        version_recorded: version(&record.version_recorded),
        version_running: version(&record.version_running),
        recorded_fingerprint: record.recorded_fingerprint.map(|print| *print.as_bytes()),
        parent: record.parent.map(|parent| *parent.as_bytes()),
    };
    serde_json::to_vec(&row).ok()
}

/// Reads a record; none if it is damaged.
pub(crate) fn read(id: RecordId, row: &[u8], answer: &[u8]) -> Option<Record> {
    let row: Row = serde_json::from_slice(row).ok()?;
    let version = |bytes: Option<Vec<u8>>| match bytes {
        // Too long is damaged, which is not the same as no version.
        Some(bytes) => VersionBytes::new(bytes).map(Some),
        None => Some(None),
    };
    Some(Record {
        id,
        operation: row.operation,
        label: row.label.map(Label::new),
        scope: row.scope,
        fingerprint: Fingerprint::from_bytes(row.fingerprint),
        elements: row
            .elements
            .into_iter()
            .map(|(label, digest)| Element { label, digest })
            .collect(),
        state: State::from_code(row.state)?,
        fence: row.fence,
        attempt: row.attempt,
        claim: Claim::from_bytes(row.claim),
        takeovers: row.takeovers,
        doubt: row.doubt,
        lease_until_us: row.lease_until_us,
        started_us: row.started_us,
        finished_us: row.finished_us,
        expires_us: row.expires_us,
        since_us: row.since_us,
        not_before_us: row.not_before_us,
        reason: row.reason,
        // The digest is kept as it was given: the engine compares it with the
        // bytes, and so finds what the disk did to them.
        answer: row.answer.map(|(codec, failed, digest)| Recorded {
            codec,
            failed,
            bytes: answer.to_vec(),
            digest,
        }),
        version_applied: version(row.version_applied)?,
        version_recorded: version(row.version_recorded)?,
        version_running: version(row.version_running)?,
        recorded_fingerprint: row.recorded_fingerprint.map(Fingerprint::from_bytes),
        parent: row.parent.map(RecordId::from_bytes),
    })
}

/// Format, instance and secret check, one after the other.
pub(crate) fn write_meta(meta: &Meta) -> Vec<u8> {
    [
        &meta.instance[..],
        &meta.secret_check,
        meta.format.as_bytes(),
    ]
    .concat()
}

pub(crate) fn read_meta(bytes: &[u8]) -> Option<Meta> {
    let (instance, rest) = bytes.split_first_chunk()?;
    let (secret_check, format) = rest.split_first_chunk()?;
    Some(Meta {
        format: String::from_utf8(format.to_vec()).ok()?,
        instance: *instance,
        secret_check: *secret_check,
    })
}
