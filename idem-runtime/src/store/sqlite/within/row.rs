//! Rows of the caller's own connection, by the mapping of [`rows`].

use rusqlite::types::ValueRef;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteRow, SqliteValueRef};
use sqlx::{Decode, Row as _, TypeInfo as _, ValueRef as _, query::Query};

use crate::record::Record;
use crate::store::sql::write_elements;
use crate::store::sqlite::rows::{self, Columns};
use crate::store::sqlite::statements;

impl Columns for SqliteRow {
    fn value(&self, at: usize) -> Option<ValueRef<'_>> {
        let value = self.try_get_raw(at).ok()?;
        if value.is_null() {
            return Some(ValueRef::Null);
        }
        let kind = value.type_info();
        Some(match kind.name() {
            "INTEGER" => ValueRef::Integer(decoded(value)?),
            "TEXT" => ValueRef::Text(decoded(value)?),
            "BLOB" => ValueRef::Blob(decoded(value)?),
            "REAL" => ValueRef::Real(decoded(value)?),
            _ => return None,
        })
    }
}

fn decoded<'r, T: Decode<'r, Sqlite>>(value: SqliteValueRef<'r>) -> Option<T> {
    T::decode(value).ok()
}

/// As [`rows::write`].
pub(super) fn write(record: &Record) -> Query<'_, Sqlite, SqliteArguments> {
    let elements = write_elements(&record.elements);
    let query = sqlx::query(statements::WRITE);
    rows::values(record, &elements)
        .into_iter()
        .fold(query, |query, value| match value {
            ValueRef::Null => query.bind(None::<i64>),
            ValueRef::Integer(number) => query.bind(number),
            ValueRef::Real(number) => query.bind(number),
            ValueRef::Text(bytes) => query.bind(String::from_utf8_lossy(bytes).into_owned()),
            ValueRef::Blob(bytes) => query.bind(bytes.to_vec()),
        })
}
