//! Between rows and records.

use sqlx::mysql::{MySql, MySqlArguments, MySqlRow};
use sqlx::{Row as _, query::Query};

use crate::error::StoreError;
use crate::identity::{Fingerprint, RecordId};
use crate::record::{Claim, Label, Note, Record, Recorded, Row, State, VersionBytes};
use crate::store::sql::{damaged, fixed, read_elements, version, write_elements};
use crate::store::swap::Looked;
use crate::store::{Audited, Reserve};

/// Columns before those of the record.
const BEFORE: usize = 2;

struct Columns<'r>(&'r MySqlRow);

impl<'r> Columns<'r> {
    fn get<T>(&self, at: usize, what: &'static str) -> Result<T, StoreError>
    where
        T: sqlx::Decode<'r, MySql> + sqlx::Type<MySql>,
    {
        self.0.try_get(BEFORE + at).map_err(|_| damaged(what))
    }
}

/// Whether the record was there before, and what was found.
pub(super) fn found(row: &MySqlRow) -> Result<(bool, Looked), StoreError> {
    let present = Columns(row).get::<Option<Vec<u8>>>(0, "id")?.is_some();
    let before = row.try_get::<i64, _>(1).map_err(|_| damaged("presence"))? != 0;
    let looked = Looked {
        now_us: row.try_get(0).map_err(|_| damaged("time"))?,
        record: present.then(|| record(row)).transpose()?,
    };
    Ok((before, looked))
}

pub(super) fn record(row: &MySqlRow) -> Result<Record, StoreError> {
    let row = Columns(row);
    let digest = |at, what| -> Result<Option<[u8; 32]>, StoreError> {
        let bytes: Option<Vec<u8>> = row.get(at, what)?;
        bytes.map(|bytes| fixed(bytes, what)).transpose()
    };
    Ok(Record {
        id: RecordId::from_bytes(fixed(row.get(0, "id")?, "id")?),
        operation: row.get(1, "operation")?,
        label: row.get::<Option<String>>(2, "label")?.map(Label::new),
        scope: digest(3, "scope digest")?,
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
        recorded_fingerprint: digest(26, "recorded payload digest")?.map(Fingerprint::from_bytes),
        parent: digest(27, "parent")?.map(RecordId::from_bytes),
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

type Bound<'q> = Query<'q, MySql, MySqlArguments>;

/// Binds what a reservation begins with: id, operation, label, scope, payload
/// and elements.
pub(super) fn bind_request<'q>(query: Bound<'q>, request: &'q Reserve) -> Bound<'q> {
    query
        .bind(request.id.as_bytes().as_slice())
        .bind(request.operation.as_str())
        .bind(request.label.as_ref().map(Label::as_str))
        .bind(request.scope.as_ref().map(<[u8; 32]>::as_slice))
        .bind(request.fingerprint.as_bytes().as_slice())
        .bind(write_elements(&request.elements))
}

/// Binds the columns of a record, but for its id.
pub(super) fn bind<'q>(query: Bound<'q>, record: &'q Record) -> Bound<'q> {
    let answer = record.answer.as_ref();
    let bytes = |version: &Option<VersionBytes>| version.as_ref().map(|v| v.as_bytes().to_vec());
    query
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
                .map(|f| f.as_bytes().to_vec()),
        )
        .bind(record.parent.as_ref().map(|id| id.as_bytes().to_vec()))
}

/// Reads an entry of the audit.
pub(super) fn audited(row: &MySqlRow) -> Result<Audited, StoreError> {
    fn get<'r, T>(row: &'r MySqlRow, at: usize) -> Result<T, StoreError>
    where
        T: sqlx::Decode<'r, MySql> + sqlx::Type<MySql>,
    {
        row.try_get(at).map_err(|_| damaged("audit"))
    }
    Ok(Audited {
        at_us: get(row, 0)?,
        was: State::from_code(get(row, 1)?).ok_or_else(|| damaged("audit"))?,
        fence: get(row, 2)?,
        became: get(row, 3)?,
        forced: get(row, 4)?,
        note: Note::new(get(row, 5)?, get(row, 6)?).ok_or_else(|| damaged("audit"))?,
    })
}

/// Reads of one record what says where it stands, and the time.
pub(super) fn standing(row: &MySqlRow) -> Result<(RecordId, Row, i64), StoreError> {
    let now_us = row.try_get(0).map_err(|_| damaged("time"))?;
    let id = row.try_get::<Vec<u8>, _>(1).map_err(|_| damaged("id"))?;
    let state = row.try_get(2).map_err(|_| damaged("state"))?;
    let stands = Row {
        state: State::from_code(state).ok_or_else(|| damaged("state"))?,
        lease_until_us: row.try_get(3).map_err(|_| damaged("lease"))?,
        expires_us: row.try_get(4).map_err(|_| damaged("expiry"))?,
    };
    Ok((RecordId::from_bytes(fixed(id, "id")?), stands, now_us))
}
