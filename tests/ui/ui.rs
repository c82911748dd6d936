//! Proves what the compiler says: one mistake a file, one error a mistake, at the
//! mistake, saying what to write; and that correct uses compile without warnings.
//!
//! The `.stderr` files belong to the toolchain in `rust-toolchain.toml`. After a
//! deliberate change: `TRYBUILD=overwrite cargo test -p idem-ui`, then read the diff.

// Apart, so that trybuild builds all that is refused in one go: it builds one
// case after the other as soon as one of them is to run.

#[test]
fn what_is_right_compiles() {
    let cases = trybuild::TestCases::new();
    cases.pass("pass/all.rs");
    cases.pass("pass/keyword/crate-path.rs");
}

#[test]
fn every_file_of_what_is_right_is_built() {
    let all = include_str!("pass/all.rs");
    let folders = std::fs::read_dir("pass").expect("a folder");
    for folder in folders.map(|entry| entry.expect("an entry").path()) {
        if !folder.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(folder).expect("a folder") {
            let path = file.expect("an entry").path();
            let name = path.strip_prefix("pass").expect("it is there").display();
            let is_built = all.contains(&format!("#[path = \"{name}\"]"));
            assert!(
                is_built || path.ends_with("crate-path.rs"),
                "{name} is in no build"
            );
        }
    }
}

#[test]
fn the_compiler_says_what_is_wrong() {
    trybuild::TestCases::new().compile_fail("fail/*/*.rs");
}
