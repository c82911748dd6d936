//! Every word that the attribute knows, and the words people guess instead.

use proc_macro2::Ident;
use syn::Error;

/// One parameter of the attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    Key,
    Ttl,
    Name,
    Scope,
    Payload,
    Version,
    Label,
    Engine,
    OnInProgress,
    OnError,
    OnUnknown,
    OnCancel,
    OnMissingKey,
    OnStale,
    Clone,
    MapErr,
    Codec,
    Lease,
    MaxRun,
    Tx,
    Crate,
}

/// Word, parameter, and a line to copy.
const WORDS: &[(&str, Keyword, &str)] = &[
    ("key", Keyword::Key, "key = order_id"),
    ("ttl", Keyword::Ttl, "ttl = \"24h\""),
    ("name", Keyword::Name, "name = \"payments.charge\""),
    ("scope", Keyword::Scope, "scope = tenant_id"),
    ("payload", Keyword::Payload, "payload = (amount, currency)"),
    ("version", Keyword::Version, "version = order.revision"),
    ("label", Keyword::Label, "label = order_id"),
    ("engine", Keyword::Engine, "engine = app.idem"),
    (
        "on_in_progress",
        Keyword::OnInProgress,
        "on_in_progress = wait(\"30s\")",
    ),
    ("on_error", Keyword::OnError, "on_error = store"),
    ("on_unknown", Keyword::OnUnknown, "on_unknown = refuse"),
    ("on_cancel", Keyword::OnCancel, "on_cancel = finish"),
    (
        "on_missing_key",
        Keyword::OnMissingKey,
        "on_missing_key = error",
    ),
    ("on_stale", Keyword::OnStale, "on_stale = error"),
    ("clone", Keyword::Clone, "clone = self"),
    ("map_err", Keyword::MapErr, "map_err = AppError::from_idem"),
    ("codec", Keyword::Codec, "codec = idem::codec::Json"),
    ("lease", Keyword::Lease, "lease = \"30s\""),
    ("max_run", Keyword::MaxRun, "max_run = \"15m\""),
    ("tx", Keyword::Tx, "tx = conn"),
    ("crate", Keyword::Crate, "crate = my_prelude::idem"),
];

/// Words that are not ours, and the parameter that is meant.
const GUESSES: &[(&str, Keyword)] = &[
    ("id", Keyword::Name),
    ("operation", Keyword::Name),
    ("tenant", Keyword::Scope),
    ("params", Keyword::Payload),
    ("fingerprint", Keyword::Payload),
    ("body", Keyword::Payload),
    ("store", Keyword::Engine),
    ("expires", Keyword::Ttl),
    ("retry", Keyword::OnUnknown),
    ("timeout", Keyword::OnInProgress),
    ("transaction", Keyword::Tx),
    ("on_conflict", Keyword::OnInProgress),
    ("revision", Keyword::Version),
    ("sequence", Keyword::Version),
    ("updated_at", Keyword::Version),
    ("on_outdated", Keyword::OnStale),
];

impl Keyword {
    /// Finds the parameter that `word` names.
    pub(crate) fn find(word: &str) -> Option<Self> {
        WORDS
            .iter()
            .find(|(text, ..)| *text == word)
            .map(|(_, keyword, _)| *keyword)
    }

    /// The word as it is written.
    pub(crate) fn word(self) -> &'static str {
        self.entry().0
    }

    /// A line to copy, such as `ttl = "24h"`.
    pub(crate) fn example(self) -> &'static str {
        self.entry().2
    }

    fn entry(self) -> (&'static str, Self, &'static str) {
        WORDS
            .iter()
            .copied()
            .find(|(_, keyword, _)| *keyword == self)
            .unwrap_or(("", self, ""))
    }
}

/// A word that is no parameter: what is probably meant, and what to say.
pub(crate) fn unknown(word: &Ident) -> (Option<Keyword>, Error) {
    let text = word.to_string();
    if let Some((_, keyword)) = GUESSES.iter().find(|(guess, _)| *guess == text) {
        let message = format!(
            "`{text}` is called `{}` here: write `{}`",
            keyword.word(),
            keyword.example()
        );
        return (Some(*keyword), Error::new(word.span(), message));
    }
    let words = WORDS.iter().map(|(word, ..)| *word);
    match closest(&text, words.clone()).and_then(Keyword::find) {
        Some(keyword) => {
            let message = format!(
                "unknown parameter `{text}`; did you mean `{}`?",
                keyword.word()
            );
            (Some(keyword), Error::new(word.span(), message))
        }
        None => {
            let known = words.collect::<Vec<_>>().join("`, `");
            let message = format!("unknown parameter `{text}`; the parameters are `{known}`");
            (None, Error::new(word.span(), message))
        }
    }
}

/// The candidate that `word` is a likely typing slip of.
pub(crate) fn closest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(4).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits that turn `left` into `right`; a swap of two neighbours counts as one.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows = vec![(0..=right.len()).collect::<Vec<usize>>()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let change = rows[i][j] + usize::from(a != b);
            let mut best = change.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}
