//! The function that writes one customer: where `#[idempotent]` stands.

use idem::idempotent;
use serde::{Deserialize, Serialize};

use crate::crm::Crm;
use crate::customer::Customer;

/// The name under which its records are found, also by [`idem::inbox`].
pub(crate) const OPERATION: &str = "crm.apply-customer";

/// Writes a customer, unless the database has a newer version of it.
#[idempotent(
    name = "crm.apply-customer",
    // What makes two calls the same: this version of this customer. See `Customer::key`.
    key = (customer.id, customer.updated_at),
    // The same version with another content is a mistake of the sender, and is refused.
    payload = (customer.name, customer.email),
    // Longer than anybody sends the same file again.
    ttl = "30d",
    // The write may happen twice: a version is written over nothing but older ones.
    on_unknown = rerun,
    // A failed write may have happened, so the next import runs it again.
    on_error = unknown,
)]
pub(crate) async fn apply_customer(crm: Crm, customer: Customer) -> Result<Applied, ApplyError> {
    Ok(match crm.write(&customer).await? {
        true => Applied::Written,
        false => Applied::Older,
    })
}

/// The answer that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Applied {
    Written,
    /// The database had a newer version.
    Older,
}

/// Why a customer was not applied.
#[derive(Debug)]
pub(crate) enum ApplyError {
    /// The database of the CRM failed.
    Crm(idem::sqlx::Error),
    /// `idem` has no answer: still running, store away, and so on.
    Idem(idem::Error),
}

impl From<idem::Error> for ApplyError {
    fn from(error: idem::Error) -> Self {
        Self::Idem(error)
    }
}

impl From<idem::sqlx::Error> for ApplyError {
    fn from(error: idem::sqlx::Error) -> Self {
        Self::Crm(error)
    }
}

impl std::fmt::Display for ApplyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Crm(error) => write!(f, "the customer was not written: {error}"),
            Self::Idem(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ApplyError {}
