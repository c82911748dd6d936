//! What a store's settings or abilities are found to be.

#[cfg(doc)]
use super::{Counts, Store, StoreAdmin};

/// Something about a store's settings that the engine tells at start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finding {
    /// A commit may be lost on power failure. Voids at-most-once.
    NotDurable,
    /// A `SQLite` before 3.51.3 can damage a database that several connections
    /// write (<https://sqlite.org/wal.html#walresetbug>). Voids at-most-once.
    OldSqlite,
    /// The store answers from a replica, which may not know of a reservation.
    /// Voids at-most-once.
    Replica,
    /// The store may delete records when memory is short. Voids at-most-once.
    Evicting,
    /// A Redis before 7 cannot record answers when memory is short. Voids
    /// at-most-once.
    OldRedis,
    /// The store does not tell its settings, as some that are run by others.
    /// Voids at-most-once, for all that can be seen.
    SettingsHidden,
    /// Another server may take over without knowing of the last reservations.
    /// A warning.
    MayFailOver,
    /// The schema is missing or old. Nothing starts on it.
    NoSchema,
    /// Records live in this process only. A warning.
    NotShared,
    /// The database file can be read by other users of the host. A warning.
    ReadableByOthers,
    /// No secret is set, so low-entropy values can be guessed from digests; and
    /// none can be added to this store later. A warning.
    NoSecret,
    /// The store holds times far ahead of its clock. A warning.
    ClockBehind,
    /// A table of the store is of an engine without transactions. Voids
    /// at-most-once.
    NotTransactional,
    /// The pool's sessions do not commit by themselves. Voids at-most-once.
    NoAutocommit,
    /// The pool's sessions read what others have not committed. Voids
    /// at-most-once.
    DirtyReads,
    /// The records have a unique index besides that of their id. Voids
    /// at-most-once.
    OtherUniqueIndex,
    /// The pool's sessions cut values that do not fit, instead of refusing
    /// them. A warning.
    NotStrict,
    /// The server takes no answer of the engine's limit. A warning: the limit
    /// becomes [`Store::largest_answer`].
    SmallPackets,
    /// The server's clock differs from this process's by more than 10 s. It is
    /// told, and never an error: only the store's clock decides.
    ClockApart,
}

/// Something that a store may lack without any harm to the promise. Cases of
/// the suite that need it are then counted as not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// A side for operators: [`Store::admin`].
    Admin,
    /// Pages and counts of finished records: [`StoreAdmin::scan`] of what is
    /// completed, a tombstone or released, [`Counts::finished`].
    ListFinished,
    /// A time that stands still when its clock steps back. Without it, what had
    /// lapsed or expired may count again until the clock has caught up; and what
    /// is written meanwhile lapses or expires early if the clock then steps
    /// forward.
    SteadyClock,
    /// Counting what [`Store::sweep`] deletes. Without it the server deletes
    /// expired records by itself.
    Sweep,
    /// Keeping the steps of a body: [`Store::record_step`]. Without it
    /// [`step`](crate::step) is refused before it runs.
    Steps,
    /// Looking at many records at once: [`Store::standings`].
    Standings,
}

impl std::fmt::Display for Capability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Admin => "a side for operators",
            Self::ListFinished => "lists of finished records",
            Self::SteadyClock => "a steady clock",
            Self::Sweep => "counted sweeps",
            Self::Steps => "steps",
            Self::Standings => "looks at many records",
        })
    }
}

impl Finding {
    /// Returns whether the promise of at most one run is void with it.
    #[must_use]
    pub fn voids_at_most_once(self) -> bool {
        matches!(
            self,
            Self::NotDurable
                | Self::OldSqlite
                | Self::Replica
                | Self::Evicting
                | Self::OldRedis
                | Self::SettingsHidden
                | Self::NoSchema
                | Self::NotTransactional
                | Self::NoAutocommit
                | Self::DirtyReads
                | Self::OtherUniqueIndex
        )
    }

    /// Returns whether a strict engine does not start with it.
    #[must_use]
    pub fn is_refused_when_strict(self) -> bool {
        self != Self::ClockApart
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotDurable => "the store does not flush commits to disk: an acknowledged reservation can be lost",
            Self::OldSqlite => "SQLite is older than 3.51.3: several connections can damage the file",
            Self::Replica => "the store is a read replica, which may not know of a reservation: connect to the primary",
            Self::Evicting => "the store may delete records when memory is short: set `maxmemory-policy noeviction`",
            Self::OldRedis => "Redis is older than 7: when memory is short it cannot record the answer of a body that ran",
            Self::SettingsHidden => "the store does not tell its settings, so whether it flushes each write and evicts nothing cannot be seen: ask whoever runs it",
            Self::MayFailOver => "another server may take over without knowing of the last reservations, whose bodies then run again: send `downstream_key` or compare `fence` where that matters",
            Self::NoSchema => "the schema is missing or old: call `migrate()` on the store first, or run its printed SQL",
            Self::NotShared => "records live in this process only and end with it",
            Self::ReadableByOthers => "the database file can be read by other users: set its mode to 0600",
            Self::NoSecret => "no secret is set, and none can be added to this store later: low-entropy keys and payloads can be guessed from their digests; set one with `Engine::builder(..).secret(Secret::new(bytes)?)`",
            Self::ClockBehind => "the store holds times more than a day ahead of its clock: leases and TTLs stand still until the clock catches up",
            Self::NotTransactional => "a table of the store is not of the engine InnoDB: change it with `ALTER TABLE … ENGINE = InnoDB`",
            Self::NoAutocommit => "the pool's sessions have `autocommit = 0`, so that no reservation is committed: set it to 1, or let the store open its own connections",
            Self::DirtyReads => "the pool's sessions read uncommitted rows, and would replay an answer that a crash takes back: set their isolation level to READ COMMITTED or above",
            Self::OtherUniqueIndex => "the records have another unique index than their primary key, so that one key can be taken for another: drop it",
            Self::NotStrict => "the pool's sessions are not strict, so that the server cuts what does not fit: add STRICT_ALL_TABLES to their `sql_mode`",
            Self::SmallPackets => "the server's `max_allowed_packet` is below the engine's answer limit, so that larger answers become tombstones: raise it, or lower `answer_limit`",
            Self::ClockApart => "the server's clock differs from this process's by more than 10 s: nothing depends on it, since only the server's counts, but times in logs will not match",
        })
    }
}
