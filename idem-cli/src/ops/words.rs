//! What a standing and a reason are called, and what they mean to somebody who
//! was just woken up.

use idem::record::{Record, Standing, State, TombstoneReason, UnknownReason};

/// The word in addresses and style classes.
pub(super) const fn slug(standing: Standing) -> &'static str {
    match standing {
        Standing::Unknown => "unknown",
        Standing::Lapsed => "lapsed",
        Standing::InProgress => "in-progress",
        Standing::Tombstone => "tombstone",
        Standing::Completed => "completed",
        Standing::Released => "released",
    }
}

pub(super) fn from_slug(text: &str) -> Option<Standing> {
    Standing::ALL
        .into_iter()
        .find(|standing| slug(*standing) == text)
}

/// The word that is shown.
pub(super) const fn name(standing: Standing) -> &'static str {
    match standing {
        Standing::Unknown => "Unknown",
        Standing::Lapsed => "Lapsed",
        Standing::InProgress => "In progress",
        Standing::Tombstone => "Tombstones",
        Standing::Completed => "Completed",
        Standing::Released => "Released",
    }
}

/// What it means, and what to do about it.
pub(super) const fn meaning(standing: Standing) -> &'static str {
    match standing {
        Standing::Unknown => {
            "An attempt ended without an answer: its effect may or may not have happened. Unless the operation reruns or recovers, no call of this key runs until somebody finds out and settles it."
        }
        Standing::Lapsed => {
            "An attempt stopped renewing its lease: its process died, is paused or is cut off. Its effect may or may not have happened. The next call of this key decides as the operation says, or somebody settles it here."
        }
        Standing::InProgress => {
            "An attempt holds the key and renews its lease. Calls with the same key wait for it."
        }
        Standing::Tombstone => {
            "The work is done, but its answer cannot be given back. Later calls are told so, and nothing runs."
        }
        Standing::Completed => "The answer is recorded. Later calls get it, and nothing runs.",
        Standing::Released => {
            "The body, or who settled it, said that nothing happened. The next call runs."
        }
    }
}

/// Why a record stands where it stands, in a few words.
pub(super) fn why(record: &Record, standing: Standing) -> &'static str {
    match standing {
        Standing::Unknown if record.state == State::InProgress => {
            "its transaction was committed without an answer"
        }
        Standing::Unknown => record
            .reason
            .and_then(UnknownReason::from_code)
            .map_or("for a reason of a newer version", unknown),
        Standing::Lapsed => "its lease was not renewed: process died, paused or cut off",
        Standing::InProgress if record.doubt => "took over from an attempt in doubt",
        Standing::InProgress => "",
        Standing::Tombstone => record
            .reason
            .and_then(TombstoneReason::from_code)
            .map_or("for a reason of a newer version", tombstone),
        Standing::Completed => "",
        Standing::Released => "it was said that nothing happened",
    }
}

fn unknown(reason: UnknownReason) -> &'static str {
    match reason {
        UnknownReason::Lapsed => "its lease lapsed: process died, paused or cut off",
        UnknownReason::Panicked => "its body panicked",
        UnknownReason::Failed => "its body returned an error that leaves the effect in doubt",
        UnknownReason::Cancelled => "its caller went away",
        UnknownReason::ShutDown => "its process shut down before the body ended",
        UnknownReason::Undecided => "recovery asked, and got no decision",
        UnknownReason::Nested => "a call inside it found no answer",
        UnknownReason::Unfinished => "its transaction went on without an answer",
        _ => "for a reason of a newer version",
    }
}

fn tombstone(reason: TombstoneReason) -> &'static str {
    match reason {
        TombstoneReason::TooLarge => "its answer was above the size limit",
        TombstoneReason::NotEncodable => "the codec could not write its answer",
        TombstoneReason::NotDecodable => "its answer does not read back as the same value",
        TombstoneReason::Damaged => "the stored bytes are damaged",
        TombstoneReason::OtherCodec => "its answer was recorded by another codec",
        TombstoneReason::Streamed => "its answer is a stream that did not end in time",
        TombstoneReason::Withheld => "its answer is not to be kept",
        _ => "for a reason of a newer version",
    }
}

/// The word for a state in the audit.
pub(super) const fn state(state: State) -> &'static str {
    match state {
        State::InProgress => "in progress",
        State::Released => "released",
        State::Completed => "completed",
        State::Tombstone => "a tombstone",
        State::Unknown => "unknown",
    }
}

/// What an entry of the audit has made of a record.
pub(super) const fn became(code: i16) -> &'static str {
    match code {
        1 => "it happened, and this is its answer",
        2 => "it did not happen, and the next call runs",
        3 => "forgotten, as if the key had never been used",
        _ => "in a way of a newer version",
    }
}
