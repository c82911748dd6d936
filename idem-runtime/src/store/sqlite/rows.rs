//! Between rows and records: one mapping, whichever driver has the row.

use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Params};

use super::error::store_error;
use super::statements;
use crate::error::StoreError;
use crate::identity::{Fingerprint, RecordId};
use crate::record::{Claim, Label, Note, Record, Recorded, Row, State, VersionBytes};
use crate::store::Audited;
use crate::store::sql::{damaged, read_elements, version, write_elements};

/// A row of either driver.
pub(super) trait Columns {
    /// Returns a value by its position.
    fn value(&self, at: usize) -> Option<ValueRef<'_>>;

    /// Reads a value of one type: never a value of another one.
    fn column<T: FromSql>(&self, at: usize, what: &'static str) -> Result<T, StoreError> {
        self.value(at)
            .and_then(|value| T::column_result(value).ok())
            .ok_or_else(|| damaged(what))
    }
}

impl Columns for rusqlite::Row<'_> {
    fn value(&self, at: usize) -> Option<ValueRef<'_>> {
        self.get_ref(at).ok()
    }
}

pub(super) fn record(row: &impl Columns) -> Result<Record, StoreError> {
    Ok(Record {
        id: RecordId::from_bytes(row.column(0, "id")?),
        operation: row.column(1, "operation")?,
        label: row.column::<Option<String>>(2, "label")?.map(Label::new),
        scope: row.column(3, "scope digest")?,
        fingerprint: Fingerprint::from_bytes(row.column(4, "payload digest")?),
        elements: read_elements(&row.column::<Vec<u8>>(5, "payload elements")?)?,
        state: state(row, 6, "state")?,
        fence: row.column(7, "fence")?,
        attempt: row.column(8, "attempt")?,
        claim: Claim::from_bytes(row.column(9, "claim")?),
        takeovers: row.column(10, "takeovers")?,
        doubt: row.column(11, "doubt")?,
        lease_until_us: row.column(12, "lease")?,
        started_us: row.column(13, "start")?,
        finished_us: row.column(14, "end")?,
        expires_us: row.column(15, "expiry")?,
        since_us: row.column(16, "since")?,
        not_before_us: row.column(17, "not before")?,
        reason: row.column(18, "reason")?,
        answer: answer(row)?,
        version_applied: version(row.column(23, "version")?)?,
        version_recorded: version(row.column(24, "version")?)?,
        version_running: version(row.column(25, "version")?)?,
        recorded_fingerprint: row
            .column::<Option<_>>(26, "recorded payload digest")?
            .map(Fingerprint::from_bytes),
        parent: row
            .column::<Option<_>>(27, "parent")?
            .map(RecordId::from_bytes),
    })
}

fn state(row: &impl Columns, at: usize, what: &'static str) -> Result<State, StoreError> {
    State::from_code(row.column(at, what)?).ok_or_else(|| damaged(what))
}

fn answer(row: &impl Columns) -> Result<Option<Recorded>, StoreError> {
    let Some(bytes) = row.column(21, "answer")? else {
        return Ok(None);
    };
    // What is missing, or has another length, cannot match; the engine says so.
    let digest: Option<Vec<u8>> = row.column(22, "answer digest")?;
    Ok(Some(Recorded {
        codec: row.column::<Option<_>>(19, "codec")?.unwrap_or_default(),
        failed: row
            .column::<Option<_>>(20, "kind of answer")?
            .unwrap_or_default(),
        bytes,
        digest: digest.unwrap_or_default().try_into().unwrap_or_default(),
    }))
}

/// Finds a record. The outer error is the statement's, the inner one the row's.
pub(super) fn find(
    conn: &Connection,
    id: &RecordId,
) -> rusqlite::Result<Result<Option<Record>, StoreError>> {
    let mut statement = conn.prepare_cached(statements::FIND)?;
    let mut rows = statement.query([id.as_bytes().as_slice()])?;
    Ok(rows.next()?.map(record).transpose())
}

/// Reads every row of a statement.
pub(super) fn all<T>(
    conn: &Connection,
    sql: &str,
    values: impl Params,
    read: impl Fn(&rusqlite::Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let failed = |error: rusqlite::Error| store_error(&error);
    let mut statement = conn.prepare_cached(sql).map_err(failed)?;
    let mut rows = statement.query(values).map_err(failed)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// Writes a record.
pub(super) fn write(conn: &Connection, record: &Record) -> rusqlite::Result<()> {
    let elements = write_elements(&record.elements);
    let values = values(record, &elements).map(ToSqlOutput::Borrowed);
    conn.prepare_cached(statements::WRITE)?
        .execute(rusqlite::params_from_iter(values))
        .map(drop)
}

/// The values of a row, in the order of its columns.
pub(super) fn values<'r>(record: &'r Record, elements: &'r [u8]) -> [ValueRef<'r>; 28] {
    let answer = record.answer.as_ref();
    let version =
        |version: &'r Option<VersionBytes>| blob(version.as_ref().map(VersionBytes::as_bytes));
    [
        ValueRef::Blob(record.id.as_bytes()),
        ValueRef::from(record.operation.as_str()),
        text(record.label.as_ref().map(Label::as_str)),
        blob(record.scope.as_ref().map(<[u8; 32]>::as_slice)),
        ValueRef::Blob(record.fingerprint.as_bytes()),
        ValueRef::Blob(elements),
        integer(Some(record.state.code())),
        integer(Some(record.fence)),
        integer(Some(record.attempt)),
        ValueRef::Blob(record.claim.as_bytes()),
        integer(Some(record.takeovers)),
        integer(Some(record.doubt)),
        integer(record.lease_until_us),
        integer(Some(record.started_us)),
        integer(record.finished_us),
        integer(record.expires_us),
        integer(record.since_us),
        integer(record.not_before_us),
        integer(record.reason),
        text(answer.map(|answer| answer.codec.as_str())),
        integer(answer.map(|answer| answer.failed)),
        blob(answer.map(|answer| answer.bytes.as_slice())),
        blob(answer.map(|answer| answer.digest.as_slice())),
        version(&record.version_applied),
        version(&record.version_recorded),
        version(&record.version_running),
        blob(
            record
                .recorded_fingerprint
                .as_ref()
                .map(|digest| digest.as_bytes().as_slice()),
        ),
        blob(record.parent.as_ref().map(|id| id.as_bytes().as_slice())),
    ]
}

fn integer(number: Option<impl Into<i64>>) -> ValueRef<'static> {
    number.map_or(ValueRef::Null, |number| ValueRef::Integer(number.into()))
}

fn text(text: Option<&str>) -> ValueRef<'_> {
    text.map_or(ValueRef::Null, ValueRef::from)
}

fn blob(bytes: Option<&[u8]>) -> ValueRef<'_> {
    bytes.map_or(ValueRef::Null, ValueRef::Blob)
}

/// Adds an entry to the audit.
pub(super) fn note(conn: &Connection, id: &RecordId, entry: &Audited) -> rusqlite::Result<()> {
    conn.prepare_cached(statements::NOTE)?
        .execute((
            id.as_bytes().as_slice(),
            entry.at_us,
            entry.was.code(),
            entry.fence,
            entry.became,
            entry.forced,
            entry.note.by(),
            entry.note.why(),
        ))
        .map(drop)
}

/// Reads an entry of the audit.
pub(super) fn audited(row: &rusqlite::Row<'_>) -> Result<Audited, StoreError> {
    let text = |at| row.column::<String>(at, "audit");
    Ok(Audited {
        at_us: row.column(0, "audit")?,
        was: state(row, 1, "audit")?,
        fence: row.column(2, "audit")?,
        became: row.column(3, "audit")?,
        forced: row.column(4, "audit")?,
        note: Note::new(&text(5)?, &text(6)?).ok_or_else(|| damaged("audit"))?,
    })
}

/// Reads of one record what says where it stands.
pub(super) fn standing(row: &rusqlite::Row<'_>) -> Result<(RecordId, Row), StoreError> {
    let id = RecordId::from_bytes(row.column(0, "id")?);
    let stands = Row {
        state: state(row, 1, "state")?,
        lease_until_us: row.column(2, "lease")?,
        expires_us: row.column(3, "expiry")?,
    };
    Ok((id, stands))
}
