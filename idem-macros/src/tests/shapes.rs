//! Functions that must be accepted, and how.

use super::{errors, tokens};
use crate::pipeline::expand;

const ATTR: &str = r#"key = id, ttl = "1h", name = "a.b""#;

fn accepted(attr: &str, item: &str) -> String {
    assert_eq!(errors(attr, item), Vec::<String>::new(), "{item}");
    expand(tokens(attr), tokens(item)).to_string()
}

#[test]
fn every_receiver_that_can_move() {
    for receiver in [
        "self",
        "mut self",
        "self: Arc<Self>",
        "self: Box<Self>",
        "self: &'static Self",
        "&'static self",
    ] {
        let item = format!("async fn f({receiver}, id: u32) -> Result<u32, E> {{ self.go(id) }}");
        accepted(ATTR, &item);
    }
    for receiver in ["&self", "&'a self", "self: &Self", "self: Pin<&Self>"] {
        let item = format!("async fn f({receiver}, id: u32) -> Result<u32, E> {{ self.go(id) }}");
        accepted(&format!("{ATTR}, on_cancel = abandon"), &item);
    }
    for receiver in ["&self", "self: &Self"] {
        let item = format!("async fn f({receiver}, id: u32) -> Result<u32, E> {{ self.go(id) }}");
        accepted(&format!("{ATTR}, clone = self"), &item);
    }
}

#[test]
fn every_kind_of_parameter() {
    for parameter in [
        "(a, mut b): (u8, u8)",
        "Order { total, .. }: Order",
        "[first, ..]: [u8; 3]",
        "r#type: u8",
        "f: impl Fn(&str) -> bool + Send + 'static",
        "f: fn(&str) -> &str",
        "f: Box<dyn for<'a> Visit<'a> + Send>",
        "t: T",
        "bytes: [u8; N]",
        "text: &'static str",
        "#[cfg(unix)] only: u8",
    ] {
        let item = format!(
            "async fn f<T: Send + 'static, const N: usize>(id: u32, {parameter}) -> Result<u32, E> {{ Ok(id) }}"
        );
        accepted(ATTR, &item);
    }
}

#[test]
fn a_parameter_without_a_name_gets_one_and_moves_in() {
    let expansion = accepted(
        ATTR,
        "async fn f(id: u32, _: Guard) -> Result<u32, E> { Ok(id) }",
    );
    assert!(expansion.contains("__idem_argument1 : Guard"));
    assert!(expansion.contains("let _ = & __idem_argument1"));
}

#[test]
fn a_name_that_occurs_nowhere_stays_out() {
    let expansion = accepted(
        ATTR,
        "async fn f(id: u32, unused: u8, _held: u8, shown: u8) -> Result<u32, E> { log!(\"{shown}\"); Ok(1) }",
    );
    assert!(!expansion.contains("& unused"));
    assert!(expansion.contains("let _ = & _held"));
    assert!(expansion.contains("let _ = & shown"));
}

#[test]
fn cfgs_follow_their_parameter() {
    let expansion = accepted(
        ATTR,
        "async fn f(id: u32, #[cfg(unix)] mut only: u8) -> Result<u32, E> { Ok(only) }",
    );
    assert_eq!(
        expansion.matches("# [cfg (unix)]").count(),
        3,
        "{expansion}"
    );
}

#[test]
fn futures_that_are_returned() {
    for item in [
        "fn f(id: u32) -> impl Future<Output = Result<u32, E>> + Send { async move { Ok(id) } }",
        "fn f(id: u32) -> Pin<Box<dyn Future<Output = Result<u32, E>> + Send>> { Box::pin(async move { Ok(id) }) }",
        "fn f(id: u32) -> BoxFuture<'static, Result<u32, E>> { Box::pin(async move { Ok(id) }) }",
        "fn f(id: u32) -> LocalBoxFuture<'static, Result<u32, E>> { async move { Ok(id) }.boxed_local() }",
        "fn f(id: u32) -> jobs::Future { Box::pin(async { Ok(id) }) }",
    ] {
        accepted(ATTR, item);
    }
}

#[test]
fn modifiers_and_attributes_survive() {
    let expansion = accepted(
        ATTR,
        "/// Docs.\n #[must_use] pub(crate) async fn f(id: u32) -> Result<u32, E> where u32: Copy { #![allow(dead_code)] Ok(id) }",
    );
    for part in [
        "Docs",
        "must_use",
        "pub (crate) async fn f",
        "where u32 : Copy",
        "# [allow (dead_code)]",
    ] {
        assert!(expansion.contains(part), "{part} in {expansion}");
    }
}

#[test]
fn the_runtime_is_where_the_user_says() {
    let item = "async fn f(id: u32) -> Result<u32, E> { Ok(id) }";
    let expansion = accepted("key = id, ttl = forever, crate = my::prelude", item);
    assert!(expansion.contains("my :: prelude :: __private"));
    assert!(!expansion.contains(":: idem ::"));
}

#[test]
fn a_word_of_the_attribute_is_no_use_of_a_parameter() {
    let expansion = accepted(
        "key = id, ttl = \"1h\", on_error = store",
        "async fn f(id: u32, store: u8) -> Result<u32, E> { Ok(1) }",
    );
    assert!(!expansion.contains("& store"), "{expansion}");
}

#[test]
fn cfg_attr_leaves_its_cfg_on_every_use() {
    let expansion = accepted(
        ATTR,
        "async fn f(id: u32, #[cfg_attr(a, cfg(b), doc = \"x\")] only: u8) -> Result<u32, E> { Ok(only) }",
    );
    assert_eq!(
        expansion.matches("# [cfg_attr (a , cfg (b))]").count(),
        2,
        "{expansion}"
    );
}

#[test]
fn lint_levels_reach_the_binding() {
    let expansion = accepted(
        ATTR,
        "async fn f(id: u32, #[allow(x)] #[expect(y)] mut only: u8) -> Result<u32, E> { Ok(only) }",
    );
    assert_eq!(expansion.matches("# [allow (x)]").count(), 2, "{expansion}");
    assert_eq!(
        expansion.matches("# [expect (y)]").count(),
        1,
        "{expansion}"
    );
}

#[test]
fn a_returned_future_holds_only_what_its_block_mentions() {
    let expansion = accepted(
        ATTR,
        "fn f(id: u32, _held: G, _: G) -> impl Future<Output = Result<u32, E>> { async move { Ok(id) } }",
    );
    assert!(!expansion.contains("& _held"), "{expansion}");
    assert!(!expansion.contains("__idem_argument"), "{expansion}");
}

#[test]
fn the_last_argument_is_captured_first() {
    let expansion = accepted(
        ATTR,
        "async fn f(id: u32, a: u8, b: u8) -> Result<u32, E> { go(a, b) }",
    );
    let at = |name: &str| expansion.find(&format!("let _ = & {name} ;"));
    assert!(at("b").is_some() && at("b") < at("a") && at("a") < at("id"));
}
