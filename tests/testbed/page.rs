//! `docs/testing.md` shows the code that runs here.

fn page() -> &'static str {
    include_str!("../../docs/testing.md")
}

#[test]
fn the_page_shows_the_suite_word_for_word() {
    let file = include_str!("charge.rs");
    let (_, code) = file.split_once("\n\n").unwrap();
    assert!(page().contains(code), "copy `charge.rs` into the page");
}
