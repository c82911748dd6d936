//! Without the feature `tx` nothing stands behind `tx`.

use std::future::Pending;

use super::{Message, Uncommitted};
use crate::transaction::TxConnection;

impl<P> Message<P> {
    /// Cannot be called: needs the feature `tx`.
    ///
    /// It is here so that whoever calls it reads that, once: an `async fn`
    /// repeats its bounds wherever its future is named.
    #[doc(hidden)]
    pub fn receive_in<C, T, E, F>(self, _: &mut C, _: F) -> Pending<Uncommitted<T, E>>
    where
        C: TxConnection,
        F: AsyncFnOnce(&mut C::Connection) -> Result<T, E>,
    {
        std::future::pending()
    }
}
