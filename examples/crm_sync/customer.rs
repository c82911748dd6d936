//! Customers, and the file of them.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::BoxError;

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Customer {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) email: String,
    /// When the sender changed it last, in seconds since 1970: what makes one version newer than
    /// another.
    pub(crate) updated_at: u32,
}

/// What [`apply_customer`](crate::apply::apply_customer) has as its key.
pub(crate) type Key = (String, u32);

impl Customer {
    pub(crate) fn key(&self) -> Key {
        (self.id.clone(), self.updated_at)
    }

    /// The customer as it is so many changes later.
    pub(crate) fn changed(&self, changes: u32) -> Self {
        Self {
            email: format!("{}.{changes}@example.com", self.id),
            updated_at: self.updated_at + changes,
            ..self.clone()
        }
    }
}

/// Writes a file of so many customers, the same each time.
pub(crate) fn generate(path: &Path, count: u32) -> Result<(), BoxError> {
    let mut file = BufWriter::new(File::create(path)?);
    for number in 1..=count {
        let id = format!("cus_{number:05}");
        let customer = Customer {
            name: format!("Customer {number}"),
            email: format!("{id}@example.com"),
            updated_at: 1_750_000_000 + number * 60,
            id,
        };
        serde_json::to_writer(&mut file, &customer)?;
        file.write_all(b"\n")?;
    }
    file.flush()?;
    Ok(())
}

pub(crate) fn read(path: &Path) -> Result<Vec<Customer>, BoxError> {
    let lines = BufReader::new(File::open(path)?).lines();
    lines
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect()
}
