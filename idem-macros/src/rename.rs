//! Renames `self` in a body that runs on a clone of it.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use syn::Ident;

use crate::syntax::{self, is_ident, is_punct};

/// Items inside a body, which have a `self` of their own or none.
const ITEMS: &[&str] = &["impl", "trait", "mod", "use"];

/// Every `self` that means the receiver becomes `name`, also inside macro calls.
/// Nested items, `self::path`, `$self` and `pub(self)` keep theirs.
pub(crate) fn rename_self(tokens: TokenStream, name: &Ident) -> TokenStream {
    let mut renamed = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(ident) if ident == "self" => {
                let is_path = tokens.peek().is_some_and(|next| is_punct(next, ':'));
                let is_fragment = renamed.last().is_some_and(|last| is_punct(last, '$'));
                let mut name = name.clone();
                name.set_span(syntax::at(ident.span()));
                renamed.push(if is_path || is_fragment { ident } else { name }.into());
            }
            TokenTree::Ident(ident) if ident == "pub" => {
                renamed.push(ident.into());
                renamed.extend(tokens.next_if(|next| {
                    matches!(next, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis)
                }));
            }
            TokenTree::Ident(ident) => {
                let named_fn = ident == "fn" && matches!(tokens.peek(), Some(TokenTree::Ident(_)));
                let is_item = named_fn || ITEMS.iter().any(|item| ident == item);
                renamed.push(ident.into());
                if is_item {
                    copy_item(&mut tokens, &mut renamed);
                }
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), rename_self(group.stream(), name));
                inner.set_span(group.span());
                renamed.push(inner.into());
            }
            other => renamed.push(other),
        }
    }
    renamed.into_iter().collect()
}

/// Copies up to the item's braces, or its semicolon.
fn copy_item(tokens: &mut impl Iterator<Item = TokenTree>, copy: &mut Vec<TokenTree>) {
    for token in tokens {
        let end = is_punct(&token, ';')
            || matches!(&token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        copy.push(token);
        if end {
            return;
        }
    }
}

/// A literal in a macro call that captures `self` the way format strings do.
pub(crate) fn find_self_in_literal(tokens: TokenStream) -> Option<Span> {
    let mut previous_is_bang = false;
    for token in tokens {
        if let TokenTree::Group(group) = &token {
            let found = if previous_is_bang {
                literal_with_self(group.stream())
            } else {
                find_self_in_literal(group.stream())
            };
            if found.is_some() {
                return found;
            }
        }
        previous_is_bang = is_punct(&token, '!') || (previous_is_bang && is_ident_token(&token));
    }
    None
}

fn is_ident_token(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Ident(_)) && !is_ident(token, "if")
}

fn literal_with_self(tokens: TokenStream) -> Option<Span> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Literal(literal) => {
            let text = literal.to_string();
            captures_self(&text).then(|| literal.span())
        }
        TokenTree::Group(group) => literal_with_self(group.stream()),
        _ => None,
    })
}

/// `{self}` or `{self:..}`, but not the escaped `{{self`.
fn captures_self(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let after = &rest[at + 1..];
        if let Some(escaped) = after.strip_prefix('{') {
            rest = escaped;
            continue;
        }
        if let Some(end) = after.strip_prefix("self")
            && end.starts_with(['}', ':'])
        {
            return true;
        }
        rest = after;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{captures_self, find_self_in_literal, rename_self};

    fn renamed(source: &str) -> String {
        let name = syn::parse_str("me").expect("name");
        rename_self(source.parse().expect(source), &name).to_string()
    }

    #[test]
    fn only_the_receiver_is_renamed() {
        for (source, expected) in [
            ("self.a", "me . a"),
            ("f(self, { self.b })", "f (me , { me . b })"),
            ("format!(\"{}\", self.id)", "format ! (\"{}\" , me . id)"),
            ("self::helper()", "self :: helper ()"),
            (
                "use self::a::{self, b}; self.c",
                "use self :: a :: { self , b } ; me . c",
            ),
            (
                "fn f(self) { self.a } self.b",
                "fn f (self) { self . a } me . b",
            ),
            (
                "impl T for X { fn f(&self) { self } } self",
                "impl T for X { fn f (& self) { self } } me",
            ),
            (
                "struct P { pub(self) a: u8 } self",
                "struct P { pub (self) a : u8 } me",
            ),
            (
                "macro_rules! m { ($self:expr) => { $self.a + self.b } }",
                "macro_rules! m { ($self : expr) => { $self . a + me . b } }",
            ),
            ("let f: fn(u8) = g; self", "let f : fn (u8) = g ; me"),
        ] {
            let expected: proc_macro2::TokenStream = expected.parse().expect(expected);
            assert_eq!(renamed(source), expected.to_string(), "{source}");
        }
    }

    #[test]
    fn a_captured_self_is_found_in_macro_calls_only() {
        assert!(captures_self("\"{self:?}\""));
        assert!(!captures_self("\"{{self}}\""));
        assert!(!captures_self("\"{selfish}\""));
        let find = |source: &str| find_self_in_literal(source.parse().expect(source)).is_some();
        assert!(find("let x = format!(\"{self}\");"));
        assert!(find("{ log::info!(a, [\"{self:?}\"]) }"));
        assert!(!find("let x = \"{self}\";"));
    }
}
