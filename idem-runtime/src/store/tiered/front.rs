//! The contract of a front, and the one in this process's memory.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

use crate::clock::{Clock, SystemClock};
use crate::error::StoreError;
use crate::sync::{Arc, Mutex, MutexGuard, lock};

/// What kind of entry a front holds: its first byte, which is all that a front
/// needs to look at.
///
/// ```
/// use idem::store::tiered::Kind;
///
/// assert_eq!(Kind::of(b"A..."), Some(Kind::Answer));
/// assert_eq!(Kind::of(b"B"), Some(Kind::Block));
/// assert_eq!(Kind::of(b""), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `A`: a recorded answer.
    Answer,
    /// `H`: another attempt is running.
    Hint,
    /// `B`: nothing may be put here.
    Block,
}

impl Kind {
    /// Returns the first byte of such an entry: `A`, `H` or `B`.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Answer => b'A',
            Self::Hint => b'H',
            Self::Block => b'B',
        }
    }

    /// Reads the first byte of an entry.
    #[must_use]
    pub fn of(entry: &[u8]) -> Option<Self> {
        let first = entry.first()?;
        [Self::Answer, Self::Hint, Self::Block]
            .into_iter()
            .find(|kind| kind.byte() == *first)
    }
}

/// A cache of keys with an expiry, in front of a store.
///
/// It may lose entries, be emptied, answer late or not at all: all that costs
/// is a question to the store behind. What it must do is compare the kind of
/// the entry that stands there, in one atomic step with its write:
///
/// | step | writes |
/// |---|---|
/// | [`fill`](Self::fill) | unless a [block](Kind::Block) stands there |
/// | [`hint`](Self::hint) | if nothing or a [hint](Kind::Hint) stands there |
/// | [`clear_hint`](Self::clear_hint) | deletes, if a hint stands there |
/// | [`block`](Self::block) | always |
///
/// Keys have at most 128 bytes, letters, digits, `-` and `:`. Entries are a few
/// bytes to the engine's largest answer. An expiry is from now; one that ends
/// later than asked for only makes room later, since entries carry their own
/// end.
///
/// # Concurrency
/// Methods are called concurrently and at any time.
///
/// # Cancel safety
/// Futures are dropped when they take too long. A write that was dropped may
/// still happen.
#[async_trait]
pub trait Front: Debug + Send + Sync + 'static {
    /// Returns the entry that stands there, unless it has expired.
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Puts an answer there, unless a block stands there.
    async fn fill(&self, key: &str, entry: &[u8], ttl: Duration) -> Result<(), StoreError>;

    /// Puts a hint there, if nothing or a hint stands there.
    async fn hint(&self, key: &str, entry: &[u8], ttl: Duration) -> Result<(), StoreError>;

    /// Deletes what stands there, if it is a hint.
    async fn clear_hint(&self, key: &str) -> Result<(), StoreError>;

    /// Puts the one byte of [`Kind::Block`] there, over whatever it is. What is
    /// acknowledged every later [`get`](Self::get) and
    /// [`fill`](Self::fill) sees.
    async fn block(&self, key: &str, ttl: Duration) -> Result<(), StoreError>;
}

/// A front in this process's memory.
///
/// It takes replays off a database for one process. Other processes have their
/// own, which an operator's block does not reach: an answer that is forgotten
/// in one process is replayed by the others for up to an hour. Where records
/// are forgotten while several processes serve, use a front that they share.
///
/// Clones share the same entries. When it is full, nothing new is kept until
/// something expires.
#[derive(Debug, Clone)]
pub struct MemoryFront(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    most_bytes: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    entries: HashMap<String, Held>,
    /// In the order of their expiry, so that making room reads no other entry.
    expiring: BTreeSet<(Duration, String)>,
    bytes: usize,
}

struct Held {
    entry: Vec<u8>,
    until: Duration,
}

impl MemoryFront {
    /// How many bytes of entries are kept unless told otherwise: 64 MiB.
    pub const MOST_BYTES: usize = 64 << 20;

    /// Creates an empty front for [`MOST_BYTES`](Self::MOST_BYTES).
    #[must_use]
    pub fn new() -> Self {
        Self::with(Self::MOST_BYTES, SystemClock)
    }

    /// Creates an empty front for so many bytes of entries, on the given clock,
    /// of which it takes the monotonic time.
    #[must_use]
    pub fn with(most_bytes: usize, clock: impl Clock) -> Self {
        Self(Arc::new(Shared {
            clock: Arc::new(clock),
            most_bytes,
            table: Mutex::default(),
        }))
    }

    /// Returns how many entries there are, blocks included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table().entries.len()
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets every entry, blocks included.
    pub fn flush(&self) {
        *self.table() = Table::default();
    }

    /// Locks the table, without what has expired.
    fn table(&self) -> MutexGuard<'_, Table> {
        let now = self.0.clock.monotonic();
        let mut table = lock(&self.0.table);
        table.expire(now);
        table
    }

    /// Puts an entry there if what stands there allows it.
    fn put(&self, key: &str, entry: &[u8], ttl: Duration, over: impl FnOnce(Option<Kind>) -> bool) {
        let until = self.0.clock.monotonic().saturating_add(ttl);
        let mut table = self.table();
        let stands = table.entries.get(key).map(|held| held.entry.as_slice());
        if !over(stands.and_then(Kind::of)) {
            return;
        }
        table.remove(key);
        let size = key.len().saturating_add(entry.len());
        let is_block = Kind::of(entry) == Some(Kind::Block);
        // A block is small, and without it a forgotten answer could live on.
        if table.bytes.saturating_add(size) > self.0.most_bytes && !is_block {
            return;
        }
        table.bytes += size;
        table.expiring.insert((until, key.to_owned()));
        let entry = entry.to_vec();
        table.entries.insert(key.to_owned(), Held { entry, until });
    }
}

impl Table {
    fn remove(&mut self, key: &str) {
        if let Some((key, held)) = self.entries.remove_entry(key) {
            self.bytes -= key.len() + held.entry.len();
            self.expiring.remove(&(held.until, key));
        }
    }

    fn expire(&mut self, now: Duration) {
        while let Some((until, key)) = self.expiring.first() {
            if *until > now {
                return;
            }
            let key = key.clone();
            self.remove(&key);
        }
    }
}

impl Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the entries: they hold answers.
        f.debug_struct("Table")
            .field("entries", &self.entries.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Default for MemoryFront {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Front for MemoryFront {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.table().entries.get(key).map(|held| held.entry.clone()))
    }

    async fn fill(&self, key: &str, entry: &[u8], ttl: Duration) -> Result<(), StoreError> {
        self.put(key, entry, ttl, |stands| stands != Some(Kind::Block));
        Ok(())
    }

    async fn hint(&self, key: &str, entry: &[u8], ttl: Duration) -> Result<(), StoreError> {
        self.put(key, entry, ttl, |stands| {
            matches!(stands, None | Some(Kind::Hint))
        });
        Ok(())
    }

    async fn clear_hint(&self, key: &str) -> Result<(), StoreError> {
        let mut table = self.table();
        let stands = table
            .entries
            .get(key)
            .and_then(|held| Kind::of(&held.entry));
        if stands == Some(Kind::Hint) {
            table.remove(key);
        }
        Ok(())
    }

    async fn block(&self, key: &str, ttl: Duration) -> Result<(), StoreError> {
        self.put(key, &[Kind::Block.byte()], ttl, |_| true);
        Ok(())
    }
}
