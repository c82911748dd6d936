//! Which operations this process has seen, so that two functions never share
//! records by accident.

use std::any::TypeId;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::site::Site;
use crate::error::Error;
use crate::sync::{Mutex, lock};
use crate::telemetry;

/// File, line and column of an annotated function. A copy that another macro
/// pasted has the same.
type Place = (&'static str, u32, u32);

fn shown((file, line, _): Place) -> String {
    format!("{file}:{line}")
}

/// Where an operation is, and what it answers.
#[derive(Debug, Default)]
struct Operation {
    place: Option<Place>,
    output: Option<TypeId>,
}

#[derive(Debug, Default)]
pub(crate) struct Operations(Mutex<HashMap<String, Operation>>);

impl Operations {
    /// Notes an operation, and refuses a name that stands for two.
    pub(crate) fn check(
        &self,
        name: &str,
        site: Option<&'static Site>,
        output: TypeId,
    ) -> Result<(), Error> {
        let place = site.map(|site| (site.file, site.line, site.column));
        let mut operations = lock(&self.0);
        let operation = match operations.get_mut(name) {
            Some(operation) => operation,
            None => match operations.entry(name.to_owned()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(slot) => {
                    telemetry::begin_operation(name);
                    slot.insert(Operation::default())
                }
            },
        };
        // A plain call has no place of its own.
        if let Some(here) = place {
            let first = *operation.place.get_or_insert(here);
            if first != here {
                return Err(Error::misuse(format!(
                    "two functions have the name `{name}` and would share records, at {} and at {}: give each a `name` of its own",
                    shown(first),
                    shown(here)
                )));
            }
        }
        if *operation.output.get_or_insert(output) != output {
            let at = operation
                .place
                .map(|place| format!(" (see {})", shown(place)))
                .unwrap_or_default();
            return Err(Error::misuse(format!(
                "the operation `{name}`{at} answers with two types, so one could be read as the other: use a `name` for each"
            )));
        }
        Ok(())
    }
}
