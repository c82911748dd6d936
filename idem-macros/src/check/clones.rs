//! Rules about `clone`: what can be cloned for the body's task, and what may be
//! named.

use quote::ToTokens as _;
use syn::{FnArg, Ident};

use super::{Context, bindings, borrows, receiver};
use crate::args::Args;
use crate::diagnostics::Diagnostics;
use crate::input::FnInput;
use crate::plan::Driver;
use crate::{rename, syntax};

/// Applies the rules to the list that was written.
pub(crate) fn check(
    args: &Args,
    context: &Context,
    function: &FnInput,
    cloneable: &[Ident],
    diagnostics: &mut Diagnostics,
) {
    listed(context, function, cloneable, diagnostics);
    self_in_literals(args, context, function, diagnostics);
}

/// The borrowed parameters that `clone` could name.
pub(crate) fn cloneable(function: &FnInput) -> Vec<Ident> {
    let inputs = function.sig.inputs.iter();
    inputs
        .filter_map(|input| match input {
            FnArg::Receiver(receiver) => {
                receiver::find_borrow(receiver).and(receiver::referent(receiver))?;
                Some(receiver::name(receiver))
            }
            FnArg::Typed(typed) => {
                borrows::find_borrow(&typed.ty).and(borrows::referent(&typed.ty))?;
                Some(bindings::plain_name(&typed.pat)?.clone())
            }
        })
        .collect()
}

/// Says whether the parameter `name` borrows; `None` if there is none.
fn borrows_from_caller(function: &FnInput, name: &Ident) -> Option<bool> {
    function.sig.inputs.iter().find_map(|input| match input {
        FnArg::Receiver(receiver) => {
            (name == "self").then(|| receiver::find_borrow(receiver).is_some())
        }
        FnArg::Typed(typed) => {
            let inside = syntax::find_ident(typed.pat.to_token_stream(), &|ident| ident == name);
            inside.map(|_| borrows::find_borrow(&typed.ty).is_some())
        }
    })
}

/// Every name in `clone` is a borrowed parameter, once.
fn listed(
    context: &Context,
    function: &FnInput,
    cloneable: &[Ident],
    diagnostics: &mut Diagnostics,
) {
    if context.driver != Driver::Detached {
        return;
    }
    for (index, name) in context.clones.iter().enumerate() {
        let message = if context.clones[..index].contains(name) {
            format!("`{name}` stands in `clone` twice")
        } else if cloneable.contains(name) {
            continue;
        } else {
            match borrows_from_caller(function, name) {
                Some(true) => {
                    format!("`clone` is for `&self` and parameters of the form `{name}: &T`")
                }
                Some(false) => format!(
                    "`{name}` does not borrow from the caller and needs no `clone`: leave it out"
                ),
                None => format!("`{name}` is no parameter of this function"),
            }
        };
        diagnostics.report(name.span(), message);
    }
}

/// A literal hides `self` from the renaming that `clone = self` needs.
fn self_in_literals(
    args: &Args,
    context: &Context,
    function: &FnInput,
    diagnostics: &mut Diagnostics,
) {
    if !context.clones.iter().any(|name| name == "self") {
        return;
    }
    for tokens in [args.probe().to_token_stream(), function.body.clone()] {
        if let Some(span) = rename::find_self_in_literal(tokens) {
            diagnostics.report(
                span,
                "`{self}` in a literal cannot be seen by `clone = self`: write `{}` and pass `self` \
                 as an argument",
            );
        }
    }
}
