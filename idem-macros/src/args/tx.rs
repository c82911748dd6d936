//! The grammar of `tx = conn` and `tx = savepoint(conn)`.

use proc_macro2::{Ident, TokenStream};
use syn::ext::IdentExt as _;
use syn::parse::ParseStream;
use syn::{Error, Token, parenthesized, token};

/// The caller's connection, and how much of its transaction an `Err` undoes.
#[derive(Debug, Clone)]
pub(crate) struct Tx {
    /// The name of a parameter.
    pub(crate) conn: Ident,
    pub(crate) savepoint: bool,
}

pub(crate) fn parse(input: ParseStream<'_>) -> syn::Result<Tx> {
    let word = name(input)?;
    if !input.peek(token::Paren) {
        let savepoint = false;
        return whole(
            input,
            Tx {
                conn: word,
                savepoint,
            },
        );
    }
    if word != "savepoint" {
        return Err(wrong(word.span()));
    }
    let content;
    parenthesized!(content in input);
    let conn = name(&content);
    // Whatever is left over would be a second error.
    let rest: TokenStream = content.parse()?;
    let conn = conn?;
    if let Some(token) = rest.into_iter().next() {
        return Err(wrong(token.span()));
    }
    let savepoint = true;
    whole(input, Tx { conn, savepoint })
}

fn name(input: ParseStream<'_>) -> syn::Result<Ident> {
    if input.peek(Ident::peek_any) && !input.peek(Token![mut]) && !input.peek(Token![self]) {
        return input.call(Ident::parse_any);
    }
    Err(wrong(input.span()))
}

fn whole(input: ParseStream<'_>, tx: Tx) -> syn::Result<Tx> {
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(tx);
    }
    Err(wrong(input.span()))
}

fn wrong(span: proc_macro2::Span) -> Error {
    Error::new(
        span,
        "`tx` takes the name of a `&mut` parameter: write `tx = conn` or `tx = savepoint(conn)`",
    )
}
