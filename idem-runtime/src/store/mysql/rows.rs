//! Between rows and records.

use sqlx::mysql::{MySql, MySqlArguments, MySqlRow};
use sqlx::{Row as _, query::Query};

use super::packed::{Packed, needed, some};
use crate::error::StoreError;
use crate::identity::{Fingerprint, RecordId};
use crate::record::{Claim, Label, Note, Record, Recorded, Row, State, VersionBytes};
use crate::store::sql::{damaged, fixed, read_elements, version, write_elements};
use crate::store::swap::Looked;
use crate::store::{Audited, Reserve};

/// Columns of a result: the time, what is packed, payload elements and the answer.
struct Columns<'r> {
    row: &'r MySqlRow,
    packed: Packed<'r, 14, 13>,
}

impl<'r> Columns<'r> {
    /// Reads what is packed, if there is a record.
    fn of(row: &'r MySqlRow) -> Result<Option<Self>, StoreError> {
        let packed = row.try_get::<Option<&[u8]>, _>(1);
        let packed = packed.map_err(|_| damaged("packed columns"))?;
        let columns = packed.map(|packed| {
            let packed = Packed::read(packed)?;
            Ok(Self { row, packed })
        });
        columns.transpose()
    }

    fn bytes(&self, at: usize, what: &'static str) -> Result<Option<&'r [u8]>, StoreError> {
        self.row.try_get(at).map_err(|_| damaged(what))
    }

    fn record(&self) -> Result<Record, StoreError> {
        let [
            _found,
            state,
            fence,
            attempt,
            takeovers,
            doubt,
            lease,
            started,
            finished,
            expires_us,
            since_us,
            not_before_us,
            reason,
            failed,
        ] = self.packed.numbers;
        let [
            id,
            payload,
            claim,
            operation,
            label,
            scope,
            codec,
            digest,
            applied,
            recorded,
            running,
            recorded_payload,
            parent,
        ] = self.packed.texts;
        let elements = self.bytes(2, "payload elements")?;
        let answer = self.bytes(3, "answer")?.map(|bytes| {
            Ok(Recorded {
                codec: text(codec, "codec")?.ok_or_else(|| damaged("codec"))?,
                failed: needed::<i64>(failed, "kind of answer")? != 0,
                bytes: bytes.to_vec(),
                // One of another length cannot match; the engine then says so.
                digest: digest
                    .and_then(|digest| digest.try_into().ok())
                    .unwrap_or_default(),
            })
        });
        Ok(Record {
            id: RecordId::from_bytes(exactly(id.unwrap_or_default(), "id")?),
            operation: text(operation, "operation")?.ok_or_else(|| damaged("operation"))?,
            label: text(label, "label")?.map(Label::new),
            scope: digest_of(scope, "scope digest")?,
            fingerprint: Fingerprint::from_bytes(exactly(
                payload.unwrap_or_default(),
                "payload digest",
            )?),
            elements: read_elements(elements.ok_or_else(|| damaged("payload elements"))?)?,
            state: State::from_code(needed(state, "state")?).ok_or_else(|| damaged("state"))?,
            fence: needed(fence, "fence")?,
            attempt: needed(attempt, "attempt")?,
            claim: Claim::from_bytes(exactly(claim.unwrap_or_default(), "claim")?),
            takeovers: needed(takeovers, "takeovers")?,
            doubt: needed::<i64>(doubt, "doubt")? != 0,
            lease_until_us: lease,
            started_us: needed(started, "start")?,
            finished_us: finished,
            expires_us,
            since_us,
            not_before_us,
            reason: some(reason, "reason")?,
            answer: answer.transpose()?,
            version_applied: version(applied.map(<[u8]>::to_vec))?,
            version_recorded: version(recorded.map(<[u8]>::to_vec))?,
            version_running: version(running.map(<[u8]>::to_vec))?,
            recorded_fingerprint: digest_of(recorded_payload, "recorded payload digest")?
                .map(Fingerprint::from_bytes),
            parent: digest_of(parent, "parent")?.map(RecordId::from_bytes),
        })
    }
}

fn exactly<const N: usize>(bytes: &[u8], what: &'static str) -> Result<[u8; N], StoreError> {
    bytes.try_into().map_err(|_| damaged(what))
}

fn digest_of(bytes: Option<&[u8]>, what: &'static str) -> Result<Option<[u8; 32]>, StoreError> {
    bytes.map(|bytes| exactly(bytes, what)).transpose()
}

fn text(bytes: Option<&[u8]>, what: &'static str) -> Result<Option<String>, StoreError> {
    let text = bytes.map(|bytes| String::from_utf8(bytes.to_vec()));
    text.transpose().map_err(|_| damaged(what))
}

/// Whether the record was there before, and what was found.
pub(super) fn found(row: &MySqlRow) -> Result<(bool, Looked), StoreError> {
    let now_us = row.try_get(0).map_err(|_| damaged("time"))?;
    let Some(columns) = Columns::of(row)? else {
        let record = None;
        return Ok((false, Looked { now_us, record }));
    };
    let [before, ..] = columns.packed.numbers;
    let record = Some(columns.record()?);
    Ok((
        needed::<i64>(before, "presence")? != 0,
        Looked { now_us, record },
    ))
}

pub(super) fn record(row: &MySqlRow) -> Result<Record, StoreError> {
    let columns = Columns::of(row)?.ok_or_else(|| damaged("id"))?;
    columns.record()
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
