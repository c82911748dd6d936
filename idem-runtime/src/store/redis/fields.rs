//! Between the fields of a hash and a record. What a record lacks has no field.

use crate::error::StoreError;
use crate::identity::{Fingerprint, RecordId};
use crate::record::{Claim, Label, Record, Recorded, Row, State, VersionBytes};
use crate::store::sql::{damaged, fixed, read_elements, version, write_elements};

/// Every field, those of the answer last.
const ALL: [&str; 27] = [
    "op",
    "label",
    "scope",
    "fp",
    "elements",
    "state",
    "fence",
    "attempt",
    "claim",
    "takeovers",
    "doubt",
    "lease",
    "started",
    "finished",
    "expires",
    "since",
    "not_before",
    "reason",
    "v_applied",
    "v_recorded",
    "v_running",
    "recorded_fp",
    "parent",
    "codec",
    "failed",
    "answer",
    "digest",
];

/// Every field but those of the answer.
pub(super) const WITHOUT_ANSWER: &[&str] = ALL.split_at(23).0;

/// What says where a record stands.
pub(super) const STANDING: &[&str] = &["state", "lease", "expires"];

/// What tells the end of a finished record to who asks for no version.
pub(super) const GLANCE: &[&str] = &[
    "state", "fp", "attempt", "finished", "expires", "reason", "codec", "failed", "answer",
    "digest",
];

/// A record's fields, as names and values.
#[derive(Default)]
pub(super) struct Fields(Vec<(&'static str, Vec<u8>)>);

impl Fields {
    pub(super) fn of(record: &Record) -> Self {
        let mut fields = Self::default();
        let bytes =
            |version: &Option<VersionBytes>| version.as_ref().map(|v| v.as_bytes().to_vec());
        fields.put("op", &record.operation);
        fields.put_some("label", record.label.as_ref().map(Label::as_str));
        fields.put_some("scope", record.scope);
        fields.put("fp", record.fingerprint.as_bytes());
        fields.put("elements", write_elements(&record.elements));
        fields.put_number("state", Some(record.state.code()));
        fields.put_number("fence", Some(record.fence));
        fields.put_number("attempt", Some(record.attempt));
        fields.put("claim", record.claim.as_bytes());
        fields.put_number("takeovers", Some(record.takeovers));
        fields.put_number("doubt", Some(u8::from(record.doubt)));
        fields.put_number("lease", record.lease_until_us);
        fields.put_number("started", Some(record.started_us));
        fields.put_number("finished", record.finished_us);
        fields.put_number("expires", record.expires_us);
        fields.put_number("since", record.since_us);
        fields.put_number("not_before", record.not_before_us);
        fields.put_number("reason", record.reason);
        fields.put_answer(record.answer.as_ref());
        fields.put_some("v_applied", bytes(&record.version_applied));
        fields.put_some("v_recorded", bytes(&record.version_recorded));
        fields.put_some("v_running", bytes(&record.version_running));
        fields.put_some(
            "recorded_fp",
            record.recorded_fingerprint.map(|f| *f.as_bytes()),
        );
        fields.put_some("parent", record.parent.map(|id| *id.as_bytes()));
        fields
    }

    pub(super) fn put(&mut self, name: &'static str, value: impl AsRef<[u8]>) {
        self.0.push((name, value.as_ref().to_vec()));
    }

    fn put_some(&mut self, name: &'static str, value: Option<impl AsRef<[u8]>>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    pub(super) fn put_number(&mut self, name: &'static str, number: Option<impl ToString>) {
        self.put_some(name, number.map(|number| number.to_string()));
    }

    pub(super) fn put_answer(&mut self, answer: Option<&Recorded>) {
        if let Some(answer) = answer {
            self.put("codec", &answer.codec);
            self.put_number("failed", Some(u8::from(answer.failed)));
            self.put("answer", &answer.bytes);
            self.put("digest", answer.digest);
        }
    }

    /// Adds names and values, in turn, to a script's arguments.
    pub(super) fn append_to(self, args: &mut Vec<Vec<u8>>) {
        for (name, value) in self.0 {
            args.push(name.as_bytes().to_vec());
            args.push(value);
        }
    }
}

/// The fields of a hash, in the order of [`ALL`].
pub(super) struct Hash {
    values: [Option<Vec<u8>>; ALL.len()],
    is_empty: bool,
}

impl Hash {
    /// Takes names and values in turn.
    pub(super) fn of_flat(flat: Vec<Vec<u8>>) -> Self {
        let mut hash = Self::empty();
        let mut flat = flat.into_iter();
        while let (Some(name), Some(value)) = (flat.next(), flat.next()) {
            hash.put(&name, value);
        }
        hash
    }

    /// Takes the values of fields, none of one that is not there.
    pub(super) fn named(names: &[&str], values: Vec<Option<Vec<u8>>>) -> Self {
        let mut hash = Self::empty();
        for (name, value) in names.iter().zip(values) {
            if let Some(value) = value {
                hash.put(name.as_bytes(), value);
            }
        }
        hash
    }

    fn empty() -> Self {
        Self {
            values: [const { None }; ALL.len()],
            is_empty: true,
        }
    }

    fn put(&mut self, name: &[u8], value: Vec<u8>) {
        self.is_empty = false;
        if let Some(at) = place(name) {
            self.values[at] = Some(value);
        }
    }

    /// Reads what says where the record stands, if there is one.
    pub(super) fn row(mut self) -> Result<Option<Row>, StoreError> {
        if self.is_empty {
            return Ok(None);
        }
        Ok(Some(Row {
            state: State::from_code(self.number("state")?).ok_or_else(|| damaged("state"))?,
            lease_until_us: self.some_number("lease")?,
            expires_us: self.some_number("expires")?,
        }))
    }

    /// Reads the record, if there is one.
    pub(super) fn record(mut self, id: &RecordId) -> Result<Option<Record>, StoreError> {
        if self.is_empty {
            return Ok(None);
        }
        let state = State::from_code(self.number("state")?).ok_or_else(|| damaged("state"))?;
        Ok(Some(Record {
            id: *id,
            operation: self.text("op")?.ok_or_else(|| damaged("operation"))?,
            label: self.text("label")?.map(Label::new),
            scope: self.bytes_of("scope")?,
            fingerprint: Fingerprint::from_bytes(self.needed("fp")?),
            elements: read_elements(&self.take("elements").unwrap_or_default())?,
            state,
            fence: self.number("fence")?,
            attempt: self.number("attempt")?,
            claim: Claim::from_bytes(self.needed("claim")?),
            takeovers: self.number("takeovers")?,
            doubt: self.number::<u8>("doubt")? == 1,
            lease_until_us: self.some_number("lease")?,
            started_us: self.number("started")?,
            finished_us: self.some_number("finished")?,
            expires_us: self.some_number("expires")?,
            since_us: self.some_number("since")?,
            not_before_us: self.some_number("not_before")?,
            reason: self.some_number("reason")?,
            answer: self.answer()?,
            version_applied: version(self.take("v_applied"))?,
            version_recorded: version(self.take("v_recorded"))?,
            version_running: version(self.take("v_running"))?,
            recorded_fingerprint: self.bytes_of("recorded_fp")?.map(Fingerprint::from_bytes),
            parent: self.bytes_of("parent")?.map(RecordId::from_bytes),
        }))
    }

    /// Reads, of a finished record, what [`GLANCE`] names. The rest is nothing
    /// that stands in the store: only what is told by these fields may be told.
    pub(super) fn finished(mut self, id: &RecordId) -> Result<Option<Record>, StoreError> {
        let state = self.some_number("state")?.and_then(State::from_code);
        let Some(state @ (State::Completed | State::Tombstone)) = state else {
            return Ok(None);
        };
        Ok(Some(Record {
            id: *id,
            operation: String::new(),
            label: None,
            scope: None,
            fingerprint: Fingerprint::from_bytes(self.needed("fp")?),
            elements: Vec::new(),
            state,
            fence: 0,
            attempt: self.number("attempt")?,
            claim: Claim::from_bytes([0; 16]),
            takeovers: 0,
            doubt: false,
            lease_until_us: None,
            started_us: 0,
            finished_us: Some(self.number("finished")?),
            expires_us: self.some_number("expires")?,
            since_us: None,
            not_before_us: None,
            reason: self.some_number("reason")?,
            answer: self.answer()?,
            version_applied: None,
            version_recorded: None,
            version_running: None,
            recorded_fingerprint: None,
            parent: None,
        }))
    }

    fn answer(&mut self) -> Result<Option<Recorded>, StoreError> {
        let Some(bytes) = self.take("answer") else {
            return Ok(None);
        };
        Ok(Some(Recorded {
            codec: self.text("codec")?.ok_or_else(|| damaged("codec"))?,
            failed: self.number::<u8>("failed")? == 1,
            bytes,
            // One of another length cannot match; the engine then says so.
            digest: self
                .take("digest")
                .and_then(|digest| digest.try_into().ok())
                .unwrap_or_default(),
        }))
    }

    fn take(&mut self, name: &str) -> Option<Vec<u8>> {
        place(name.as_bytes()).and_then(|at| self.values[at].take())
    }

    fn text(&mut self, name: &'static str) -> Result<Option<String>, StoreError> {
        let text = self.take(name).map(String::from_utf8).transpose();
        text.map_err(|_| damaged(name))
    }

    fn bytes_of<const N: usize>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<[u8; N]>, StoreError> {
        self.take(name).map(|bytes| fixed(bytes, name)).transpose()
    }

    fn needed<const N: usize>(&mut self, name: &'static str) -> Result<[u8; N], StoreError> {
        self.bytes_of(name)?.ok_or_else(|| damaged(name))
    }

    fn some_number<T: std::str::FromStr>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, StoreError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| damaged(name))
    }

    fn number<T: std::str::FromStr>(&mut self, name: &'static str) -> Result<T, StoreError> {
        self.some_number(name)?.ok_or_else(|| damaged(name))
    }
}

fn place(name: &[u8]) -> Option<usize> {
    ALL.iter().position(|known| known.as_bytes() == name)
}
