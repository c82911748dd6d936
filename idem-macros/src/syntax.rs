//! Small pure helpers about tokens.

use std::collections::HashSet;

use proc_macro2::{Delimiter, Group, Spacing, Span, TokenStream, TokenTree};
use syn::Ident;
use syn::ext::IdentExt as _;

/// A span that resolves like the macro's own names but points at `place`.
pub(crate) fn at(place: Span) -> Span {
    Span::mixed_site().located_at(place)
}

/// A generated name; users may not write the prefix.
pub(crate) fn own_ident(name: &str) -> Ident {
    Ident::new(&format!("__idem_{name}"), Span::mixed_site())
}

/// Moves all tokens to `place`; what their names mean stays as it is.
pub(crate) fn respan(tokens: TokenStream, place: Span) -> TokenStream {
    let respan_token = |mut token: TokenTree| {
        let span = token.span().located_at(place);
        if let TokenTree::Group(group) = &token {
            let inner = respan(group.stream(), place);
            token = Group::new(group.delimiter(), inner).into();
        }
        token.set_span(span);
        token
    };
    tokens.into_iter().map(respan_token).collect()
}

pub(crate) fn is_punct(token: &TokenTree, punct: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == punct)
}

pub(crate) fn is_ident(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(found) if found == word)
}

/// Says whether the content of `#[..]` is this attribute, under any path.
pub(crate) fn names_own_attribute(content: TokenStream) -> bool {
    let mut last = None;
    for token in content {
        match &token {
            TokenTree::Ident(ident) => last = Some(ident.to_string()),
            TokenTree::Punct(punct) if punct.as_char() == ':' => {}
            _ => break,
        }
    }
    last.as_deref() == Some("idempotent")
}

/// Every identifier in `tokens`, without `r#`, at any depth; also the words
/// behind a `{` in a literal, which format strings capture.
pub(crate) fn mentioned(tokens: TokenStream, words: &mut HashSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                words.insert(ident.unraw().to_string());
            }
            TokenTree::Group(group) => mentioned(group.stream(), words),
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                for part in text.split('{').skip(1) {
                    let end = part.find(|c: char| !c.is_alphanumeric() && c != '_');
                    words.insert(part[..end.unwrap_or(part.len())].to_owned());
                }
            }
            TokenTree::Punct(_) => {}
        }
    }
}

/// The first identifier, at any depth, for which `wanted` holds.
pub(crate) fn find_ident(tokens: TokenStream, wanted: &impl Fn(&Ident) -> bool) -> Option<Ident> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Ident(ident) if wanted(&ident) => Some(ident),
        TokenTree::Group(group) => find_ident(group.stream(), wanted),
        _ => None,
    })
}

/// Says whether `Self` stands in `tokens`, outside of items that have their own.
pub(crate) fn mentions_self_type(tokens: TokenStream) -> bool {
    let mut in_item = false;
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) if ident == "Self" => !in_item,
        TokenTree::Ident(ident) => {
            in_item |= ["impl", "trait", "struct", "enum", "union"]
                .iter()
                .any(|item| ident == item);
            false
        }
        TokenTree::Punct(punct) => {
            in_item &= punct.as_char() != ';';
            false
        }
        TokenTree::Group(group) => {
            let found = !in_item && mentions_self_type(group.stream());
            in_item &= group.delimiter() != Delimiter::Brace;
            found
        }
        TokenTree::Literal(_) => false,
    })
}

/// Says whether `word` stands in `tokens`, groups not looked into.
pub(crate) fn find_word_outside_groups(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| is_ident(&token, word))
}

/// Source text of an expression, on one line and cut at 64 characters: what a
/// person reads when two payloads differ.
pub(crate) fn source_label(tokens: TokenStream) -> String {
    let mut text = String::new();
    print(tokens, &mut text);
    if text.chars().count() > 64 {
        text = text.chars().take(63).chain(['…']).collect();
    }
    text
}

fn print(tokens: TokenStream, text: &mut String) {
    let mut previous_is_word = false;
    let mut after_operator = false;
    let mut joint = false;
    for token in tokens {
        let is_word = matches!(token, TokenTree::Ident(_) | TokenTree::Literal(_));
        if (is_word && previous_is_word) || after_operator {
            text.push(' ');
        }
        previous_is_word = is_word;
        after_operator = false;
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => (" { ", " }"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                text.push_str(open);
                print(group.stream(), text);
                text.push_str(close);
            }
            TokenTree::Punct(punct) => {
                let tight = "., : & ? ! < > ' #".contains(punct.as_char());
                let unary = text.is_empty() || text.ends_with([' ', '(', '[']);
                if !tight && !unary && !joint {
                    text.push(' ');
                }
                text.push(punct.as_char());
                joint = punct.spacing() == Spacing::Joint;
                after_operator = !joint && (punct.as_char() == ',' || (!tight && !unary));
            }
            other => text.push_str(&other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{mentions_self_type, source_label};

    #[test]
    fn labels_read_like_the_source() {
        for source in [
            "amount",
            "order.id",
            "req.lines[0].price",
            "Money::of(a, b)",
            "a + b",
            "-x",
            "&order.total()",
            "x as u64",
            "a == b",
            "f(-1, !done)",
            "[a, b]",
        ] {
            let tokens = source.parse().expect("tokens");
            assert_eq!(source_label(tokens), source);
        }
    }

    #[test]
    fn self_of_a_nested_item_is_not_the_own_one() {
        for (source, own) in [
            ("Self::FEE", true),
            ("f(&[Self { id }])", true),
            ("impl T for X { fn f() -> Self { Self } } id", false),
            ("struct A(Box<Self>); id", false),
            ("struct A; Self::FEE", true),
            ("enum A { B } Self::FEE", true),
        ] {
            let tokens = source.parse().expect(source);
            assert_eq!(mentions_self_type(tokens), own, "{source}");
        }
    }
}
