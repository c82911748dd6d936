//! Every SQL text of this store.

pub(super) const BEGIN: &str = "BEGIN IMMEDIATE";
pub(super) const COMMIT: &str = "COMMIT";
pub(super) const ROLLBACK: &str = "ROLLBACK";

/// The migrations in their order, each with its number.
pub(super) const MIGRATIONS: &[(i64, &str)] = &[(
    1,
    include_str!("../../../migrations/sqlite/0001_records.sql"),
)];

pub(super) const CREATE_SCHEMA_TABLE: &str = "CREATE TABLE IF NOT EXISTS idem_schema (
    version INTEGER NOT NULL PRIMARY KEY, applied_us INTEGER NOT NULL)";
pub(super) const SCHEMA_VERSION: &str = "SELECT max(version) FROM idem_schema";
pub(super) const SCHEMA_APPLIED: &str =
    "INSERT INTO idem_schema (version, applied_us) VALUES (?1, ?2)";

pub(super) const META: &str = "SELECT format, instance, secret_check FROM idem_meta";
pub(super) const PIN: &str = "INSERT INTO idem_meta (one, format, instance, secret_check, clock_us)
    VALUES (1, ?1, ?2, ?3, ?4) ON CONFLICT (one) DO NOTHING";

pub(super) const CLOCK: &str = "SELECT clock_us FROM idem_meta";
pub(super) const ADVANCE_CLOCK: &str = "UPDATE idem_meta SET clock_us = ?1 WHERE clock_us < ?1";

macro_rules! columns {
    () => {
        "id, operation, label, scope_digest, payload_digest, payload_elements, state, fence, \
         attempt, claim, takeovers, doubt, lease_until_us, started_us, finished_us, expires_us, \
         since_us, not_before_us, reason, codec, failed, answer, answer_digest, version_applied, \
         version_recorded, version_running, recorded_payload_digest, parent"
    };
}

pub(super) const FIND: &str = concat!("SELECT ", columns!(), " FROM idem_records WHERE id = ?1");

pub(super) const WRITE: &str = concat!(
    "INSERT OR REPLACE INTO idem_records (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, \
     ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)"
);

/// States 1 to 3 are released, completed and tombstone; see
/// `Record::is_sweepable`.
pub(super) const SWEEP: &str = "DELETE FROM idem_records WHERE rowid IN (
    SELECT rowid FROM idem_records
    WHERE expires_us IS NOT NULL AND expires_us < ?1
      AND state IN (1, 2, 3) AND version_applied IS NULL
    ORDER BY expires_us LIMIT ?2)";

pub(super) const VERSION: &str = "SELECT sqlite_version()";
pub(super) const SYNCHRONOUS: &str = "PRAGMA synchronous";
