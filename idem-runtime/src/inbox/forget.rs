//! Forgetting a message, so that it can be handled once more.

use std::time::Duration;

use serde::Serialize;

use super::Inbox;
use crate::clock::{from_micros, micros};
use crate::engine::{Engine, Inner, MAX_RETRY_AFTER};
use crate::error::{Error, StoreError, StoreErrorKind};
use crate::identity::RecordId;
use crate::record::{Note, Standing};
use crate::store::{Seen, Settle, StoreAdmin, Written};
use crate::sync::Arc;
use crate::telemetry::StoreStep;
use crate::transition::Settlement;

/// How often a record may change between look and write.
const TRIES: usize = 5;

impl<P> Inbox<P> {
    /// Forgets a message on purpose, so that its next delivery is the first one
    /// again: for dead letters that are to be handled once more, after the cause
    /// was found and it is known that the effect did not happen, or may happen
    /// twice. Consumers of other engines with a
    /// [cache](crate::EngineBuilder::cache) may see it later.
    ///
    /// Returns false if there was nothing to forget. `by` and `why` say who does
    /// it and for what reason; both are kept in the store for ever, in clear, cut
    /// to 128 and 1,024 bytes.
    ///
    /// # Concurrent calls
    /// One of them finds something to forget.
    ///
    /// # Cancel safety
    /// Once begun it is done, also when the future is dropped.
    ///
    /// # Errors
    /// [`Error::InProgress`] if a consumer is handling the message,
    /// [`Error::Misuse`] if a text is blank, [`Error::Store`] if the store does
    /// not answer or has no side for operators; and what is wrong with the id, as
    /// for a delivery. Nothing is changed then, unless the store's error is
    /// [ambiguous](StoreError::is_ambiguous).
    ///
    /// # Panics
    /// If the store does.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = idem::Engine::builder(idem::store::MemoryStore::new()).build().await?;
    /// use idem::inbox::Received;
    ///
    /// let inbox = engine.inbox("billing.invoice-paid");
    /// let book = || inbox.receive("m-1", async { Ok::<_, idem::Error>("booked".to_owned()) });
    /// assert!(matches!(book().await, Received::First(_)));
    /// assert!(matches!(book().await, Received::Duplicate(_)));
    ///
    /// assert!(inbox.forget("m-1", "ops@example.com", "booked into the wrong year, undone").await?);
    /// assert!(matches!(book().await, Received::First(_)));
    /// # Ok(()) }
    /// ```
    pub async fn forget<K: Serialize + ?Sized>(
        &self,
        id: &K,
        by: &str,
        why: &str,
    ) -> Result<bool, Error> {
        let engine = Engine::find(self.engine.as_ref())?.inner;
        let id = self.call(id).record_id(&engine)?;
        let note = Note::new(by, why).ok_or_else(|| {
            Error::misuse_at_start(
                "who forgets a message, and why, is kept: neither text may be blank; nothing was forgotten",
            )
        })?;
        let inner = Arc::clone(&engine);
        let forgotten = engine.detached(async move { forget(&inner, id, &note).await });
        forgotten.await?
    }
}

async fn forget(engine: &Inner, id: RecordId, note: &Note) -> Result<bool, Error> {
    let admin = engine.store.admin().ok_or_else(no_admin)?;
    for _ in 0..TRIES {
        let Some(seen) = look(engine, admin, &id).await? else {
            return Ok(false);
        };
        let grace_us = micros(engine.limits.grace);
        match seen.record.standing(seen.now_us, grace_us) {
            None => return Ok(false),
            Some(Standing::InProgress) => {
                let retry_after = left(&seen, grace_us);
                return Err(Error::InProgress { retry_after });
            }
            Some(_) => {}
        }
        let request = Settle {
            state: None,
            id,
            fence: seen.record.fence,
            settlement: Settlement::Forgotten,
            force: false,
            ttl_us: None,
            grace_us,
            note: note.clone(),
        };
        let limit = engine.limits.store_timeout;
        let _changing = engine.changing(&id);
        let settled = engine.store_call(StoreStep::Settle, limit, admin.settle(&request));
        match settled.await? {
            Written::Done | Written::AlreadyDone => return Ok(true),
            Written::Gone => return Ok(false),
            // It has changed since it was looked at.
            Written::Superseded => {}
        }
    }
    Err(Error::Store(StoreError::new(
        StoreErrorKind::Transient,
        "others kept changing the record; it was not forgotten",
    )))
}

async fn look(
    engine: &Inner,
    admin: &dyn StoreAdmin,
    id: &RecordId,
) -> Result<Option<Seen>, StoreError> {
    let limit = engine.limits.store_timeout;
    engine
        .store_call(StoreStep::Look, limit, admin.get(id))
        .await
}

/// What is left of the lease and the grace, as a delivery would be told.
fn left(seen: &Seen, grace_us: i64) -> Duration {
    let until_us = seen.record.lease_until_us.unwrap_or(seen.now_us);
    let lapses_us = until_us.saturating_add(grace_us);
    from_micros(lapses_us.saturating_sub(seen.now_us)).min(MAX_RETRY_AFTER)
}

fn no_admin() -> Error {
    Error::Store(StoreError::new(
        StoreErrorKind::Permanent,
        "it has no side for operators, so that nothing can be forgotten",
    ))
}
