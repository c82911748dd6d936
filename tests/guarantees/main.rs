//! Proves that `docs/guarantees.md` names only tests that are there, and prints
//! the promise word for word.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod links;

use std::path::Path;

use links::Link;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a link leads to, without the place in it.
fn file(link: &Link) -> String {
    let path = link.path.split('#').next().unwrap();
    let path = root().join("docs").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{link:?} leads nowhere"))
}

/// Whether a function of that name is run as a test: it has the attribute, or is
/// in a list of tests.
fn is_a_test(source: &str, name: &str) -> bool {
    let (function, listed) = (format!("fn {name}("), format!("{name},"));
    let Some(at) = source.find(&function) else {
        return false;
    };
    let before = source[..at].rsplit("\n\n").next().unwrap();
    let is_listed = source.lines().any(|line| line.trim() == listed);
    is_listed || before.contains("#[test]") || before.contains("#[tokio::test")
}

#[test]
fn every_test_that_the_page_names_is_there() {
    let mut tests = 0;
    for link in links::of_the_page() {
        if link.path.contains("://") || link.path.starts_with('#') {
            continue;
        }
        let source = file(&link);
        let is_code = link.path.contains("/tests/") || link.path.contains("/conformance/");
        let (name, extension) = (link.text.as_str(), Path::new(&link.path).extension());
        if !is_code || link.is_a_crash() || name == "contract" {
            continue;
        }
        tests += 1;
        let is_there = match extension.and_then(|text| text.to_str()) {
            Some("py") => source.contains(&format!(", {name})")),
            _ => is_a_test(&source, name),
        };
        assert!(is_there, "{link:?} is no test there");
    }
    assert!(tests > 60, "only {tests} tests were looked for");
}

#[test]
fn the_promise_is_that_of_the_readme() {
    let read = |path| std::fs::read_to_string(root().join(path)).unwrap();
    let readme = read("README.md");
    let promise = readme
        .lines()
        .find(|line| line.starts_with("What is promised: "));
    let page = read("docs/guarantees.md");
    assert!(page.lines().any(|line| Some(line) == promise));
}
