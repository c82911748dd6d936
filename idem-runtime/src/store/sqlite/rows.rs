//! Between rows and records.

use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteRow};
use sqlx::{Row as _, query::Query};

use super::statements;
use crate::error::StoreError;
use crate::identity::{Fingerprint, RecordId};
use crate::record::{Claim, Label, Note, Record, Recorded, Row, State, VersionBytes};
use crate::store::Audited;
use crate::store::sql::{damaged, fixed, read_elements, version, write_elements};

/// Reads a column by its position.
struct Columns<'r>(&'r SqliteRow);

impl<'r> Columns<'r> {
    fn get<T>(&self, at: usize, what: &'static str) -> Result<T, StoreError>
    where
        T: sqlx::Decode<'r, Sqlite> + sqlx::Type<Sqlite>,
    {
        self.0.try_get(at).map_err(|_| damaged(what))
    }
}

pub(super) fn record(row: &SqliteRow) -> Result<Record, StoreError> {
    let row = Columns(row);
    Ok(Record {
        id: RecordId::from_bytes(fixed(row.get(0, "id")?, "id")?),
        operation: row.get(1, "operation")?,
        label: row.get::<Option<String>>(2, "label")?.map(Label::new),
        scope: row
            .get::<Option<Vec<u8>>>(3, "scope digest")?
            .map(|bytes| fixed(bytes, "scope digest"))
            .transpose()?,
        fingerprint: Fingerprint::from_bytes(fixed(
            row.get(4, "payload digest")?,
            "payload digest",
        )?),
        elements: read_elements(&row.get::<Vec<u8>>(5, "payload elements")?)?,
        state: State::from_code(row.get(6, "state")?).ok_or_else(|| damaged("state"))?,
        fence: row.get(7, "fence")?,
        attempt: row.get(8, "attempt")?,
        claim: Claim::from_bytes(fixed(row.get(9, "claim")?, "claim")?),
        takeovers: row.get(10, "takeovers")?,
        doubt: row.get(11, "doubt")?,
        lease_until_us: row.get(12, "lease")?,
        started_us: row.get(13, "start")?,
        finished_us: row.get(14, "end")?,
        expires_us: row.get(15, "expiry")?,
        since_us: row.get(16, "since")?,
        not_before_us: row.get(17, "not before")?,
        reason: row.get(18, "reason")?,
        answer: answer(&row)?,
        version_applied: version(row.get(23, "version")?)?,
        version_recorded: version(row.get(24, "version")?)?,
        version_running: version(row.get(25, "version")?)?,
        recorded_fingerprint: row
            .get::<Option<Vec<u8>>>(26, "recorded payload digest")?
            .map(|bytes| fixed(bytes, "recorded payload digest").map(Fingerprint::from_bytes))
            .transpose()?,
        parent: row
            .get::<Option<Vec<u8>>>(27, "parent")?
            .map(|bytes| fixed(bytes, "parent").map(RecordId::from_bytes))
            .transpose()?,
    })
}

fn answer(row: &Columns<'_>) -> Result<Option<Recorded>, StoreError> {
    let Some(bytes) = row.get::<Option<Vec<u8>>>(21, "answer")? else {
        return Ok(None);
    };
    Ok(Some(Recorded {
        codec: row.get(19, "codec")?,
        failed: row.get(20, "kind of answer")?,
        bytes,
        // One of another length cannot match; the engine then says so.
        digest: row
            .get::<Vec<u8>>(22, "answer digest")?
            .try_into()
            .unwrap_or_default(),
    }))
}

pub(super) fn write(record: &Record) -> Query<'_, Sqlite, SqliteArguments> {
    let answer = record.answer.as_ref();
    let bytes = |version: &Option<VersionBytes>| version.as_ref().map(|v| v.as_bytes().to_vec());
    sqlx::query(statements::WRITE)
        .bind(record.id.as_bytes().as_slice())
        .bind(record.operation.as_str())
        .bind(record.label.as_ref().map(Label::as_str))
        .bind(record.scope.as_ref().map(<[u8; 32]>::as_slice))
        .bind(record.fingerprint.as_bytes().as_slice())
        .bind(write_elements(&record.elements))
        .bind(record.state.code())
        .bind(record.fence)
        .bind(record.attempt)
        .bind(record.claim.as_bytes().as_slice())
        .bind(record.takeovers)
        .bind(record.doubt)
        .bind(record.lease_until_us)
        .bind(record.started_us)
        .bind(record.finished_us)
        .bind(record.expires_us)
        .bind(record.since_us)
        .bind(record.not_before_us)
        .bind(record.reason)
        .bind(answer.map(|answer| answer.codec.as_str()))
        .bind(answer.map(|answer| answer.failed))
        .bind(answer.map(|answer| answer.bytes.as_slice()))
        .bind(answer.map(|answer| answer.digest.as_slice()))
        .bind(bytes(&record.version_applied))
        .bind(bytes(&record.version_recorded))
        .bind(bytes(&record.version_running))
        .bind(
            record
                .recorded_fingerprint
                .as_ref()
                .map(|fingerprint| fingerprint.as_bytes().to_vec()),
        )
        .bind(record.parent.as_ref().map(|id| id.as_bytes().to_vec()))
}

/// Adds an entry to the audit.
pub(super) fn note<'q>(id: &'q RecordId, entry: &'q Audited) -> Query<'q, Sqlite, SqliteArguments> {
    sqlx::query(statements::NOTE)
        .bind(id.as_bytes().as_slice())
        .bind(entry.at_us)
        .bind(entry.was.code())
        .bind(entry.fence)
        .bind(entry.became)
        .bind(entry.forced)
        .bind(entry.note.by())
        .bind(entry.note.why())
}

/// Reads an entry of the audit.
pub(super) fn audited(row: &SqliteRow) -> Result<Audited, StoreError> {
    let row = Columns(row);
    let text = |at| row.get::<&str>(at, "audit");
    Ok(Audited {
        at_us: row.get(0, "audit")?,
        was: State::from_code(row.get(1, "audit")?).ok_or_else(|| damaged("audit"))?,
        fence: row.get(2, "audit")?,
        became: row.get(3, "audit")?,
        forced: row.get(4, "audit")?,
        note: Note::new(text(5)?, text(6)?).ok_or_else(|| damaged("audit"))?,
    })
}

/// Reads of one record what says where it stands.
pub(super) fn standing(row: &SqliteRow) -> Result<(RecordId, Row), StoreError> {
    let row = Columns(row);
    let id = RecordId::from_bytes(fixed(row.get(0, "id")?, "id")?);
    let stands = Row {
        state: State::from_code(row.get(1, "state")?).ok_or_else(|| damaged("state"))?,
        lease_until_us: row.get(2, "lease")?,
        expires_us: row.get(3, "expiry")?,
    };
    Ok((id, stands))
}
