//! Proves what the compiler says: one mistake a file, one error a mistake, at the
//! mistake, saying what to write; and that correct uses compile without warnings.
//!
//! The `.stderr` files belong to the toolchain in `rust-toolchain.toml`. After a
//! deliberate change: `TRYBUILD=overwrite cargo test -p idem-ui`, then read the diff.

#[test]
fn the_compiler_says_what_is_wrong() {
    let cases = trybuild::TestCases::new();
    cases.pass("pass/*/*.rs");
    cases.compile_fail("fail/*/*.rs");
}
