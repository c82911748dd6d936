//! The functions that write one customer: where `#[idempotent]` stands.

use idem::idempotent;
use serde::{Deserialize, Serialize};

use crate::crm::Crm;
use crate::customer::Customer;

/// The name under which its records are found, also by [`idem::inbox`].
pub(crate) const OPERATION: &str = "crm.apply-customer";

/// Writes a customer of the file, unless the database has a newer version of it.
///
/// The import asks `unseen` which are still to be done. That knows keys, so the version is a part of
/// the key here.
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
    write(&crm, &customer).await
}

/// Writes a customer as it came from a queue, unless a newer version of it was applied: then nothing
/// runs, and the caller is told [`Error::Stale`](idem::Error::Stale).
#[idempotent(
    name = "crm.apply-newest",
    // The customer; what orders its calls is not a part of the key.
    key = customer.id,
    version = customer.updated_at,
    payload = (customer.name, customer.email),
    ttl = "30d",
    on_unknown = rerun,
    on_error = unknown,
)]
pub(crate) async fn apply_newest(crm: Crm, customer: Customer) -> Result<Applied, ApplyError> {
    write(&crm, &customer).await
}

async fn write(crm: &Crm, customer: &Customer) -> Result<Applied, ApplyError> {
    Ok(match crm.write(customer).await? {
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
