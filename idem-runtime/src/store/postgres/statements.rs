//! Every SQL text of this store, with the names of its tables filled in.

use std::fmt;

use crate::record::Standing;

/// What a session of the store's own is told. Every statement of a call finds
/// its rows by the primary key, whatever its values are: planned anew for each
/// call, as the server likes to for more than one table, it would cost a third
/// more. A plan that was made while the table was small must not read all of it
/// later.
pub(super) const SESSION: &str = "set plan_cache_mode = force_generic_plan; \
    set enable_seqscan = off; set jit = off";

/// The server's time, or a test's. `clock_timestamp` goes on inside of a
/// statement that waits.
macro_rules! now {
    ($clock:literal) => {
        concat!(
            "coalesce(",
            $clock,
            "::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint)"
        )
    };
}

macro_rules! columns {
    ($r:literal) => {
        columns!($r, concat!($r, "answer"))
    };
    ($r:literal, $answer:expr) => {
        concat!(
            $r,
            "id, ",
            $r,
            "operation, ",
            $r,
            "label, ",
            $r,
            "scope_digest, ",
            $r,
            "payload_digest, ",
            $r,
            "payload_elements, ",
            $r,
            "state, ",
            $r,
            "fence, ",
            $r,
            "attempt, ",
            $r,
            "claim, ",
            $r,
            "takeovers, ",
            $r,
            "doubt, ",
            $r,
            "lease_until_us, ",
            $r,
            "started_us, ",
            $r,
            "finished_us, ",
            $r,
            "expires_us, ",
            $r,
            "since_us, ",
            $r,
            "not_before_us, ",
            $r,
            "reason, ",
            $r,
            "codec, ",
            $r,
            "failed, ",
            $answer,
            ", ",
            $r,
            "answer_digest, ",
            $r,
            "version_applied, ",
            $r,
            "version_recorded, ",
            $r,
            "version_running, ",
            $r,
            "recorded_payload_digest, ",
            $r,
            "parent"
        )
    };
}

/// A fresh key, or what stands there, in one trip. The look before the insert is
/// for speed alone: without it a replay would pay for the checks of a row that
/// is not written, a third of its time. If another session commits
/// the same key between this statement's snapshot and its insert, neither is
/// found: send it again.
const RESERVE: &str = concat!(
    "with ins as (insert into {records} (id, operation, label, scope_digest, payload_digest, \
       payload_elements, state, fence, attempt, claim, takeovers, doubt, lease_until_us, \
       started_us, version_running) \
       select $1, $2, $3, $4, $5, $6, 0, c.now, 1, $7, 0, false, c.now + $8, c.now, $9 \
       from (select ",
    now!("$10"),
    " as now) c \
       where not exists (select 1 from {records} where id = $1) \
       on conflict (id) do nothing returning fence) \
     select ",
    now!("$10"),
    " as now, ins.fence as won, ",
    columns!("r."),
    " \
     from (select 1) one left join ins on true \
     left join {records} r on r.id = $1 and ins.fence is null"
);

/// How long what goes together waits for another session's lock. Then each goes
/// by itself, so that one key whose transaction is open delays no other's call.
macro_rules! patience {
    () => {
        "set_config('lock_timeout', '50ms', true) as patience"
    };
}

/// The same for many fresh keys, or what stands there. In the order of their
/// ids, so that two of these cannot block each other.
///
/// In statements for many, `offset 0` keeps a subquery as it stands, so that each
/// key is looked up: joined, a plan that was made while the table was empty reads
/// all of it, or all that was ever open, once for each batch.
const RESERVE_MANY: &str = concat!(
    "with c as materialized (select ",
    now!("$10"),
    " as now, ",
    patience!(),
    "), \
     q as materialized (select * from unnest($1::bytea[], $2::text[], $3::text[], $4::bytea[], \
       $5::bytea[], $6::bytea[], $7::bytea[], $8::bigint[], $9::bytea[]) \
       as q (id, operation, label, scope_digest, payload_digest, payload_elements, claim, \
         lease_us, version_running)), \
     ins as (insert into {records} (id, operation, label, scope_digest, payload_digest, \
       payload_elements, state, fence, attempt, claim, takeovers, doubt, lease_until_us, \
       started_us, version_running) \
       select q.id, q.operation, q.label, q.scope_digest, q.payload_digest, \
         q.payload_elements, 0, c.now, 1, q.claim, 0, false, c.now + q.lease_us, c.now, \
         q.version_running from c, q \
       where not exists (select 1 from {records} r where r.id = q.id offset 0) order by q.id \
       on conflict (id) do nothing returning id, fence) \
     select c.now, ins.fence as won, ",
    columns!("r."),
    ", q.id as asked \
     from c cross join q left join ins on ins.id = q.id \
     left join lateral (select * from {records} r where r.id = q.id and ins.id is null offset 0) r \
       on true"
);

/// The same inside of the caller's transaction, and without a lease. Whoever
/// holds the lock of a key is the only transaction that writes it, so the insert
/// waits for nobody. It is also guarded by the instance, and by the isolation,
/// above which an answer that was committed since the transaction began cannot
/// be seen.
const RESERVE_IN: &str = concat!(
    "with c as materialized (select ",
    now!("$9"),
    " as now, pg_try_advisory_xact_lock($10) as free, \
       exists (select 1 from {meta} where instance = $11) as same, \
       current_setting('transaction_isolation') in ('read committed', 'read uncommitted') as sees), \
     ins as (insert into {records} (id, operation, label, scope_digest, payload_digest, \
       payload_elements, state, fence, attempt, claim, takeovers, doubt, started_us, \
       version_running) \
       select $1, $2, $3, $4, $5, $6, 0, c.now, 1, $7, 0, false, c.now, $8 from c \
       where c.free and c.same and c.sees on conflict (id) do nothing returning fence) \
     select c.now, ins.fence as won, ",
    columns!("r."),
    ", c.free, c.same, c.sees \
     from c left join ins on true \
     left join {records} r on r.id = $1 and not exists (select 1 from ins)"
);

const FIND: &str = concat!(
    "select ",
    now!("$2"),
    " as now, null::bigint as won, ",
    columns!("r."),
    " \
     from (select 1) one left join {records} r on r.id = $1"
);

/// Writes what was decided on a record, if it is still the one that was seen:
/// every other write changes one of these.
macro_rules! swap {
    () => {
        "update {records} set operation = $2, label = $3, scope_digest = $4, \
           payload_digest = $5, payload_elements = $6, state = $7, fence = $8, attempt = $9, \
           claim = $10, takeovers = $11, doubt = $12, lease_until_us = $13, started_us = $14, \
           finished_us = $15, expires_us = $16, since_us = $17, not_before_us = $18, \
           reason = $19, codec = $20, failed = $21, answer = $22, answer_digest = $23, \
           version_applied = $24, version_recorded = $25, version_running = $26, \
           recorded_payload_digest = $27, parent = $28 \
         where id = $1 and state = $29 and fence = $30 and claim = $31 \
           and lease_until_us is not distinct from $32"
    };
}
const SWAP: &str = swap!();

/// The same where it begins a new life of the key: its steps are gone with it.
/// Those of a life that was seen to be over are nobody's, so they may go also
/// if the record has changed; a newer life's have a larger fence.
const SWAP_LIFE: &str = concat!(
    "with gone as (delete from {steps} where record_id = $1 and fence <= $30) ",
    swap!()
);

/// The same with an entry in the audit: of what has changed, so both or neither.
const SWAP_AUDITED: &str = concat!(
    "with changed as (",
    swap!(),
    " returning id), \
     gone as (delete from {steps} where record_id in (select id from changed)) \
     insert into {audit} (record_id, at_us, was, fence, became, forced, who, why) \
     select id, $33, $29, $30, $34, $35, $36, $37 from changed"
);

/// What the end of an attempt sets: the transition of the same name. Of a row
/// `r`, at the time `c.now`, to the values that follow.
macro_rules! ended {
    ($state:literal, $ttl:literal, $reason:literal, $codec:literal, $failed:literal,
     $answer:literal, $digest:literal) => {
        concat!(
            "state = ",
            $state,
            ", finished_us = c.now, \
             expires_us = case when c.now > 9223372036854775807 - ",
            $ttl,
            "::bigint then null else c.now + ",
            $ttl,
            "::bigint end, \
             lease_until_us = null, not_before_us = null, doubt = false, since_us = null, \
             reason = ",
            $reason,
            ", codec = ",
            $codec,
            ", failed = ",
            $failed,
            ", answer = ",
            $answer,
            ", answer_digest = ",
            $digest,
            ", version_recorded = r.version_running, version_running = null, \
             recorded_payload_digest = null, \
             version_applied = case when ",
            $failed,
            " = false and r.version_running is not null \
                 and (r.version_applied is null or r.version_applied < r.version_running) \
               then r.version_running else r.version_applied end"
        )
    };
}

/// The end of an attempt in one trip.
const COMPLETE: &str = concat!(
    "update {records} r set ",
    ended!("$4", "$5", "$6", "$7", "$8", "$9", "$10"),
    " from (select ",
    now!("$11"),
    " as now) c where r.id = $1 and r.claim = $2 and r.fence = $3 and r.state in (0, 4)"
);

/// The ends of many attempts, and the ids of those that were their holders'.
/// Locked in the order of their ids, so that neither another batch nor a renewal
/// can block it for good. All are listed before the first one is locked, so how
/// long it waits is set by then.
const COMPLETE_MANY: &str = concat!(
    "with c as materialized (select ",
    now!("$11"),
    " as now, ",
    patience!(),
    "), \
     q as materialized (select q.* from c cross join unnest($1::bytea[], $2::bytea[], \
       $3::bigint[], $4::smallint[], $5::bigint[], $6::smallint[], $7::text[], $8::boolean[], \
       $9::bytea[], $10::bytea[]) as q (id, claim, fence, state, ttl_us, reason, codec, failed, \
         answer, answer_digest) order by id), \
     held as materialized (select q.* from q cross join lateral (select 1 \
       from {records} r where r.id = q.id and r.claim = q.claim and r.fence = q.fence \
       and r.state in (0, 4) offset 0 for update of r) r) \
     update {records} r set ",
    ended!(
        "held.state",
        "held.ttl_us",
        "held.reason",
        "held.codec",
        "held.failed",
        "held.answer",
        "held.answer_digest"
    ),
    " from c, held where r.id = any(array[held.id]) returning r.id"
);

/// Locked in the order of their ids, so that two batches cannot block each
/// other.
const RENEW: &str = concat!(
    "with c as materialized (select ",
    now!("$5"),
    " as now), \
     h as materialized (select * from unnest($1::bytea[], $2::bytea[], $3::bigint[], \
       $4::bigint[]) as h (id, claim, fence, lease_us) order by id), \
     held as materialized (select h.id, h.lease_us from h cross join lateral (select 1 \
       from {records} r where r.id = h.id and r.claim = h.claim and r.fence = h.fence \
       and r.state = 0 offset 0 for update of r) r) \
     update {records} r set lease_until_us = c.now + held.lease_us \
     from held, c where r.id = any(array[held.id]) returning r.id"
);

/// Where the records of an array of ids stand.
const STANDINGS: &str = concat!(
    "select ",
    now!("$2"),
    ", id, state, lease_until_us, expires_us from {records} where id = any($1::bytea[])"
);

/// States 1 to 3 are released, completed and tombstone; see
/// `Record::is_sweepable`.
const SWEEP: &str = concat!(
    "delete from {records} where id in (select id from {records} \
     where expires_us is not null and expires_us < ",
    now!("$1"),
    " - $2::bigint \
     and state in (1, 2, 3) and version_applied is null \
     order by expires_us limit $3 for update skip locked)"
);

const NOW: &str = concat!("select ", now!("$1"));

/// A page of the records that stand as asked for: the time, the time before
/// which a lease has lapsed, the id before, operation and limit. The answers
/// stay where they are.
const SCAN: &str = concat!(
    "select null::bigint as now, null::bigint as won, ",
    columns!("", "null::bytea as answer"),
    " from {records} where {stands} and id > $3 and ($4::text is null or operation = $4) \
     order by id limit $5"
);

/// Where a record stands, as `Record::standing` says. What is open is found in
/// the index whose words these are.
const fn stands(standing: Standing) -> &'static str {
    match standing {
        Standing::Unknown => "state in (0, 4) and (state = 4 or lease_until_us is null)",
        Standing::Lapsed => "state in (0, 4) and state = 0 and lease_until_us < $2",
        Standing::InProgress => "state in (0, 4) and state = 0 and lease_until_us >= $2",
        Standing::Released => "state = 1 and (expires_us is null or expires_us >= $1)",
        Standing::Completed => "state = 2 and (expires_us is null or expires_us >= $1)",
        Standing::Tombstone => "state = 3 and (expires_us is null or expires_us >= $1)",
    }
}

/// What is in progress, lapsed and unknown, and since when: the time before
/// which a lease has lapsed.
const COUNT: &str = "select \
       count(*) filter (where state = 0 and lease_until_us >= $1), \
       count(*) filter (where state = 0 and lease_until_us < $1), \
       count(*) filter (where state = 4 or lease_until_us is null), \
       min(started_us) filter (where state = 0 and lease_until_us is not null), \
       min(coalesce(since_us, started_us)) filter (where state = 4 or lease_until_us is null) \
     from {records} where state in (0, 4)";
const COUNT_FINISHED: &str = "select count(*) from {records} where state in (1, 2, 3)";

const AUDIT: &str = "select at_us, was, fence, became, forced, who, why from {audit} \
     where record_id = $1 order by id";

/// A step, if the record is held, unless its attempt has kept it before: both
/// are told. The lock makes who takes the record away wait for it, or it finds
/// that it was taken.
const STEP: &str = concat!(
    "with held as materialized (select id from {records} \
       where id = $1 and claim = $2 and fence = $3 and state = 0 for share), \
     kept as (insert into {steps} (record_id, label, fence, position, basis, codec, answer, \
       answer_digest, recorded_us) select id, $4, $3, $5, $6, $7, $8, $9, ",
    now!("$10"),
    " from held on conflict (record_id, label, fence) do nothing returning fence) \
     select exists (select 1 from held), exists (select 1 from kept)"
);
/// The steps of a record that is held, or a row without one; no row if it is not.
const STEPS: &str = "select s.label, s.position, s.basis, s.codec, s.answer, s.answer_digest \
     from {records} r left join {steps} s on s.record_id = r.id \
     where r.id = $1 and r.claim = $2 and r.fence = $3 and r.state = 0";

const PIN: &str = "insert into {meta} (one, format, instance, secret_check) \
     values (1, $1, $2, $3) on conflict (one) do nothing";
const META: &str = "select format, instance, secret_check from {meta}";

const CHECK: &str = "select pg_is_in_recovery(), current_setting('fsync') = 'on' \
     and current_setting('synchronous_commit') <> 'off', \
     to_regclass($3) is not null, \
     (select count(*) from pg_index where indrelid = to_regclass($1) and indisunique) > 1, \
     coalesce($2::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint)";

const CREATE_SCHEMA_TABLE: &str = "create table if not exists {schema} (
    version integer not null primary key, applied_us bigint not null)";
const SCHEMA_VERSION: &str = "select coalesce(max(version), 0) from {schema}";
const SCHEMA_APPLIED: &str = "insert into {schema} (version, applied_us) \
     values ($1, (extract(epoch from clock_timestamp()) * 1000000)::bigint)";

/// The migrations in their order, each with its number.
const MIGRATIONS: &[(i32, &str)] = &[
    (
        1,
        include_str!("../../../migrations/postgres/0001_records.sql"),
    ),
    (
        2,
        include_str!("../../../migrations/postgres/0002_audit.sql"),
    ),
    (
        3,
        include_str!("../../../migrations/postgres/0003_steps.sql"),
    ),
];

/// The texts for one set of tables.
#[derive(Clone)]
pub(super) struct Statements {
    /// The table whose indexes are looked at, as a quoted name.
    pub(super) records: String,
    /// The newest table, whose presence is looked for, as a quoted name.
    pub(super) newest: String,
    /// What tells this set from others in the same database.
    pub(super) place: String,
    pub(super) reserve: String,
    pub(super) reserve_many: String,
    pub(super) reserve_in: String,
    pub(super) find: String,
    pub(super) swap: String,
    pub(super) swap_life: String,
    pub(super) swap_audited: String,
    pub(super) step: String,
    pub(super) steps: String,
    pub(super) complete: String,
    pub(super) complete_many: String,
    pub(super) renew: String,
    pub(super) sweep: String,
    pub(super) standings: String,
    pub(super) now: String,
    scan: String,
    pub(super) count: String,
    pub(super) count_finished: String,
    pub(super) audit: String,
    pub(super) pin: String,
    pub(super) meta: String,
    pub(super) check: String,
    pub(super) create_namespace: Option<String>,
    pub(super) create_schema_table: String,
    pub(super) schema_version: String,
    pub(super) schema_applied: String,
    pub(super) migrations: Vec<(i32, String)>,
}

impl fmt::Debug for Statements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Statements").field(&self.place).finish()
    }
}

impl Statements {
    /// Fills in names, which were validated: they are quoted, and nothing else
    /// goes into a text.
    pub(super) fn new(schema: Option<&str>, prefix: &str) -> Self {
        let quoted = |table: &str| match schema {
            Some(schema) => format!("\"{schema}\".\"{prefix}{table}\""),
            None => format!("\"{prefix}{table}\""),
        };
        let fill = |text: &str| {
            text.replace("{records}", &quoted("records"))
                .replace("{meta}", &quoted("meta"))
                .replace("{schema}", &quoted("schema"))
                .replace("{audit}", &quoted("audit"))
                .replace("{steps}", &quoted("steps"))
                .replace("{expiry}", &format!("\"{prefix}records_expiry\""))
                .replace("{open}", &format!("\"{prefix}records_open\""))
                .replace("{audit_record}", &format!("\"{prefix}audit_record\""))
        };
        Self {
            records: quoted("records"),
            newest: quoted("steps"),
            place: quoted(""),
            reserve: fill(RESERVE),
            reserve_many: fill(RESERVE_MANY),
            reserve_in: fill(RESERVE_IN),
            find: fill(FIND),
            swap: fill(SWAP),
            swap_life: fill(SWAP_LIFE),
            swap_audited: fill(SWAP_AUDITED),
            step: fill(STEP),
            steps: fill(STEPS),
            complete: fill(COMPLETE),
            complete_many: fill(COMPLETE_MANY),
            renew: fill(RENEW),
            sweep: fill(SWEEP),
            standings: fill(STANDINGS),
            now: fill(NOW),
            scan: fill(SCAN),
            count: fill(COUNT),
            count_finished: fill(COUNT_FINISHED),
            audit: fill(AUDIT),
            pin: fill(PIN),
            meta: fill(META),
            check: fill(CHECK),
            create_namespace: schema
                .map(|schema| format!("create schema if not exists \"{schema}\"")),
            create_schema_table: fill(CREATE_SCHEMA_TABLE),
            schema_version: fill(SCHEMA_VERSION),
            schema_applied: fill(SCHEMA_APPLIED),
            migrations: MIGRATIONS
                .iter()
                .map(|(number, sql)| (*number, fill(sql)))
                .collect(),
        }
    }

    /// Returns the look at a page of records.
    pub(super) fn scan(&self, standing: Standing) -> String {
        self.scan.replace("{stands}", stands(standing))
    }
}
