//! Every SQL text about savepoints; the words are the same in each database.

use crate::sync::{AtomicUsize, Ordering};

/// A savepoint with a name of its own: where one of the same name is set again,
/// `MySQL` forgets the first.
#[derive(Debug)]
pub(crate) struct Savepoint(usize);

impl Savepoint {
    pub(super) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Self(NEXT.fetch_add(1, Ordering::SeqCst))
    }

    pub(super) fn set(&self) -> String {
        format!("SAVEPOINT idem_{}", self.0)
    }

    pub(super) fn keep(&self) -> String {
        format!("RELEASE SAVEPOINT idem_{}", self.0)
    }

    pub(super) fn undo(&self) -> String {
        format!("ROLLBACK TO SAVEPOINT idem_{}", self.0)
    }
}
