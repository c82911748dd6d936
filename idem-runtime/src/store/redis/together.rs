//! Several scripts at once, on the connection that they share.

use tokio::task::JoinSet;

use crate::error::{StoreError, StoreErrorKind};

/// Runs all and returns their results in order, or an error of one.
pub(super) async fn together<T, F>(jobs: impl IntoIterator<Item = F>) -> Result<Vec<T>, StoreError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, StoreError>> + Send + 'static,
{
    let mut running = JoinSet::new();
    for (at, job) in jobs.into_iter().enumerate() {
        running.spawn(async move { (at, job.await) });
    }
    let mut done = Vec::with_capacity(running.len());
    while let Some(ended) = running.join_next().await {
        let (at, result) = ended.map_err(|_| {
            StoreError::new(StoreErrorKind::Transient, "a script was cut off").ambiguous()
        })?;
        done.push((at, result?));
    }
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}
