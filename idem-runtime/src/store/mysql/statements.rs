//! Every SQL text of this store, with the names of its tables filled in.

use std::fmt;

use super::Dialect;
use crate::record::Standing;

/// The server's time, or a test's: one parameter.
macro_rules! now {
    () => {
        "coalesce(?, timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)))"
    };
}

/// What may be null has an empty place then.
macro_rules! place {
    ($value:expr) => {
        concat!("coalesce(", $value, ", '')")
    };
}

/// The length of a text that may be null.
macro_rules! length {
    ($text:literal) => {
        place!(concat!("length(", $text, ")"))
    };
}

/// What is short of a record, in one column, as `packed.rs` reads it; null if
/// there is no record. No text of a number has a comma, and `concat_ws` leaves out
/// what is null. The server resolves each function at each execution: what cannot
/// be null, or has one length, has none.
macro_rules! packed {
    ($found:literal) => {
        concat!(
            "concat(concat_ws(',', ",
            $found,
            ", state, fence, attempt, takeovers, doubt, ",
            place!("lease_until_us"),
            ", started_us, ",
            place!("finished_us"),
            ", ",
            place!("expires_us"),
            ", ",
            place!("since_us"),
            ", ",
            place!("not_before_us"),
            ", ",
            place!("reason"),
            ", ",
            place!("failed"),
            ", 32, 32, 16, length(operation), ",
            length!("label"),
            ", ",
            length!("scope_digest"),
            ", ",
            length!("codec"),
            ", ",
            length!("answer_digest"),
            ", ",
            length!("version_applied"),
            ", ",
            length!("version_recorded"),
            ", ",
            length!("version_running"),
            ", ",
            length!("recorded_payload_digest"),
            ", ",
            length!("parent"),
            "), ';', id, concat_ws('', payload_digest, claim, operation, label, scope_digest, \
               codec, answer_digest, version_applied, version_recorded, version_running, \
               recorded_payload_digest, parent))"
        )
    };
}

/// The time, whether the record was there, and the record, as `rows.rs` reads
/// them.
macro_rules! columns {
    ($now:expr, $found:literal) => {
        columns!($now, $found, "answer")
    };
    ($now:expr, $found:literal, $answer:literal) => {
        concat!(
            $now,
            " as now, ",
            packed!($found),
            " as packed, payload_elements, ",
            $answer
        )
    };
}

/// A fresh row: id, operation, label, scope, payload, elements, claim, lease,
/// version, and the time.
macro_rules! insert {
    () => {
        concat!(
            "insert into {records} (id, operation, label, scope_digest, payload_digest, \
               payload_elements, state, fence, attempt, claim, takeovers, doubt, lease_until_us, \
               started_us, version_running) \
             select ?, ?, ?, ?, ?, ?, 0, last_insert_id(c.now), 1, ?, 0, false, c.now + ?, c.now, ? \
             from (select ", now!(), " as now) c"
        )
    };
}

/// A row of the next text: id, operation, label, scope, payload, elements, the
/// time, claim, the time, lease, the time, version. As values, and not selected
/// from a table that holds the time: that table would cost as much as the rest.
/// The variable is set anew for each row.
const FRESH: &str = concat!(
    "(?, ?, ?, ?, ?, ?, if(@idem_found := 0, 0, 0), ",
    now!(),
    ", 1, ?, 0, false, ",
    now!(),
    " + ?, ",
    now!(),
    ", ?)"
);

/// `MariaDB`: what goes together does not wait for another session's lock. Each
/// goes by itself then, so that one key whose transaction is open delays no
/// other's call.
macro_rules! no_wait {
    () => {
        "set statement innodb_lock_wait_timeout = 0 for "
    };
}

/// `MariaDB`: fresh keys, or what stands there, in one trip. `@idem_found` only
/// tells a repeated request from a first one.
const RESERVE: &str = concat!(
    "insert into {records} (id, operation, label, scope_digest, payload_digest, \
       payload_elements, state, fence, attempt, claim, takeovers, doubt, lease_until_us, \
       started_us, version_running) values {rows} \
     on duplicate key update id = if(@idem_found := 1, {records}.id, {records}.id) returning ",
    columns!(now!(), "@idem_found")
);

/// `MySQL` has no `returning`: an error 1062 says that the key is there.
const INSERT: &str = insert!();

/// The same inside of the caller's transaction, guarded by the instance. The
/// lease is bound to null.
macro_rules! insert_in {
    () => {
        concat!(insert!(), " join {meta} m on m.instance = ?")
    };
}

/// `MariaDB` knows whether there still is a transaction: a deadlock ends it.
const RESERVE_IN: &str = concat!(
    insert_in!(),
    " where @@in_transaction = 1 \
     on duplicate key update id = {records}.id returning ",
    columns!(now!(), "1")
);
const INSERT_IN: &str = insert_in!();

/// What stands there now, whatever the transaction has seen before.
const LOOK_IN: &str = concat!(
    "select ",
    columns!(now!(), "1"),
    " from (select 1) one left join {records} on id = ? lock in share mode"
);
const SAME: &str = "select one from {meta} where instance = ?";

const FIND: &str = concat!(
    "select ",
    columns!(now!(), "1"),
    " from (select 1) one left join {records} on id = ?"
);

/// Writes what was decided on a record, if it is still the one that was seen:
/// every other write changes one of these. The driver counts rows that match.
const SWAP: &str = "update {records} set \
     operation = ?, label = ?, scope_digest = ?, payload_digest = ?, payload_elements = ?, \
     state = ?, fence = ?, attempt = ?, claim = ?, takeovers = ?, doubt = ?, lease_until_us = ?, \
     started_us = ?, finished_us = ?, expires_us = ?, since_us = ?, not_before_us = ?, \
     reason = ?, codec = ?, failed = ?, answer = ?, answer_digest = ?, version_applied = ?, \
     version_recorded = ?, version_running = ?, recorded_payload_digest = ?, parent = ? \
     where id = ? and state = ? and fence = ? and claim = ? and lease_until_us <=> ?";

/// What the end of an attempt sets, each to a `$value`: the transition of the
/// same name. No assignment reads a column that an earlier one has set: they are
/// made in the order in which they are written
/// (<https://dev.mysql.com/doc/refman/8.4/en/update.html>).
macro_rules! ended {
    ($value:literal) => {
        concat!(
            "version_applied = if(",
            $value,
            " and version_running is not null \
                 and (version_applied is null or version_applied < version_running), \
               version_running, version_applied), \
             version_recorded = version_running, version_running = null, \
             recorded_payload_digest = null, \
             expires_us = if(",
            now!(),
            " > 9223372036854775807 - ",
            $value,
            ", null, ",
            now!(),
            " + ",
            $value,
            "), finished_us = ",
            now!(),
            ", lease_until_us = null, not_before_us = null, doubt = false, since_us = null, \
             reason = ",
            $value,
            ", codec = ",
            $value,
            ", failed = ",
            $value,
            ", answer = ",
            $value,
            ", answer_digest = ",
            $value,
            ", state = ",
            $value
        )
    };
}

/// The end of an attempt in one trip.
const COMPLETE: &str = concat!(
    "update {records} set ",
    ended!("?"),
    " where id = ? and claim = ? and fence = ? and state in (0, 4)"
);

/// The ends of many attempts: in each `{of}` are pairs of an id and its value,
/// and at the end who holds what.
const COMPLETE_MANY: &str = concat!(
    "update {records} set ",
    ended!("case id {of} end"),
    " where state in (0, 4) and (id, claim, fence) in ({holders})"
);

/// A batch of renewals; `{cases}` has the length of each lease.
const RENEW: &str = concat!(
    "update {records} set lease_until_us = ",
    now!(),
    " + case id {cases} end \
     where state = 0 and (id, claim, fence) in ({holders})"
);
const HELD: &str = "select id, claim, fence from {records} \
     where state = 0 and (id, claim, fence) in ({holders})";

/// Where records stand: the time, then the ids.
const STANDINGS: &str = concat!(
    "select ",
    now!(),
    ", id, state, lease_until_us, expires_us from {records} where id in ({ids})"
);

/// States 1 to 3 are released, completed and tombstone; see
/// `Record::is_sweepable`.
const SWEEP: &str = concat!(
    "delete from {records} where expires_us < ",
    now!(),
    " - ? \
     and state in (1, 2, 3) and version_applied is null order by expires_us limit ?"
);

const NOW: &str = concat!("select ", now!());

/// A page of the records that stand as asked for: the id before, operation
/// twice, and limit. The answers stay where they are. Operations are compared
/// as bytes: the collation ignores spaces at the end.
const SCAN: &str = concat!(
    "select ",
    columns!("null", "1", "null"),
    " from {records} where {stands} and id > ? \
       and (? is null or cast(operation as binary) = cast(? as binary)) \
     order by id limit ?"
);

/// The same among what has no expiry. The server is not asked which index it
/// would like: for a few rows in the order of their ids it may read them all.
const SCAN_OPEN: &str = concat!(
    "select ",
    columns!("null", "1", "null"),
    " from {records} force index (open) \
     where expires_us is null and {stands} and id > ? \
       and (? is null or cast(operation as binary) = cast(? as binary)) \
     order by id limit ?"
);

/// What is in progress, lapsed and unknown, and since when: twice the time
/// before which a lease has lapsed.
const COUNT: &str = "select \
       count(case when state = 0 and lease_until_us >= ? then 1 end), \
       count(case when state = 0 and lease_until_us < ? then 1 end), \
       count(case when state = 4 or lease_until_us is null then 1 end), \
       min(case when state = 0 and lease_until_us is not null then started_us end), \
       min(case when state = 4 or lease_until_us is null \
         then coalesce(since_us, started_us) end) \
     from {records} force index (open) where expires_us is null and state in (0, 4)";
const COUNT_FINISHED: &str = "select count(*) from {records} where state in (1, 2, 3)";

const NOTE: &str = "insert into {audit} (record_id, at_us, was, fence, became, forced, who, why) \
     values (?, ?, ?, ?, ?, ?, ?, ?)";
const AUDIT: &str = "select at_us, was, fence, became, forced, who, why from {audit} \
     where record_id = ? order by id";

/// A step, if the record is held; an error 1062 says that its attempt has kept
/// it before. The lock makes who takes the record away wait for it, or it finds
/// that it was taken.
const STEP: &str = concat!(
    "insert into {steps} (record_id, label, fence, position, basis, codec, answer, \
       answer_digest, recorded_us) \
     select id, ?, fence, ?, ?, ?, ?, ?, ",
    now!(),
    " from {records} where id = ? and claim = ? and fence = ? and state = 0 for update"
);
/// The steps of a record that is held, or a row without one; no row if it is not.
const STEPS: &str = "select s.label, s.position, s.basis, s.codec, s.answer, s.answer_digest \
     from {records} r left join {steps} s on s.record_id = r.id \
     where r.id = ? and r.claim = ? and r.fence = ? and r.state = 0";
const END_STEPS: &str = "delete from {steps} where record_id = ? and fence <= ?";

const PIN: &str = "insert into {meta} (one, format, instance, secret_check) \
     values (1, ?, ?, ?) on duplicate key update one = one";
const META: &str = "select format, instance, secret_check from {meta}";

const CHECK: &str = "select @@global.read_only = 1, \
     @@global.innodb_flush_log_at_trx_commit = 1 and (@@global.log_bin = 0 or @@global.sync_binlog = 1), \
     exists (select 1 from information_schema.tables \
       where table_schema = coalesce(?, database()) and table_name = ?), \
     exists (select 1 from information_schema.tables \
       where table_schema = coalesce(?, database()) and table_name in (?, ?) and engine <> 'InnoDB'), \
     @@session.autocommit = 1, \
     (select count(distinct index_name) from information_schema.statistics \
       where table_schema = coalesce(?, database()) and table_name = ? and non_unique = 0) > 1, \
     @@session.sql_mode like '%STRICT%', \
     cast(@@session.max_allowed_packet as signed), \
     cast(coalesce(?, timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))) as signed)";

/// The level has one name here and another there; this finds both.
const ISOLATION: &str = "show session variables where variable_name in \
     ('tx_isolation', 'transaction_isolation')";

/// What a session of this store's own needs, whatever the server's defaults.
pub(super) const SESSION: &str =
    "set session sql_mode = concat(@@session.sql_mode, ',STRICT_ALL_TABLES'), autocommit = 1";

const CREATE_SCHEMA_TABLE: &str = "create table if not exists {schema} (
    version int not null primary key, applied_us bigint not null) engine = InnoDB";
const SCHEMA_VERSION: &str = "select cast(coalesce(max(version), 0) as signed) from {schema}";
const SCHEMA_APPLIED: &str = "insert into {schema} (version, applied_us) \
     values (?, timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))) \
     on duplicate key update version = version";

/// The migrations in their order, each with its number.
const MIGRATIONS: &[(i64, &str)] = &[
    (
        1,
        include_str!("../../../migrations/mysql/0001_records.sql"),
    ),
    (2, include_str!("../../../migrations/mysql/0002_audit.sql")),
    (3, include_str!("../../../migrations/mysql/0003_steps.sql")),
];

/// The texts for one set of tables.
#[derive(Clone)]
pub(super) struct Statements {
    /// Database and names of the tables that are looked at; the newest tells
    /// whether the schema is up to date.
    pub(super) database: Option<String>,
    pub(super) records: String,
    pub(super) meta_table: String,
    pub(super) newest: String,
    /// What tells this set from others on the same server.
    pub(super) place: String,
    pub(super) reserve: String,
    reserve_rows: String,
    pub(super) insert: String,
    pub(super) reserve_in: String,
    pub(super) insert_in: String,
    pub(super) look_in: String,
    pub(super) same: String,
    pub(super) find: String,
    pub(super) swap: String,
    pub(super) complete: String,
    complete_many: String,
    renew: String,
    held: String,
    pub(super) sweep: String,
    standings: String,
    pub(super) now: String,
    scan: String,
    scan_open: String,
    pub(super) count: String,
    pub(super) count_finished: String,
    pub(super) note: String,
    pub(super) step: String,
    pub(super) steps: String,
    pub(super) end_steps: String,
    pub(super) audit: String,
    pub(super) pin: String,
    pub(super) meta: String,
    pub(super) check: &'static str,
    pub(super) isolation: &'static str,
    pub(super) create_schema_table: String,
    pub(super) schema_version: String,
    pub(super) schema_applied: String,
    pub(super) migrations: Vec<(i64, String)>,
}

impl fmt::Debug for Statements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Statements").field(&self.place).finish()
    }
}

impl Statements {
    /// Fills in names, which were validated: they are quoted, and nothing else
    /// goes into a text.
    pub(super) fn new(database: Option<&str>, prefix: &str) -> Self {
        let quoted = |table: &str| match database {
            Some(database) => format!("`{database}`.`{prefix}{table}`"),
            None => format!("`{prefix}{table}`"),
        };
        let text = |name: &str| format!("'{name}'");
        let fill = |sql: &str| {
            sql.replace("{records}", &quoted("records"))
                .replace("{steps}", &quoted("steps"))
                .replace("{audit}", &quoted("audit"))
                .replace("{records_name}", &text(&format!("{prefix}records")))
                .replace(
                    "{database}",
                    &database.map_or_else(|| "database()".to_owned(), text),
                )
                .replace("{meta}", &quoted("meta"))
                .replace("{schema}", &quoted("schema"))
        };
        Self {
            database: database.map(str::to_owned),
            records: format!("{prefix}records"),
            meta_table: format!("{prefix}meta"),
            newest: format!("{prefix}steps"),
            place: quoted(""),
            reserve: fill(&RESERVE.replace("{rows}", FRESH)),
            reserve_rows: fill(RESERVE),
            insert: fill(INSERT),
            reserve_in: fill(RESERVE_IN),
            insert_in: fill(INSERT_IN),
            look_in: fill(LOOK_IN),
            same: fill(SAME),
            find: fill(FIND),
            swap: fill(SWAP),
            complete: fill(COMPLETE),
            complete_many: fill(COMPLETE_MANY),
            renew: fill(RENEW),
            held: fill(HELD),
            sweep: fill(SWEEP),
            standings: fill(STANDINGS),
            now: fill(NOW),
            scan: fill(SCAN),
            scan_open: fill(SCAN_OPEN),
            count: fill(COUNT),
            count_finished: fill(COUNT_FINISHED),
            note: fill(NOTE),
            step: fill(STEP),
            steps: fill(STEPS),
            end_steps: fill(END_STEPS),
            audit: fill(AUDIT),
            pin: fill(PIN),
            meta: fill(META),
            check: CHECK,
            isolation: ISOLATION,
            create_schema_table: fill(CREATE_SCHEMA_TABLE),
            schema_version: fill(SCHEMA_VERSION),
            schema_applied: fill(SCHEMA_APPLIED),
            migrations: MIGRATIONS
                .iter()
                .map(|(number, sql)| (*number, fill(sql)))
                .collect(),
        }
    }

    /// Returns the look at a page of records that stand, as
    /// `Record::standing` says, with the time that it compares with, if any: a
    /// parameter before the others.
    pub(super) fn scan(
        &self,
        standing: Standing,
        now_us: i64,
        lapsed_us: i64,
    ) -> (String, Option<i64>) {
        let (stands, at_us) = match standing {
            Standing::Unknown => (
                "state in (0, 4) and (state = 4 or lease_until_us is null)",
                None,
            ),
            Standing::Lapsed => ("state = 0 and lease_until_us < ?", Some(lapsed_us)),
            Standing::InProgress => ("state = 0 and lease_until_us >= ?", Some(lapsed_us)),
            Standing::Released => (
                "state = 1 and (expires_us is null or expires_us >= ?)",
                Some(now_us),
            ),
            Standing::Completed => (
                "state = 2 and (expires_us is null or expires_us >= ?)",
                Some(now_us),
            ),
            Standing::Tombstone => (
                "state = 3 and (expires_us is null or expires_us >= ?)",
                Some(now_us),
            ),
        };
        let scan = if standing.is_open() {
            &self.scan_open
        } else {
            &self.scan
        };
        (scan.replace("{stands}", stands), at_us)
    }

    /// Returns the look at so many records, at least one.
    pub(super) fn standings(&self, ids: usize) -> String {
        self.standings.replace("{ids}", &vec!["?"; ids].join(", "))
    }

    /// Returns `MariaDB`'s reservation of so many keys.
    pub(super) fn reserve_many(&self, keys: usize) -> String {
        let rows = vec![FRESH; keys].join(", ");
        [no_wait!(), &self.reserve_rows.replace("{rows}", &rows)].concat()
    }

    /// Returns the end of so many attempts.
    pub(super) fn complete_many(&self, dialect: Dialect, attempts: usize) -> String {
        let of = "when ? then ? ".repeat(attempts);
        let holders = vec!["(?, ?, ?)"; attempts].join(", ");
        let text = self.complete_many.replace("{of}", &of);
        let text = text.replace("{holders}", &holders);
        match dialect {
            Dialect::MariaDb => [no_wait!(), &text].concat(),
            Dialect::MySql => text,
        }
    }

    /// Returns the renewal of so many leases, and the look at who is held.
    pub(super) fn renewal(&self, leases: usize) -> (String, String) {
        let cases = "when ? then ? ".repeat(leases);
        let holders = vec!["(?, ?, ?)"; leases].join(", ");
        let renew = self.renew.replace("{cases}", &cases);
        (
            renew.replace("{holders}", &holders),
            self.held.replace("{holders}", &holders),
        )
    }
}
