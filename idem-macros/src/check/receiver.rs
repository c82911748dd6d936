//! The receiver of a method, in all the ways it can be written.

use proc_macro2::Span;
use syn::{Ident, Receiver, ReceiverKind, Type, TypePath};

use super::borrows;

/// The receiver's own `self` token: the name is hygienic.
pub(crate) fn name(receiver: &Receiver) -> Ident {
    Ident::new("self", receiver.self_token.span)
}

/// `Self`, located at the receiver.
pub(crate) fn own_type(receiver: &Receiver) -> Type {
    let name = Ident::new("Self", receiver.self_token.span);
    Type::Path(TypePath {
        attrs: Vec::new(),
        qself: None,
        path: name.into(),
    })
}

/// The `T` of `&T`, if this is a receiver that `clone` can name.
pub(crate) fn referent(receiver: &Receiver) -> Option<Type> {
    match &receiver.kind {
        ReceiverKind::Reference(_, _, None) => Some(own_type(receiver)),
        ReceiverKind::Typed(_, ty) => borrows::referent(ty),
        _ => None,
    }
}

/// Where the receiver borrows from the caller.
pub(crate) fn find_borrow(receiver: &Receiver) -> Option<Span> {
    match &receiver.kind {
        ReceiverKind::Reference(_, Some(lifetime), None) if lifetime.ident == "static" => None,
        ReceiverKind::Reference(and, ..) => Some(and.span),
        ReceiverKind::Typed(_, ty) => borrows::find_borrow(ty),
        _ => None,
    }
}

/// Where it borrows mutably.
pub(crate) fn find_mut(receiver: &Receiver) -> Option<Span> {
    match &receiver.kind {
        ReceiverKind::Reference(and, _, Some(_)) => Some(and.span),
        ReceiverKind::Typed(_, ty) => borrows::find_mut(ty),
        _ => None,
    }
}
