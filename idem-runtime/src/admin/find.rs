//! A record by the first digits of its id.

use std::collections::BTreeSet;

use super::list::scan;
use super::look;
use crate::clock::micros;
use crate::engine::Inner;
use crate::error::Error;
use crate::identity::RecordId;
use crate::record::Standing;
use crate::store::{Capability, Scan, Seen};

/// The most ids that are told when there are several.
const MOST: usize = 10;

/// What was found by some digits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one of it, and it is looked into at once"
)]
pub enum Found {
    /// No record.
    Nothing,
    /// One record, with its answer.
    One(Seen),
    /// Several, of which these are at most 10: give more digits.
    Many(Vec<RecordId>),
}

/// The first digits of an id, in lower case.
pub(super) struct Digits(String);

impl Digits {
    pub(super) fn new(digits: &str) -> Result<Self, Error> {
        let fits = (4..=64).contains(&digits.len())
            && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        if fits {
            return Ok(Self(digits.to_ascii_lowercase()));
        }
        Err(Error::misuse_at_start(
            "a record is found by the first 4 to 64 hexadecimal digits of its id, as logs and errors show them; nothing was looked up",
        ))
    }

    fn begin(&self, id: RecordId) -> bool {
        id.to_hex().starts_with(&self.0)
    }

    /// Returns the id right below all those that begin so; none if there is none.
    fn below(&self) -> Option<RecordId> {
        let first: RecordId = format!("{:0<64}", self.0).parse().ok()?;
        let mut bytes = *first.as_bytes();
        for byte in bytes.iter_mut().rev() {
            let (less, borrowed) = byte.overflowing_sub(1);
            *byte = less;
            if !borrowed {
                return Some(RecordId::from_bytes(bytes));
            }
        }
        None
    }
}

pub(super) async fn find(engine: &Inner, digits: &Digits) -> Result<Found, Error> {
    if let Ok(id) = digits.0.parse() {
        let seen = look(engine, &id).await?;
        return Ok(seen.map_or(Found::Nothing, Found::One));
    }
    let lists_finished = !engine.store.lacks().contains(&Capability::ListFinished);
    // In order, and once, also if it changed its standing meanwhile.
    let mut ids = BTreeSet::new();
    for standing in Standing::ALL {
        if standing.is_open() || lists_finished {
            ids.extend(beginning(engine, standing, digits).await?);
        }
    }
    let mut ids: Vec<_> = ids.into_iter().take(MOST).collect();
    if ids.len() > 1 {
        return Ok(Found::Many(ids));
    }
    let Some(id) = ids.pop() else {
        return Ok(Found::Nothing);
    };
    let seen = look(engine, &id).await?;
    Ok(seen.map_or(Found::Nothing, Found::One))
}

/// Returns the first ids that begin with these digits and stand there.
async fn beginning(
    engine: &Inner,
    standing: Standing,
    digits: &Digits,
) -> Result<Vec<RecordId>, Error> {
    let mut ids = Vec::new();
    let mut after = digits.below();
    loop {
        let page = scan(
            engine,
            Scan {
                standing,
                operation: None,
                grace_us: micros(engine.limits.grace),
                after,
                limit: 10,
            },
        )
        .await?;
        for record in page.records {
            if !digits.begin(record.id) || ids.len() == MOST {
                return Ok(ids);
            }
            ids.push(record.id);
        }
        match page.next {
            Some(next) if digits.begin(next) && ids.len() < MOST => after = Some(next),
            _ => return Ok(ids),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(digits: &str) -> Option<String> {
        Digits::new(digits).unwrap().below().map(|id| id.to_hex())
    }

    #[test]
    fn what_is_right_below_is_in_front_of_the_first_and_nothing_else() {
        let ends =
            |digits: &str, digit: &str| format!("{digits}{}", digit.repeat(64 - digits.len()));
        assert_eq!(below("0001"), Some(ends("0000", "f")));
        assert_eq!(below("A000"), Some(ends("9fff", "f")));
        assert_eq!(below("12345"), Some(ends("12344", "f")));
        assert_eq!(below("0000"), None);
    }

    #[test]
    fn other_texts_are_no_digits() {
        for wrong in ["", "abc", "12g4", "é12345", &"0".repeat(65)] {
            assert!(Digits::new(wrong).is_err(), "{wrong}");
        }
    }
}
