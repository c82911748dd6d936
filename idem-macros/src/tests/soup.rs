//! Whatever is typed, the attribute answers with tokens, never with a panic.
//!
//! `IDEM_SOUP=1000000` in front of `cargo test -p idem-macros soup` tries a
//! million inputs instead of a few thousand.

use proc_macro2::TokenStream;

use crate::pipeline::expand;

/// A small generator of its own (xorshift), so that a failure repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 1_000_003).unwrap_or(0) % bound
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

const WORDS: &[&str] = &[
    "key",
    "ttl",
    "name",
    "scope",
    "payload",
    "label",
    "engine",
    "on_error",
    "on_unknown",
    "on_cancel",
    "on_missing_key",
    "on_in_progress",
    "clone",
    "map_err",
    "codec",
    "lease",
    "max_run",
    "crate",
    "tx",
    "savepoint",
    "version",
    "on_stale",
    "replay",
    "tenant",
    "store",
    "classify",
    "recover",
    "wait",
    "abandon",
    "finish",
    "forever",
    "self",
    "Self",
    "r#type",
    "__idem_x",
    "=",
    "=",
    "=",
    ",",
    ",",
    ",",
    "==",
    "::",
    ".",
    "?",
    "&",
    "&&",
    "'a",
    "<",
    ">",
    "->",
    "!",
    "#",
    "\"24h\"",
    "\"\"",
    "\"1.5h\"",
    "\"order.id\"",
    "0",
    "5",
    "1.5",
    "b\"x\"",
    "'c'",
    "await",
    "return",
    "async",
    "fn",
    "mut",
    "impl",
    "dyn",
    "_",
    "id",
    "now",
    "new_v4",
    "|",
    "||",
    ";",
];

const ITEM_WORDS: &[&str] = &[
    "pub", "async", "fn", "const", "unsafe", "extern", "\"C\"", "struct", "impl", "trait",
    "default", "f", "self", "&", "mut", "'a", "<", ">", "id", ":", "u32", ",", "_", "..", "...",
    "->", "Result", "!", "?", ";", "where", "T", "for", "dyn", "ref", "@", "=", "#", "|", "Box",
    "::", "pin", "move", "Future",
];

fn soup(random: &mut Random, words: &[&str], depth: usize) -> String {
    let mut text = String::new();
    for _ in 0..random.below(14) {
        match random.below(8) {
            0 if depth > 0 => {
                let (open, close) = [("(", ")"), ("[", "]"), ("{", "}")][random.below(3)];
                let inner = soup(random, words, depth - 1);
                text.push_str(&format!("{open} {inner} {close}"));
            }
            _ => text.push_str(random.pick(words)),
        }
        text.push(' ');
    }
    text
}

/// Drops, repeats or swaps tokens of a valid source.
fn shaken(random: &mut Random, source: &str) -> String {
    let mut text = source.to_owned();
    for _ in 0..=random.below(3) {
        text = once_shaken(random, &text);
    }
    text
}

fn once_shaken(random: &mut Random, source: &str) -> String {
    let mut words: Vec<&str> = source.split(' ').collect();
    let (a, b) = (random.below(words.len()), random.below(words.len()));
    match random.below(4) {
        0 if words.len() > 1 => drop(words.remove(a)),
        1 => words.insert(b, words[a]),
        2 => words.swap(a, b),
        _ => words[a] = random.pick(WORDS),
    }
    words.join(" ")
}

const ATTR: &str = "key = ( a , b.c ) , payload = ( d , e ) , ttl = \"24h\" , name = \"x.y\" , clone = ( self , r ) , \
     on_error = classify ( path , store_text ) , on_unknown = recover ( find ( & a ) ) , \
     on_in_progress = wait ( \"5s\" ) , engine = self . idem , crate = :: my :: idem";

const ITEM: &str = "# [ inline ] pub ( crate ) async fn f < 'a , T : Clone , const N : usize > ( & self , r : & str , \
     mut a : Vec < T > , ( b , mut c ) : ( u8 , u8 ) , _ : Guard , Foo { d , .. } : Foo ) -> Result < u8 , E > \
     where T : Send { let x = format ! ( \"{a}\" ) ; self . go ( x ) . await ? ; Ok ( 1 ) }";

/// The valid function, with another body: it mostly stays valid.
fn with_body(body: &str) -> String {
    let end = ITEM.find("{ let x").expect("the body");
    format!("{} {{ {body} }}", &ITEM[..end])
}

#[test]
fn soup_never_panics() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let rounds = std::env::var_os("IDEM_SOUP")
        .and_then(|rounds| rounds.to_str()?.parse().ok())
        .unwrap_or(6_000);
    let (mut parsed, mut accepted) = (0, 0);
    for round in 0..rounds {
        let (attr, item) = match round % 5 {
            0 => (
                soup(&mut random, WORDS, 2),
                soup(&mut random, ITEM_WORDS, 2),
            ),
            1 => (soup(&mut random, WORDS, 2), shaken(&mut random, ITEM)),
            2 => (shaken(&mut random, ATTR), shaken(&mut random, ITEM)),
            3 => (ATTR.to_owned(), with_body(&soup(&mut random, WORDS, 3))),
            _ => (
                once_shaken(&mut random, ATTR),
                once_shaken(&mut random, ITEM),
            ),
        };
        let attr: Result<TokenStream, _> = attr.parse();
        let item: Result<TokenStream, _> = item.parse();
        if let (Ok(attr), Ok(item)) = (attr, item) {
            parsed += 1;
            let mut messages = Vec::new();
            super::collect(expand(attr, item), &mut messages);
            accepted += usize::from(messages.is_empty());
        }
    }
    println!("{rounds} inputs, {parsed} were tokens, {accepted} were accepted");
    assert!(parsed > rounds / 2, "only {parsed} inputs were tokens");
    assert!(accepted > rounds / 20, "only {accepted} were accepted");
}
