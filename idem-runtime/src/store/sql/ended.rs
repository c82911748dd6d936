//! What the end of an attempt writes.

use crate::store::Ending;

/// The columns that an ending sets, as values.
pub(in crate::store) struct Ended<'a> {
    pub(in crate::store) state: i16,
    pub(in crate::store) reason: Option<i16>,
    pub(in crate::store) codec: Option<&'a str>,
    pub(in crate::store) failed: Option<bool>,
    pub(in crate::store) bytes: Option<&'a [u8]>,
    pub(in crate::store) digest: Option<&'a [u8]>,
}

impl<'a> Ended<'a> {
    /// Whether the version that ran is applied.
    #[cfg(feature = "mysql")]
    pub(in crate::store) fn applies(&self) -> bool {
        self.failed == Some(false)
    }

    pub(in crate::store) fn of(ending: &'a Ending) -> Self {
        match ending {
            Ending::Answer(answer) => Self {
                state: 2,
                reason: None,
                codec: Some(&answer.codec),
                failed: Some(answer.failed),
                bytes: Some(&answer.bytes),
                digest: Some(&answer.digest),
            },
            Ending::Tombstone(reason) => Self {
                state: 3,
                reason: Some(reason.code()),
                codec: None,
                failed: None,
                bytes: None,
                digest: None,
            },
        }
    }
}
