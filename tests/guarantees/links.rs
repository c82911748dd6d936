//! The links of `docs/guarantees.md`.

use std::path::PathBuf;

/// A link: its text without backticks, and where it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) text: String,
    pub(crate) path: String,
}

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs")
}

/// Reads the links of the page.
pub(crate) fn of_the_page() -> Vec<Link> {
    let page = std::fs::read_to_string(docs().join("guarantees.md")).unwrap();
    let mut links = Vec::new();
    for (at, _) in page.match_indices("](") {
        let text = &page[page[..at].rfind('[').unwrap() + 1..at];
        let rest = &page[at + 2..];
        links.push(Link {
            text: text.trim_matches('`').to_owned(),
            path: rest[..rest.find(')').unwrap()].to_owned(),
        });
    }
    links
}

impl Link {
    /// Whether it names a case of the processes that are killed, which only
    /// that binary can list.
    pub(crate) fn is_a_crash(&self) -> bool {
        self.path.starts_with("../tests/crash/")
    }
}
