//! Proves what the compiler says: one mistake a file, one error a mistake, at the
//! mistake, saying what to write.
//!
//! The `.stderr` files belong to the toolchain in `rust-toolchain.toml`. After a
//! deliberate change: `TRYBUILD=overwrite cargo test -p idem-ui`, then read the diff.

// What is right is in `accepted.rs`: trybuild builds all that is refused in one go
// as long as nothing is to run.

#[test]
fn the_compiler_says_what_is_wrong() {
    trybuild::TestCases::new().compile_fail("fail/*/*.rs");
}
