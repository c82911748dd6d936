//! What compiles with this package and what does not, and what the compiler
//! says then. After a deliberate change: `TRYBUILD=overwrite cargo test`, then
//! read the diff.

#[test]
fn the_compiler_stands_guard() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/compile/pass/*.rs");
    cases.compile_fail("tests/compile/fail/*.rs");
}
