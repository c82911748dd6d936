//! Proves what the compiler says: one mistake a file, one error a mistake, at the
//! mistake, saying what to write; and that correct uses compile without warnings.
//!
//! The `.stderr` files belong to the toolchain in `rust-toolchain.toml`. After a
//! deliberate change: `TRYBUILD=overwrite cargo test -p idem-ui`, then read the diff.

// Two tests, so that trybuild builds all that is refused in one go: it builds one
// case after the other as soon as one of them is to run.

#[test]
fn what_is_right_compiles() {
    trybuild::TestCases::new().pass("pass/*/*.rs");
}

#[test]
fn the_compiler_says_what_is_wrong() {
    trybuild::TestCases::new().compile_fail("fail/*/*.rs");
}
