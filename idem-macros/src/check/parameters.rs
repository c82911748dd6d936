//! Rules about receiver and parameters, and what happens to each of them.

use std::collections::HashSet;

use proc_macro2::Span;
use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, FnArg, GenericParam, Ident, Pat, PatIdent, PatType, Receiver, ReceiverKind, Token,
    Type, TypePath, TypeReference,
};

use super::{Context, borrows};
use crate::args::Args;
use crate::diagnostics::Diagnostics;
use crate::input::FnInput;
use crate::plan::{Cloned, Driver, MoveCheck, Param};
use crate::{rename, syntax};

/// Decides for each parameter how the body gets it; takes `mut` out of the
/// signature, and gives a name to `_`.
pub(crate) fn plan(
    args: &Args,
    context: &Context,
    function: &mut FnInput,
    diagnostics: &mut Diagnostics,
) -> Vec<Param> {
    let mut words = HashSet::new();
    for (_, tokens) in args.before_the_call() {
        syntax::mentioned(tokens, &mut words);
    }
    syntax::mentioned(args.probe().to_token_stream(), &mut words);
    syntax::mentioned(function.body.clone(), &mut words);
    let generics = function.sig.generics.params.iter();
    let type_params = generics
        .filter_map(|param| match param {
            GenericParam::Type(param) => Some(param.ident.clone()),
            _ => None,
        })
        .chain([Ident::new("Self", Span::call_site())]);
    let planner = Planner {
        context,
        words,
        type_params: type_params.collect(),
        cloneable: cloneable(function),
    };
    planner.clone_list(function, diagnostics);
    self_in_literals(context, function, diagnostics);
    let inputs = function.sig.inputs.iter_mut().enumerate();
    inputs
        .map(|(index, input)| match input {
            FnArg::Receiver(receiver) => planner.receiver(receiver, diagnostics),
            FnArg::Typed(typed) => planner.typed(index, typed, diagnostics),
        })
        .collect()
}

/// The borrowed parameters that `clone` could name.
fn cloneable(function: &FnInput) -> Vec<Ident> {
    let inputs = function.sig.inputs.iter();
    inputs
        .filter_map(|input| match input {
            FnArg::Receiver(receiver) => {
                receiver_borrow(receiver).and(receiver_reference(receiver))?;
                Some(self_ident(receiver))
            }
            FnArg::Typed(typed) => {
                borrows::find_borrow(&typed.ty).and(simple_reference(&typed.ty))?;
                Some(plain_name(&typed.pat)?.clone())
            }
        })
        .collect()
}

/// Says whether the parameter `name` borrows; `None` if there is none.
fn borrows(function: &FnInput, name: &Ident) -> Option<bool> {
    function.sig.inputs.iter().find_map(|input| match input {
        FnArg::Receiver(receiver) => (name == "self").then(|| receiver_borrow(receiver).is_some()),
        FnArg::Typed(typed) => {
            let inside = syntax::find_ident(typed.pat.to_token_stream(), &|ident| ident == name);
            inside.map(|_| borrows::find_borrow(&typed.ty).is_some())
        }
    })
}

struct Planner<'a> {
    context: &'a Context,
    /// What body and attribute mention.
    words: HashSet<String>,
    type_params: Vec<Ident>,
    cloneable: Vec<Ident>,
}

impl Planner<'_> {
    fn detached(&self) -> bool {
        self.context.driver == Driver::Detached
    }

    fn is_cloned(&self, name: &Ident) -> bool {
        self.detached() && self.context.clones.contains(name)
    }

    /// Every name in `clone` is a borrowed parameter, once.
    fn clone_list(&self, function: &FnInput, diagnostics: &mut Diagnostics) {
        if !self.detached() {
            return;
        }
        for (index, name) in self.context.clones.iter().enumerate() {
            let message = if self.context.clones[..index].contains(name) {
                format!("`{name}` stands in `clone` twice")
            } else if self.cloneable.contains(name) {
                continue;
            } else {
                match borrows(function, name) {
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

    fn receiver(&self, receiver: &Receiver, diagnostics: &mut Diagnostics) -> Param {
        let name = self_ident(receiver);
        let mut param = Param::default();
        if let Some(span) = receiver_mut(receiver) {
            diagnostics.report(
                span,
                "changes through `&mut self` are not repeated when a recorded answer is replayed: \
                 take `&self`, and return the change in the answer",
            );
            return param;
        }
        let borrow = receiver_borrow(receiver);
        let ty = match &receiver.kind {
            ReceiverKind::Typed(_, ty) => (**ty).clone(),
            _ => self_type(receiver),
        };
        if self.is_cloned(&name) {
            param.cloned = Some(Cloned {
                owned: syntax::own_ident("self"),
                ty: receiver_reference(receiver).unwrap_or(ty),
                mutability: receiver.mutability,
                name,
            });
            return param;
        }
        match borrow {
            Some(span) if self.detached() => self.refuse_borrow(&name, span, diagnostics),
            Some(_) => {}
            None => {
                param.check = self.check(&ty);
                param.captures.push(name);
            }
        }
        param
    }

    fn typed(&self, index: usize, typed: &mut PatType, diagnostics: &mut Diagnostics) -> Param {
        let mut param = Param {
            cfgs: cfgs(&typed.attrs),
            ..Param::default()
        };
        if let Pat::Wild(wild) = &*typed.pat {
            let place = wild.underscore_token.span;
            let mut name = syntax::own_ident(&format!("argument{index}"));
            name.set_span(syntax::at(place));
            param.captures.push(name.clone());
            *typed.pat = Pat::Ident(PatIdent {
                attrs: Vec::new(),
                by_ref: None,
                mutability: None,
                ident: name,
                subpat: None,
            });
        }
        let name = plain_name(&typed.pat).cloned();
        let described = name
            .as_ref()
            .map_or_else(|| "_".to_owned(), Ident::to_string);
        if let Some(span) = borrows::find_mut(&typed.ty) {
            let message = format!(
                "`{described}` would not be changed when a recorded answer is replayed: take it \
                 without `&mut`, and return the new value in the answer"
            );
            diagnostics.report(span, message);
            return param;
        }
        let mut bindings = Bindings::default();
        bindings.visit_pat_mut(&mut typed.pat);
        if let Some(span) = bindings.by_ref
            && self.detached()
        {
            diagnostics.report(
                span,
                "`ref` borrows from the caller, but the body runs in a task of its own: bind by \
                 value, or choose `on_cancel = abandon`",
            );
            return param;
        }
        let cloned = name.as_ref().filter(|name| self.is_cloned(name));
        if let (Some(name), Some(ty)) = (cloned, simple_reference(&typed.ty)) {
            param.cloned = Some(Cloned {
                name: name.clone(),
                owned: syntax::own_ident(&format!("own{index}")),
                ty,
                mutability: None,
            });
        } else if self.detached() {
            match borrows::find_borrow(&typed.ty) {
                Some(span) => {
                    let name = name.unwrap_or_else(|| Ident::new("argument", span));
                    self.refuse_borrow(&name, span, diagnostics);
                }
                None => param.check = self.check(&typed.ty),
            }
        }
        let rebound: Vec<Ident> = bindings
            .rebinds
            .iter()
            .map(|(_, name)| name.clone())
            .collect();
        param.rebinds = bindings.rebinds;
        if param.cloned.is_none() {
            let wanted = bindings.names.into_iter().filter(|name| {
                !rebound.contains(name) && !param.captures.contains(name) && self.takes(name)
            });
            let wanted: Vec<Ident> = wanted.collect();
            param.captures.extend(wanted);
        }
        param
    }

    /// A name that occurs nowhere stays out, so that rustc warns about it.
    fn takes(&self, name: &Ident) -> bool {
        let name = name.unraw().to_string();
        name.starts_with('_') || self.words.contains(&name)
    }

    fn check(&self, ty: &Type) -> Option<MoveCheck> {
        let tokens = ty.to_token_stream();
        let has_impl = syntax::find_ident(tokens.clone(), &|ident| ident == "impl").is_some();
        if !self.detached() || has_impl {
            return None;
        }
        let generic = syntax::find_ident(tokens, &|ident| self.type_params.contains(ident));
        Some(MoveCheck {
            ty: ty.clone(),
            generic: generic.is_some(),
        })
    }

    /// The body outlives the caller, so it cannot borrow from it.
    fn refuse_borrow(&self, name: &Ident, span: Span, diagnostics: &mut Diagnostics) {
        let borrowed = if name == "self" {
            "`self`"
        } else {
            &format!("`{name}`")
        };
        let mut ways = Vec::new();
        if self.cloneable.contains(name) {
            let names: Vec<String> = self.cloneable.iter().map(Ident::to_string).collect();
            ways.push(match names.as_slice() {
                [one] => format!("write `clone = {one}`"),
                several => format!("write `clone = ({})`", several.join(", ")),
            });
        }
        ways.push(if name == "self" {
            "take `self: Arc<Self>`".to_owned()
        } else {
            "take it owned".to_owned()
        });
        let message = format!(
            "{borrowed} is borrowed, but the body runs in a task of its own, so that it finishes \
             when its caller goes away: {}, or choose `on_cancel = abandon` (a caller that goes away \
             then leaves the outcome unknown)",
            ways.join(", ")
        );
        diagnostics.report(span, message);
    }
}

/// A literal hides `self` from the renaming that `clone = self` needs.
fn self_in_literals(context: &Context, function: &FnInput, diagnostics: &mut Diagnostics) {
    let clones_self = context.clones.iter().any(|name| name == "self");
    if clones_self && let Some(span) = rename::find_self_in_literal(function.body.clone()) {
        diagnostics.report(
            span,
            "`{self}` in a literal cannot be seen by `clone = self`: write `{}` and pass `self` as \
             an argument",
        );
    }
}

fn self_ident(receiver: &Receiver) -> Ident {
    Ident::new("self", receiver.self_token.span)
}

/// `Self`, located at the receiver.
fn self_type(receiver: &Receiver) -> Type {
    let name = Ident::new("Self", receiver.self_token.span);
    Type::Path(TypePath {
        attrs: Vec::new(),
        qself: None,
        path: name.into(),
    })
}

/// The `T` of `&T`, if nothing in `T` borrows.
fn simple_reference(ty: &Type) -> Option<Type> {
    match ty {
        Type::Reference(TypeReference {
            mutability: None,
            elem,
            ..
        }) if borrows::find_borrow(elem).is_none() => Some((**elem).clone()),
        Type::Paren(paren) => simple_reference(&paren.elem),
        Type::Group(group) => simple_reference(&group.elem),
        _ => None,
    }
}

fn receiver_reference(receiver: &Receiver) -> Option<Type> {
    match &receiver.kind {
        ReceiverKind::Reference(_, _, None) => Some(self_type(receiver)),
        ReceiverKind::Typed(_, ty) => simple_reference(ty),
        _ => None,
    }
}

fn receiver_borrow(receiver: &Receiver) -> Option<Span> {
    match &receiver.kind {
        ReceiverKind::Reference(and, ..) => Some(and.span),
        ReceiverKind::Typed(_, ty) => borrows::find_borrow(ty),
        _ => None,
    }
}

fn receiver_mut(receiver: &Receiver) -> Option<Span> {
    match &receiver.kind {
        ReceiverKind::Reference(and, _, Some(_)) => Some(and.span),
        ReceiverKind::Typed(_, ty) => borrows::find_mut(ty),
        _ => None,
    }
}

/// The name of a parameter that is no pattern.
fn plain_name(pat: &Pat) -> Option<&Ident> {
    match pat {
        Pat::Ident(PatIdent {
            by_ref: None,
            subpat: None,
            ident,
            ..
        }) => Some(ident),
        _ => None,
    }
}

fn cfgs(attrs: &[Attribute]) -> Vec<Attribute> {
    let cfgs = attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    cfgs.cloned().collect()
}

/// Collects the names that a pattern binds, and takes out their `mut`.
#[derive(Default)]
struct Bindings {
    names: Vec<Ident>,
    rebinds: Vec<(Token![mut], Ident)>,
    by_ref: Option<Span>,
}

impl VisitMut for Bindings {
    fn visit_pat_ident_mut(&mut self, binding: &mut PatIdent) {
        self.names.push(binding.ident.clone());
        if let Some(by_ref) = &binding.by_ref {
            self.by_ref = self.by_ref.or(Some(by_ref.span()));
        } else if let Some(mutability) = binding.mutability.take() {
            self.rebinds.push((mutability, binding.ident.clone()));
        }
        visit_mut::visit_pat_ident_mut(self, binding);
    }
}
