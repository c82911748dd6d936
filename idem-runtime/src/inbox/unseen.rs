//! Which of many messages are new.

use serde::Serialize;

use super::Inbox;
use crate::clock::micros;
use crate::engine::{Engine, Inner};
use crate::error::{Error, StoreError, StoreErrorKind};
use crate::identity::RecordId;
use crate::record::Standing;
use crate::store::Standings;
use crate::sync::Arc;
use crate::telemetry::StoreStep;

/// What [`Inbox::unseen`] found, each part in the order of the ids.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unseen<K> {
    /// Those that nobody has handled: absent, released, or past their TTL.
    pub new: Vec<K>,
    /// Those that were begun and have no answer: running, cut off, in doubt. A
    /// delivery says which.
    pub open: Vec<K>,
    /// How many are done.
    pub finished: usize,
    /// How many questions to the store it took, of up to 1,000 ids each. Each is
    /// one round trip; the first one may be two on a new connection.
    pub trips: usize,
}

impl<K> Unseen<K> {
    /// Returns all that are not done: the new ones, then the open ones.
    #[must_use]
    pub fn unfinished(self) -> Vec<K> {
        let mut all = self.new;
        all.extend(self.open);
        all
    }
}

impl<P> Inbox<P> {
    /// Finds those among many ids that are not done yet: where an import that
    /// was cut off goes on. 1,000 ids take one round trip to the store.
    ///
    /// It decides nothing: an id that is new here may be handled by the time of
    /// its delivery, which then is a duplicate. An id that is there twice is in
    /// the answer twice. The records are those of an operation with this name, so
    /// an inbox also tells which keys an annotated function has yet to see. It
    /// knows keys, not versions: of a function with `version` it tells whether any
    /// version of a key is done. For an import, make the version a part of the key.
    ///
    /// # Concurrent calls
    /// Harmless: nothing is changed.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// [`Error::InvalidKey`] or [`Error::Fingerprint`] if an id is none,
    /// [`Error::Misuse`] or [`Error::NoEngine`] as for a delivery,
    /// [`Error::Store`] if the store does not answer, or cannot look at many
    /// records ([`Capability::Standings`](crate::store::Capability::Standings)).
    ///
    /// # Panics
    /// If the store does.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = idem::Engine::builder(idem::store::MemoryStore::new()).build().await?;
    /// let inbox = engine.inbox("crm.customers");
    /// let done = async { Ok::<_, idem::Error>(()) };
    /// assert!(inbox.receive(&2, done).await.delivery().is_ack());
    ///
    /// let unseen = inbox.unseen([1, 2, 3]).await?;
    /// assert_eq!((unseen.new, unseen.finished), (vec![1, 3], 1));
    /// # Ok(()) }
    /// ```
    pub async fn unseen<K: Serialize>(
        &self,
        ids: impl IntoIterator<Item = K>,
    ) -> Result<Unseen<K>, Error> {
        let engine = Engine::find(self.engine.as_ref())?;
        let ids: Vec<K> = ids.into_iter().collect();
        let records = ids.iter().map(|id| self.call(id).record_id(&engine.inner));
        let records: Vec<RecordId> = records.collect::<Result<_, _>>()?;
        let Looked { standings, trips } = look(&engine, records).await?;
        let mut unseen = Unseen {
            new: Vec::new(),
            open: Vec::new(),
            finished: 0,
            trips,
        };
        for (id, standing) in ids.into_iter().zip(standings) {
            match standing {
                None | Some(Standing::Released) => unseen.new.push(id),
                Some(Standing::InProgress | Standing::Lapsed | Standing::Unknown) => {
                    unseen.open.push(id);
                }
                Some(Standing::Completed | Standing::Tombstone) => unseen.finished += 1,
            }
        }
        Ok(unseen)
    }
}

/// What the store said, and in how many answers.
struct Looked {
    standings: Vec<Option<Standing>>,
    trips: usize,
}

/// Asks where records stand, so many at a time that a question has its answer
/// within a store call's limit.
async fn look(engine: &Engine, records: Vec<RecordId>) -> Result<Looked, Error> {
    let inner = Arc::clone(&engine.inner);
    let asked = engine.inner.detached(async move {
        let mut looked = Looked {
            standings: Vec::with_capacity(records.len()),
            trips: 0,
        };
        for some in records.chunks(Standings::MOST) {
            looked.standings.extend(look_at(&inner, some).await?);
            looked.trips += 1;
        }
        Ok::<_, StoreError>(looked)
    });
    Ok(asked.await??)
}

async fn look_at(
    engine: &Inner,
    records: &[RecordId],
) -> Result<Vec<Option<Standing>>, StoreError> {
    let request = Standings {
        ids: records.to_vec(),
        grace_us: micros(engine.limits.grace),
    };
    let limit = engine.limits.store_timeout;
    let call = engine.store.standings(&request);
    let standings = engine.store_call(StoreStep::Standings, limit, call).await?;
    if standings.len() == records.len() {
        return Ok(standings);
    }
    // One too few, and each after it would be told of its neighbour.
    Err(StoreError::new(
        StoreErrorKind::Permanent,
        "it did not say of each record where it stands; nothing was done",
    ))
}
