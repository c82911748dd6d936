//! A look at the whole store, for gauges.

use crate::engine::Engine;
use crate::error::Error;
use crate::store::Counts;
use crate::telemetry;

impl Engine {
    /// Counts what is unknown, lapsed and in progress in the store, of every
    /// process, and sets the gauges that show it.
    ///
    /// Call it every minute or so, in one process or in all of them: each sets
    /// gauges of its own to the same numbers. It costs the store one read of the
    /// records that are not finished, which are few. Finished ones are not
    /// counted ([`Counts::finished`] is none).
    ///
    /// # Concurrent calls
    /// Harmless.
    ///
    /// # Cancel safety
    /// Nothing is changed in the store.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the store has no side for operators, and
    /// [`Error::Store`] if it does not answer: the gauges then keep their values.
    ///
    /// # Panics
    /// If the store does.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = idem::Engine::builder(idem::store::MemoryStore::new()).build().await?;
    /// let observer = engine.clone();
    /// tokio::spawn(async move {
    ///     let mut minutes = tokio::time::interval(std::time::Duration::from_secs(60));
    ///     loop {
    ///         minutes.tick().await;
    ///         // A failure is counted and logged; the next minute may go better.
    ///         observer.observe_store().await.ok();
    ///     }
    /// });
    /// assert_eq!(engine.observe_store().await?.unknown, 0);
    /// # Ok(()) }
    /// ```
    pub async fn observe_store(&self) -> Result<Counts, Error> {
        let counts = self.admin()?.counts(false).await?;
        telemetry::counts(&counts);
        Ok(counts)
    }
}
