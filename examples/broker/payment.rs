//! The message.

use serde::{Deserialize, Serialize};

use super::BoxError;

/// A customer has paid. The id is its sender's, and the same in every copy and delivery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Payment {
    pub(crate) id: String,
    pub(crate) customer: String,
    pub(crate) cents: i64,
}

impl Payment {
    pub(crate) fn number(n: usize) -> Self {
        Self {
            id: format!("pay_{n:04}"),
            customer: format!("customer{:03}@example.com", n % 250),
            cents: 1_000 + i64::try_from(n).unwrap_or(0),
        }
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, BoxError> {
        Ok(serde_json::from_slice(bytes)?)
    }

    pub(crate) fn write(&self) -> Result<Vec<u8>, BoxError> {
        Ok(serde_json::to_vec(self)?)
    }
}
