//! `docs/shapes.md` lists every shape with the test that shows it: each named
//! test exists, and no case about a shape is left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../docs/shapes.md");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What stands in backticks in the last column of the tables.
fn named() -> BTreeSet<&'static str> {
    PAGE.lines()
        .filter(|line| line.starts_with("| ") && !line.contains("| shown by |"))
        .filter_map(|line| line.trim_end_matches(" |").rsplit(" | ").next())
        .flat_map(|column| column.split('`').skip(1).step_by(2))
        .collect()
}

#[test]
fn every_named_test_exists() {
    let named = named();
    assert!(named.len() > 100, "only {} tests are named", named.len());
    for name in named {
        let (file, test) = name
            .split_once("::")
            .map_or((name, None), |(file, test)| (file, Some(test)));
        let text = fs::read_to_string(root().join(file))
            .unwrap_or_else(|error| panic!("{file} is named, but: {error}"));
        if let Some(test) = test {
            assert!(
                text.contains(&format!("fn {test}()")),
                "{file} has no test {test}"
            );
        }
        if file.contains("/fail/") {
            let message = root().join(file).with_extension("stderr");
            assert!(message.exists(), "{file} has no message beside it");
        }
    }
}

#[test]
fn every_case_about_a_shape_is_listed() {
    let named = named();
    for folder in ["tests/ui/fail/shape", "tests/ui/pass/shape"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                let file = path.strip_prefix(root()).unwrap().to_str().unwrap();
                let also = ["parameters", "receivers"];
                let elsewhere = also
                    .iter()
                    .any(|name| file.ends_with(&format!("{name}.rs")));
                assert!(elsewhere || named.contains(file), "{file} is not listed");
            }
        }
    }
}
