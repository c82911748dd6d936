//! A body that calls its own function, where rustc's message would not help.

use std::collections::HashSet;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::ToTokens as _;

use super::Context;
use crate::diagnostics::Diagnostics;
use crate::input::FnInput;
use crate::plan::Driver;
use crate::syntax::{self, is_ident, is_punct};

/// Under `finish` the type of the body's task would contain itself.
pub(crate) fn check(context: &Context, function: &FnInput, diagnostics: &mut Diagnostics) {
    if context.driver != Driver::Detached {
        return;
    }
    let is_method = function.sig.receiver().is_some();
    let name = function.sig.ident.to_string();
    // A parameter or a local of this name is what the body calls.
    let mut params = HashSet::new();
    syntax::mentioned(function.sig.inputs.to_token_stream(), &mut params);
    if !is_method && (params.contains(&name) || defines(function.body.clone(), &name)) {
        return;
    }
    if let Some(span) = find_call(function.body.clone(), &name, is_method) {
        diagnostics.report(
            span,
            "the body runs in a task of its own, which cannot contain itself: make the recursive \
             call through a function that returns a boxed future, or choose `on_cancel = abandon`",
        );
    }
}

fn defines(body: TokenStream, name: &str) -> bool {
    let mut before = String::new();
    for token in body {
        if is_ident(&token, name) && ["let", "fn", "mut", "use"].contains(&before.as_str()) {
            return true;
        }
        if let TokenTree::Group(group) = &token
            && defines(group.stream(), name)
        {
            return true;
        }
        before = token.to_string();
    }
    false
}

/// `Self::name(..)`; `self.name(..)` in a method; `name(..)` elsewhere.
fn find_call(body: TokenStream, name: &str, is_method: bool) -> Option<Span> {
    let tokens: Vec<TokenTree> = body.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token
            && let Some(span) = find_call(group.stream(), name, is_method)
        {
            return Some(span);
        }
        let called = matches!(
            tokens.get(index + 1),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis
        );
        if !called || !is_ident(token, name) {
            continue;
        }
        let own = match &tokens[..index] {
            [.., receiver, dot] if is_punct(dot, '.') => is_method && is_ident(receiver, "self"),
            [.., path, _, colon] if is_punct(colon, ':') => is_ident(path, "Self"),
            _ => !is_method,
        };
        if own {
            return Some(token.span());
        }
    }
    None
}
