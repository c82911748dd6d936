//! The annotated function as it was written. Its body stays raw tokens: a body
//! that does not parse yet must not take the editor's help away.

use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::parse::discouraged::Speculative as _;
use syn::parse::{Parse, ParseStream};
use syn::{AttrStyle, Attribute, Error, Signature, Token, Visibility, braced, token};

/// A function with a body.
#[derive(Debug, Clone)]
pub(crate) struct FnInput {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) defaultness: Option<Ident>,
    pub(crate) sig: Signature,
    /// The braces of the body, whose spans `dead_code` looks at.
    pub(crate) brace: token::Brace,
    pub(crate) body: TokenStream,
}

/// Items that people annotate, with what they are called.
const OTHER_ITEMS: &[(&str, &str)] = &[
    ("struct", "a struct"),
    ("enum", "an enum"),
    ("union", "a union"),
    ("trait", "a trait"),
    ("impl", "an `impl` block"),
    ("mod", "a module"),
    ("type", "a type alias"),
    ("use", "an import"),
    ("static", "a static"),
    ("let", "a `let`"),
    ("macro_rules", "a macro"),
];

impl FnInput {
    pub(crate) fn parse(item: TokenStream) -> syn::Result<Self> {
        syn::parse2(item)
    }
}

impl Parse for FnInput {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attrs = input.call(Attribute::parse_outer)?;
        let vis: Visibility = input.parse()?;
        let defaultness = parse_default(input);
        refuse_other_items(input)?;
        let sig: Signature = input.parse()?;
        if input.peek(Token![;]) {
            return Err(Error::new(
                input.span(),
                "a trait method without a body cannot be made idempotent; \
                 put the attribute on the implementations",
            ));
        }
        let content;
        let brace = braced!(content in input);
        // On the outside they mean the same, and the body stays one block.
        for mut attr in content.call(Attribute::parse_inner)? {
            attr.style = AttrStyle::Outer;
            attrs.push(attr);
        }
        let body = content.parse()?;
        Ok(Self {
            attrs,
            vis,
            defaultness,
            sig,
            brace,
            body,
        })
    }
}

/// `default fn`, which only an unstable feature accepts.
fn parse_default(input: ParseStream<'_>) -> Option<Ident> {
    let ahead = input.fork();
    let word = ahead.call(Ident::parse_any).ok()?;
    if word != "default" || ahead.peek(Token![!]) {
        return None;
    }
    input.advance_to(&ahead);
    Some(word)
}

fn refuse_other_items(input: ParseStream<'_>) -> syn::Result<()> {
    let ahead = input.fork();
    let _: Option<Token![unsafe]> = ahead.parse()?;
    let span = ahead.span();
    let first = ahead.call(Ident::parse_any).ok();
    let found = first.as_ref().and_then(|word| {
        OTHER_ITEMS
            .iter()
            .find(|(text, _)| word == text)
            .map(|(_, name)| *name)
    });
    if let Some(name) = found {
        let message = format!("`#[idempotent]` goes on an `async fn`, not on {name}");
        return Err(Error::new(span, message));
    }
    match first {
        Some(word) if word == "const" && !is_const_fn(&ahead) => Err(Error::new(
            span,
            "`#[idempotent]` goes on an `async fn`, not on a constant",
        )),
        Some(word) if word == "async" && !ahead.peek(Token![fn]) && !starts_fn(&ahead) => {
            Err(not_a_function(span))
        }
        Some(word)
            if ["const", "async", "extern", "fn", "safe"]
                .iter()
                .any(|w| word == w) =>
        {
            Ok(())
        }
        _ => Err(not_a_function(span)),
    }
}

fn is_const_fn(input: ParseStream<'_>) -> bool {
    input.peek(Token![fn]) || starts_fn(input)
}

fn starts_fn(input: ParseStream<'_>) -> bool {
    input.peek(Token![async]) || input.peek(Token![unsafe]) || input.peek(Token![extern])
}

fn not_a_function(span: Span) -> Error {
    Error::new(span, "`#[idempotent]` goes on an `async fn`")
}

impl FnInput {
    /// The tokens of the signature, to search in.
    pub(crate) fn signature_tokens(&self) -> TokenStream {
        self.sig.to_token_stream()
    }
}
