//! Rules about the expressions in the attribute: nothing may run, wait or leave
//! before the call is reserved, and a key must mean the same at every delivery.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::spanned::Spanned as _;
use syn::{Expr, ExprLit, Lit};

use crate::args::Args;
use crate::args::key::Selection;
use crate::args::keyword::Keyword;
use crate::diagnostics::Diagnostics;
use crate::input::FnInput;
use crate::syntax::{self, is_ident, is_punct};

/// Identifiers that mean "another value at each delivery", with the reason.
const VARYING: &[(&str, &str)] = &[
    ("new_v4", "a new random id"),
    ("now_v7", "a new id"),
    ("rand", "a random value"),
    ("random", "a random value"),
    ("thread_rng", "a random value"),
    ("delivery_tag", "the broker's number of this delivery"),
    ("attempt", "the count of this attempt"),
];

pub(crate) fn check(args: &Args, function: &FnInput, diagnostics: &mut Diagnostics) {
    for (keyword, tokens) in args.before_the_call() {
        nothing_runs_before_the_call(keyword, tokens, diagnostics);
    }
    if let Some(key) = &args.key {
        key_is_not_constant(&key.value, function, key.word.span(), diagnostics);
        for part in key.value.exprs() {
            key_is_stable(part.to_token_stream(), diagnostics);
        }
    }
    if let Some(version) = &args.version {
        version_is_stable(version.value.to_token_stream(), diagnostics);
    }
    if let Some(payload) = &args.payload
        && payload.value.exprs().is_empty()
    {
        let message = "`payload = ()` compares nothing: name the arguments that must be equal when \
                       a key repeats, or leave `payload` out";
        diagnostics.report(payload.word.span(), message);
    }
    nothing_is_quoted(args, function, diagnostics);
    if let Some(expr) = args.probe() {
        recover_is_one_future(expr.to_token_stream(), diagnostics);
    }
    reserved_prefix(args, function, diagnostics);
}

/// Reports the first `.await`, `?`, `return`, `break` or the like.
fn nothing_runs_before_the_call(
    keyword: Keyword,
    tokens: TokenStream,
    diagnostics: &mut Diagnostics,
) {
    if let Some((span, found)) = leaves_early(tokens, false) {
        let message = format!(
            "`{found}` in `{}`: it must be computed without `.await`, `?`, `return` or `break`, \
             because nothing may run before the call is reserved",
            keyword.word()
        );
        diagnostics.report(span, message);
    }
}

/// The probe is awaited and judged by the runtime.
fn recover_is_one_future(tokens: TokenStream, diagnostics: &mut Diagnostics) {
    if let Some((span, found)) = leaves_early(tokens, true) {
        let message = if found == ".await" {
            "`recover` takes the future itself: leave out `.await`".to_owned()
        } else {
            format!(
                "`{found}` in `recover`: it takes one future of `Result<Recovered<T>, E>`, without \
                 `?`, `return` or `break`; put them into an `async` block or a function of its own"
            )
        };
        diagnostics.report(span, message);
    }
}

fn leaves_early(tokens: TokenStream, async_is_fine: bool) -> Option<(Span, &'static str)> {
    let mut tokens = tokens.into_iter().peekable();
    let mut after_dot = false;
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Ident(ident) => {
                let word = ident.to_string();
                if async_is_fine && word == "async" {
                    tokens.next_if(|next| is_ident(next, "move"));
                    tokens.next_if(
                        |next| matches!(next, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace),
                    );
                }
                let found = match word.as_str() {
                    "await" if after_dot => ".await",
                    "return" => "return",
                    "break" => "break",
                    "continue" => "continue",
                    "yield" => "yield",
                    _ => "",
                };
                if !found.is_empty() {
                    return Some((ident.span(), found));
                }
            }
            // `?Sized` in a path is no early exit.
            TokenTree::Punct(punct)
                if punct.as_char() == '?'
                    && !tokens.peek().is_some_and(|next| is_ident(next, "Sized")) =>
            {
                return Some((punct.span(), "?"));
            }
            TokenTree::Group(group) => {
                if let Some(found) = leaves_early(group.stream(), async_is_fine) {
                    return Some(found);
                }
            }
            _ => {}
        }
        after_dot = is_punct(&token, '.');
    }
    None
}

fn key_is_stable(tokens: TokenStream, diagnostics: &mut Diagnostics) {
    for (word, reason) in varying(tokens) {
        let message = format!(
            "`{word}` is {reason}, so every delivery would be a new call and nothing would \
             be recognised: use what stays the same when the sender repeats itself, such as \
             `key = order_id`"
        );
        diagnostics.report(word.span(), message);
    }
}

fn version_is_stable(tokens: TokenStream, diagnostics: &mut Diagnostics) {
    for (word, reason) in varying(tokens) {
        let message = format!(
            "`{word}` is {reason}, so every delivery would be another version and would run \
             again: use what the sender stamped, such as `version = order.revision`"
        );
        diagnostics.report(word.span(), message);
    }
}

/// What differs at each delivery, with the reason: the first such word of each
/// group of tokens.
fn varying(tokens: TokenStream) -> Vec<(Ident, &'static str)> {
    let mut found = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => found.extend(varying(group.stream())),
            TokenTree::Ident(ident) => {
                let word = ident.to_string();
                let called = matches!(
                    tokens.peek(),
                    Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis
                );
                let reason = match VARYING.iter().find(|(varying, _)| *varying == word) {
                    Some((_, reason)) => *reason,
                    None if word == "now" && called => "the time of this delivery",
                    None => continue,
                };
                found.push((ident, reason));
                return found;
            }
            _ => {}
        }
    }
    found
}

fn key_is_not_constant(
    key: &Selection,
    function: &FnInput,
    word: Span,
    diagnostics: &mut Diagnostics,
) {
    if !key.exprs().iter().all(is_constant) {
        return;
    }
    if let Selection::Whole(Expr::Lit(ExprLit {
        lit: Lit::Str(text),
        ..
    })) = key
        && looks_like_expression(&text.value(), function)
    {
        let message = format!(
            "write the key as an expression, without quotes: `key = {}`",
            text.value()
        );
        diagnostics.report(text.span(), message);
        return;
    }
    let span = match key {
        Selection::Whole(expr) => expr.span(),
        Selection::Parts(_) => word,
    };
    let message = "this key is the same for every call: every call after the first would get the \
                   first one's answer; use an argument, such as `key = order_id`";
    diagnostics.report(span, message);
}

/// An argument's name in quotes is a constant: all tenants would share a scope,
/// and every payload would be equal. A key that is quoted as a whole is
/// [`key_is_not_constant`]'s.
fn nothing_is_quoted(args: &Args, function: &FnInput, diagnostics: &mut Diagnostics) {
    let parts = |selection: &Selection| match selection {
        Selection::Parts(parts) if !parts.iter().all(is_constant) => parts.clone(),
        _ => Vec::new(),
    };
    let key = args.key.iter().flat_map(|key| parts(&key.value));
    let payload = args
        .payload
        .iter()
        .flat_map(|payload| payload.value.exprs().to_vec());
    let scope = args.scope.iter().map(|scope| scope.value.clone());
    let label = args.label.iter().map(|label| label.value.clone());
    let version = args.version.iter().map(|version| version.value.clone());
    let all = key.map(|expr| (Keyword::Key, expr));
    let all = all.chain(payload.map(|expr| (Keyword::Payload, expr)));
    let all = all.chain(scope.map(|expr| (Keyword::Scope, expr)));
    let all = all.chain(label.map(|expr| (Keyword::Label, expr)));
    let all = all.chain(version.map(|expr| (Keyword::Version, expr)));
    for (keyword, expr) in all {
        let Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) = &expr
        else {
            continue;
        };
        if looks_like_expression(&text.value(), function) {
            let message = format!(
                "this text is the same for every call: in `{}`, write the expression without \
                 quotes: `{}`",
                keyword.word(),
                text.value()
            );
            diagnostics.report(text.span(), message);
        }
    }
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) => true,
        Expr::Paren(paren) => is_constant(&paren.expr),
        Expr::Group(group) => is_constant(&group.expr),
        Expr::Reference(reference) => is_constant(&reference.expr),
        Expr::Unary(unary) => is_constant(&unary.expr),
        Expr::Tuple(tuple) => tuple.elems.iter().all(is_constant),
        Expr::Array(array) => array.elems.iter().all(is_constant),
        _ => false,
    }
}

/// Says whether a quoted key is an expression in quotes: it parses as one, and
/// it has the shape of a field or a call, or names a parameter.
fn looks_like_expression(text: &str, function: &FnInput) -> bool {
    match syn::parse_str::<Expr>(text) {
        Ok(Expr::Field(_) | Expr::MethodCall(_) | Expr::Call(_) | Expr::Tuple(_)) => true,
        Ok(Expr::Path(path)) => path.path.get_ident().is_some_and(|name| {
            let inputs = function.sig.inputs.to_token_stream();
            syntax::find_ident(inputs, &|ident| ident == name).is_some()
        }),
        _ => false,
    }
}

fn reserved_prefix(args: &Args, function: &FnInput, diagnostics: &mut Diagnostics) {
    let starts = |ident: &Ident| ident.to_string().starts_with("__idem");
    let found = [
        args.tokens.clone(),
        function.signature_tokens(),
        function.body.clone(),
    ]
    .into_iter()
    .find_map(|tokens| syntax::find_ident(tokens, &starts));
    if let Some(ident) = found {
        let message = "names starting with `__idem` are reserved; choose another name";
        diagnostics.report(ident.span(), message);
    }
}
