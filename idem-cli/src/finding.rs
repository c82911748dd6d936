//! Findings by name: as `accept_loss(Finding::NotDurable)` is written in a
//! program, so `--accept-loss not-durable` here.

use idem::store::Finding;

/// Those that void at-most-once, which are the ones to accept.
const VOIDING: [Finding; 11] = [
    Finding::NotDurable,
    Finding::OldSqlite,
    Finding::Replica,
    Finding::Evicting,
    Finding::OldRedis,
    Finding::SettingsHidden,
    Finding::NoSchema,
    Finding::NotTransactional,
    Finding::NoAutocommit,
    Finding::DirtyReads,
    Finding::OtherUniqueIndex,
];

/// Returns the name, in words joined by hyphens.
pub(crate) fn name(finding: Finding) -> String {
    hyphenated(&format!("{finding:?}"))
}

/// Joins the words of a Rust name by hyphens.
pub(crate) fn hyphenated(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    for (at, character) in name.chars().enumerate() {
        if character.is_ascii_uppercase() && at > 0 {
            text.push('-');
        }
        text.push(character.to_ascii_lowercase());
    }
    text
}

/// Reads the name of a finding that can be accepted. A missing schema cannot.
pub(crate) fn parse(text: &str) -> Result<Finding, String> {
    let acceptable = || VOIDING.into_iter().filter(|f| *f != Finding::NoSchema);
    acceptable()
        .find(|finding| name(*finding) == text)
        .ok_or_else(|| {
            let names: Vec<_> = acceptable().map(name).collect();
            format!("the findings that can be accepted are {}", names.join(", "))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for finding in VOIDING {
            assert!(finding.voids_at_most_once());
            let read = parse(&name(finding));
            assert_eq!(read.is_ok(), finding != Finding::NoSchema, "{finding:?}");
        }
        assert_eq!(name(Finding::OtherUniqueIndex), "other-unique-index");
        assert!(parse("no-secret").is_err());
    }
}
