//! What `#[async_trait]` has done to the function before this attribute sees it.

use std::collections::HashSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::Type;
use syn::ext::IdentExt as _;

use crate::args::Args;
use crate::diagnostics::Diagnostics;
use crate::input::FnInput;
use crate::plan::Shape;
use crate::syntax::{self, is_ident, is_punct};

/// A name that a pattern bound is moved into the boxed block, where the key
/// cannot see it.
pub(crate) fn check(
    args: &Args,
    function: &FnInput,
    shape: Option<&(Shape, Type)>,
    diagnostics: &mut Diagnostics,
) {
    let Some((Shape::AsyncBlock(shape), _)) = shape else {
        return;
    };
    let mut visible = HashSet::new();
    syntax::mentioned(function.sig.inputs.to_token_stream(), &mut visible);
    let moved = moved_patterns(shape.block.stream());
    for (_, tokens) in args.before_the_call() {
        let hidden = syntax::find_ident(tokens, &|ident| {
            let name = ident.unraw().to_string();
            moved.contains(&name) && !visible.contains(&name)
        });
        if let Some(name) = hidden {
            let message = format!(
                "`{name}` is bound by a pattern that `#[async_trait]` moves into the body: bind the \
                 whole argument, and take it apart inside"
            );
            diagnostics.report(name.span(), message);
        }
    }
}

/// The names in `let PATTERN = { let __arg1 = __arg1; __arg1 };`.
fn moved_patterns(block: TokenStream) -> HashSet<String> {
    let mut names = HashSet::new();
    let mut tokens = block.into_iter();
    while let Some(token) = tokens.next() {
        if !is_ident(&token, "let") {
            continue;
        }
        let pattern: TokenStream = tokens
            .by_ref()
            .take_while(|token| !is_punct(token, '='))
            .collect();
        if let Some(TokenTree::Group(group)) = tokens.next()
            && group.delimiter() == Delimiter::Brace
            && syntax::find_ident(group.stream(), &|ident| {
                ident.to_string().starts_with("__arg")
            })
            .is_some()
        {
            syntax::mentioned(pattern, &mut names);
        }
    }
    names
}
