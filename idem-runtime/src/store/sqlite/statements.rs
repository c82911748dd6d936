//! Every SQL text of this store.

use crate::record::Standing;

/// Of each connection. A database that is in WAL mode stays in it.
pub(super) const SETTINGS: &str =
    "PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL";

pub(super) const BEGIN: &str = "BEGIN IMMEDIATE";
pub(super) const COMMIT: &str = "COMMIT";
pub(super) const ROLLBACK: &str = "ROLLBACK";

/// The migrations in their order, each with its number.
pub(super) const MIGRATIONS: &[(i64, &str)] = &[
    (
        1,
        include_str!("../../../migrations/sqlite/0001_records.sql"),
    ),
    (2, include_str!("../../../migrations/sqlite/0002_audit.sql")),
    (3, include_str!("../../../migrations/sqlite/0003_steps.sql")),
];

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
        columns!("answer")
    };
    ($answer:literal) => {
        concat!(
            "id, operation, label, scope_digest, payload_digest, payload_elements, state, fence, \
             attempt, claim, takeovers, doubt, lease_until_us, started_us, finished_us, \
             expires_us, since_us, not_before_us, reason, codec, failed, ",
            $answer,
            ", answer_digest, version_applied, version_recorded, version_running, \
             recorded_payload_digest, parent"
        )
    };
}

pub(super) const FIND: &str = concat!("SELECT ", columns!(), " FROM idem_records WHERE id = ?1");

pub(super) const WRITE: &str = concat!(
    "INSERT OR REPLACE INTO idem_records (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, \
     ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)"
);

/// A fresh row inside of the caller's transaction, without a lease, if the file
/// is the engine's own: the instance is a guard. The time is not behind what is
/// stored.
#[cfg(feature = "tx")]
pub(super) const RESERVE_IN: &str = "INSERT INTO idem_records (id, operation, label,
    scope_digest, payload_digest, payload_elements, state, fence, attempt, claim, takeovers,
    doubt, started_us, version_running)
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, 0, max(?9, m.clock_us), 1, ?7, 0, 0, max(?9, m.clock_us), ?8
    FROM idem_meta m WHERE m.instance = ?10
    ON CONFLICT (id) DO NOTHING RETURNING fence";

/// What stands there, if the file is the engine's own.
#[cfg(feature = "tx")]
pub(super) const LOOK_IN: &str = concat!(
    "SELECT ",
    columns!(),
    ", clock_us FROM idem_meta JOIN idem_records ON id = ?1 WHERE instance = ?2"
);

/// The end of an attempt in one statement: the transition of the same name.
#[cfg(feature = "tx")]
pub(super) const COMPLETE_IN: &str = "UPDATE idem_records SET state = ?4, finished_us = ?5,
    expires_us = ?6, lease_until_us = NULL, not_before_us = NULL, doubt = 0, since_us = NULL,
    reason = ?7, codec = ?8, failed = ?9, answer = ?10, answer_digest = ?11,
    version_recorded = version_running, version_running = NULL,
    recorded_payload_digest = NULL,
    version_applied = CASE WHEN ?9 = 0 AND version_running IS NOT NULL
        AND (version_applied IS NULL OR version_applied < version_running)
      THEN version_running ELSE version_applied END
    WHERE id = ?1 AND claim = ?2 AND fence = ?3 AND state IN (0, 4)";
/// Where records stand: all their ids in one value of 32 bytes each, and how
/// many they are. Each is looked for by the primary key, and no other row is
/// read.
pub(super) const STANDINGS: &str = "WITH RECURSIVE asked (at) AS (
        SELECT 0 UNION ALL SELECT at + 1 FROM asked WHERE at + 1 < ?2)
    SELECT id, state, lease_until_us, expires_us
    FROM asked CROSS JOIN idem_records ON id = substr(?1, 32 * at + 1, 32)";

/// States 1 to 3 are released, completed and tombstone; see
/// `Record::is_sweepable`.
pub(super) const SWEEP: &str = "DELETE FROM idem_records WHERE rowid IN (
    SELECT rowid FROM idem_records
    WHERE expires_us IS NOT NULL AND expires_us < ?1
      AND state IN (1, 2, 3) AND version_applied IS NULL
    ORDER BY expires_us LIMIT ?2)";

/// A page of the records that stand as `Record::standing` says: the time, the
/// time before which a lease has lapsed, the id before, operation and limit.
/// The answers stay on the disk.
macro_rules! scan {
    ($from:literal, $stands:literal) => {
        concat!(
            "SELECT ",
            columns!("NULL"),
            " FROM ",
            $from,
            " WHERE ",
            $stands,
            " AND id > ?3 AND (?4 IS NULL OR operation = ?4) ORDER BY id LIMIT ?5"
        )
    };
}

/// The planner takes a partial index only for the same words, and is not asked
/// which one it would like.
macro_rules! scan_open {
    ($stands:literal) => {
        scan!("idem_records INDEXED BY idem_records_open", $stands)
    };
}

pub(super) fn scan(standing: Standing) -> &'static str {
    match standing {
        Standing::Unknown => {
            scan_open!("state IN (0, 4) AND (state = 4 OR lease_until_us IS NULL)")
        }
        Standing::Lapsed => scan_open!("state IN (0, 4) AND state = 0 AND lease_until_us < ?2"),
        Standing::InProgress => {
            scan_open!("state IN (0, 4) AND state = 0 AND lease_until_us >= ?2")
        }
        Standing::Released => scan!(
            "idem_records",
            "state = 1 AND (expires_us IS NULL OR expires_us >= ?1)"
        ),
        Standing::Completed => scan!(
            "idem_records",
            "state = 2 AND (expires_us IS NULL OR expires_us >= ?1)"
        ),
        Standing::Tombstone => scan!(
            "idem_records",
            "state = 3 AND (expires_us IS NULL OR expires_us >= ?1)"
        ),
    }
}

/// What is in progress, lapsed and unknown, and since when: the time before
/// which a lease has lapsed.
pub(super) const COUNT: &str = "SELECT
    count(*) FILTER (WHERE state = 0 AND lease_until_us >= ?1),
    count(*) FILTER (WHERE state = 0 AND lease_until_us < ?1),
    count(*) FILTER (WHERE state = 4 OR lease_until_us IS NULL),
    min(started_us) FILTER (WHERE state = 0 AND lease_until_us IS NOT NULL),
    min(coalesce(since_us, started_us)) FILTER (WHERE state = 4 OR lease_until_us IS NULL)
    FROM idem_records INDEXED BY idem_records_open WHERE state IN (0, 4)";
pub(super) const COUNT_FINISHED: &str =
    "SELECT count(*) FROM idem_records WHERE state IN (1, 2, 3)";

pub(super) const NOTE: &str = "INSERT INTO idem_audit
    (record_id, at_us, was, fence, became, forced, who, why)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
pub(super) const AUDIT: &str = "SELECT at_us, was, fence, became, forced, who, why
    FROM idem_audit WHERE record_id = ?1 ORDER BY id";

/// A step, unless its attempt has kept it before.
pub(super) const STEP: &str = "INSERT INTO idem_steps
    (record_id, label, fence, position, basis, codec, answer, answer_digest, recorded_us)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
    ON CONFLICT (record_id, label, fence) DO NOTHING";
/// The steps of a record that is held, or a row without one; no row if it is not.
pub(super) const STEPS: &str = "SELECT s.label, s.position, s.basis, s.codec, s.answer,
    s.answer_digest FROM idem_records r LEFT JOIN idem_steps s ON s.record_id = r.id
    WHERE r.id = ?1 AND r.claim = ?2 AND r.fence = ?3 AND r.state = 0";

pub(super) const VERSION: &str = "SELECT sqlite_version()";
pub(super) const SYNCHRONOUS: &str = "PRAGMA synchronous";
