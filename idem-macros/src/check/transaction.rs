//! Rules about `tx`: which parameter it names, and what has no meaning beside it.

use syn::{FnArg, Ident, Type};

use super::bindings;
use crate::args::Args;
use crate::args::choice::OnError;
use crate::args::keyword::Keyword;
use crate::diagnostics::Diagnostics;
use crate::input::FnInput;

pub(crate) fn check(args: &Args, function: &FnInput, diagnostics: &mut Diagnostics) {
    if args.tx.is_none() {
        return;
    }
    names_a_connection(args, function, diagnostics);
    nothing_contradicts(args, diagnostics);
    errors_fit(args, diagnostics);
}

/// The `&mut` parameter that `tx` names. If it names none, that is the mistake,
/// and no `&mut` parameter is another one.
pub(super) fn connections(args: &Args, function: &FnInput) -> Vec<Ident> {
    if !args.attempted(Keyword::Tx) {
        return Vec::new();
    }
    let borrowed = function.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) if is_mut_reference(&typed.ty) => bindings::plain_name(&typed.pat),
        FnArg::Typed(_) | FnArg::Receiver(_) => None,
    });
    let borrowed: Vec<Ident> = borrowed.cloned().collect();
    let named = args.tx.as_ref().map(|tx| &tx.value.conn);
    match named.filter(|named| borrowed.contains(named)) {
        Some(named) => vec![named.clone()],
        None => borrowed,
    }
}

/// The name is that of a parameter `NAME: &mut T`.
fn names_a_connection(args: &Args, function: &FnInput, diagnostics: &mut Diagnostics) {
    let Some(tx) = &args.tx else { return };
    let conn = &tx.value.conn;
    let found = function.sig.inputs.iter().find_map(|input| match input {
        FnArg::Typed(typed) if bindings::plain_name(&typed.pat) == Some(conn) => Some(&*typed.ty),
        FnArg::Typed(_) | FnArg::Receiver(_) => None,
    });
    let message = match found {
        Some(ty) if is_mut_reference(ty) => return,
        Some(_) => format!(
            "`tx` needs `{conn}` as a `&mut` reference to the caller's connection: write `{conn}: &mut \
             sqlx::Transaction<'_, DB>`"
        ),
        None => format!(
            "`{conn}` is no parameter of this function: `tx` names the caller's connection, such as \
             `{conn}: &mut sqlx::Transaction<'_, DB>`"
        ),
    };
    diagnostics.report(conn.span(), message);
}

fn is_mut_reference(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => reference.mutability.is_some(),
        Type::Paren(paren) => is_mut_reference(&paren.elem),
        Type::Group(group) => is_mut_reference(&group.elem),
        _ => false,
    }
}

/// There is no lease, no task of the body's own, and nothing that is left in doubt.
fn nothing_contradicts(args: &Args, diagnostics: &mut Diagnostics) {
    let beside = [
        (
            args.on_unknown.as_ref().map(|arg| &arg.word),
            "a transaction that was rolled back leaves nothing in doubt",
        ),
        (
            args.on_cancel.as_ref().map(|arg| &arg.word),
            "the body runs in place, on the caller's connection",
        ),
        (
            args.lease.as_ref().map(|arg| &arg.word),
            "a reservation in the caller's transaction has no lease",
        ),
        (
            args.max_run.as_ref().map(|arg| &arg.word),
            "a reservation in the caller's transaction has no lease to renew",
        ),
        (
            args.clone.as_ref().map(|arg| &arg.word),
            "the body runs in place and may borrow",
        ),
    ];
    for (word, reason) in beside {
        if let Some(word) = word {
            let message = format!("`{word}` has no meaning beside `tx`: {reason}; remove it");
            diagnostics.report(word.span(), message);
        }
    }
}

/// Undoing is the savepoint's, or the caller's.
fn errors_fit(args: &Args, diagnostics: &mut Diagnostics) {
    let (Some(tx), Some(on_error)) = (&args.tx, &args.on_error) else {
        return;
    };
    let conn = &tx.value.conn;
    let message = match (&on_error.value, tx.value.savepoint) {
        (OnError::Release, false) => format!(
            "`on_error = release` beside `tx = {conn}`: an `Err` cannot undo a part of the caller's \
             transaction; write `tx = savepoint({conn})`, which does, and remove this"
        ),
        (OnError::Release | OnError::Unknown, true) => format!(
            "an `Err` rolls back to the savepoint and leaves nothing of the call: remove `{}`",
            on_error.word
        ),
        _ => return,
    };
    diagnostics.report(on_error.word.span(), message);
}
