//! Versions that arrive in the wrong order, as they do from a queue with several consumers.

use crate::BoxError;
use crate::apply::{ApplyError, apply_newest};
use crate::crm::Crm;
use crate::customer::Customer;

/// The newest first, and once more at the end.
const ORDER: [u32; 4] = [3, 1, 2, 3];

/// What became of the updates.
#[derive(Debug, Default)]
pub(crate) struct Updated {
    pub(crate) sent: usize,
    /// Updates that came after a newer one: no body ran.
    pub(crate) stale: usize,
    /// Customers at the newest version that was sent of them.
    pub(crate) newest: usize,
    /// Customers at an older one.
    pub(crate) set_back: usize,
}

/// Changes each customer three times, and sends the changes in the wrong order.
pub(crate) async fn out_of_order(crm: &Crm, customers: &[Customer]) -> Result<Updated, BoxError> {
    let mut updated = Updated::default();
    for change in ORDER {
        let changed = customers.iter().map(|customer| customer.changed(change));
        let results = idem::batch(changed, |customer| apply_newest(crm.clone(), customer)).await;
        for result in results {
            updated.sent += 1;
            match result {
                Ok(_) => {}
                // Done: a newer one is there. A consumer acknowledges it.
                Err(ApplyError::Idem(error)) if error.is_stale() => updated.stale += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }
    for customer in customers {
        let newest = i64::from(customer.updated_at) + 3;
        match crm.version(&customer.id).await? == newest {
            true => updated.newest += 1,
            false => updated.set_back += 1,
        }
    }
    Ok(updated)
}
