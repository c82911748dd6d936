//! Rules about receiver and parameters, and what happens to each of them.

use std::collections::HashSet;

use proc_macro2::Span;
use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::visit_mut::VisitMut as _;
use syn::{FnArg, GenericParam, Ident, PatType, Receiver, ReceiverKind, Type};

use super::bindings::{
    Bindings, CFG, LEVELS, describe, name_wildcard, only, plain_name, take_expectations,
};
use super::{Context, borrows, clones, receiver};
use crate::args::Args;
use crate::diagnostics::Diagnostics;
use crate::input::FnInput;
use crate::plan::{Cloned, Driver, MoveCheck, Param};
use crate::syntax;

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
    let type_params = generics.filter_map(|param| match param {
        GenericParam::Type(param) => Some(param.ident.clone()),
        _ => None,
    });
    let planner = Planner {
        context,
        is_async: function.sig.asyncness.is_some(),
        words,
        type_params: type_params.collect(),
        cloneable: clones::cloneable(function),
    };
    clones::check(args, context, function, &planner.cloneable, diagnostics);
    let inputs = function.sig.inputs.iter_mut().enumerate();
    inputs
        .map(|(index, input)| match input {
            FnArg::Receiver(receiver) => planner.receiver(receiver, diagnostics),
            FnArg::Typed(typed) => planner.typed(index, typed, diagnostics),
        })
        .collect()
}

struct Planner<'a> {
    context: &'a Context,
    /// An `async fn`, whose future holds every argument.
    is_async: bool,
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

    fn receiver(&self, receiver: &Receiver, diagnostics: &mut Diagnostics) -> Param {
        let name = receiver::name(receiver);
        let mut param = Param {
            cfgs: only(&receiver.attrs, CFG),
            ..Param::default()
        };
        if let Some(span) = receiver::find_mut(receiver) {
            diagnostics.report(
                span,
                "changes through `&mut self` are not repeated when a recorded answer is replayed: \
                 take `&self`, and return the change in the answer",
            );
            return param;
        }
        let borrow = receiver::find_borrow(receiver);
        let ty = match &receiver.kind {
            ReceiverKind::Typed(_, ty) => (**ty).clone(),
            _ => receiver::own_type(receiver),
        };
        if self.is_cloned(&name) {
            param.cloned = Some(Cloned {
                owned: syntax::own_ident("self"),
                ty: receiver::referent(receiver).unwrap_or(ty),
                generic: false,
                mutability: receiver.mutability,
                name,
            });
            return param;
        }
        match borrow {
            Some(span) if self.detached() => {
                self.refuse_borrow(Some(&name), "`self`", span, diagnostics);
            }
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
            cfgs: only(&typed.attrs, CFG),
            ..Param::default()
        };
        let name = plain_name(&typed.pat).cloned();
        let described = describe(&typed.pat);
        if self.is_async {
            param.captures.extend(name_wildcard(&mut typed.pat, index));
        }
        if name
            .as_ref()
            .is_some_and(|name| self.context.tx.contains(name))
        {
            // Its own name is bound again, beside the body.
            let mut bindings = Bindings::default();
            bindings.visit_pat_mut(&mut typed.pat);
            param.rebinds = bindings.rebinds;
            param.connection = Some((*typed.ty).clone());
            return param;
        }
        if let Some(span) = borrows::find_mut(&typed.ty) {
            let message = format!(
                "{described} would not be changed when a recorded answer is replayed: take it \
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
        if let (Some(name), Some(ty)) = (cloned, borrows::referent(&typed.ty)) {
            param.cloned = Some(Cloned {
                name: name.clone(),
                owned: syntax::own_ident(&format!("own{index}")),
                generic: self.is_generic(&ty),
                ty,
                mutability: None,
            });
        } else if self.detached() {
            match borrows::find_borrow(&typed.ty) {
                Some(span) => {
                    self.refuse_borrow(name.as_ref(), &described, span, diagnostics);
                }
                None => param.check = self.check(&typed.ty),
            }
        }
        let rebound = bindings.rebound();
        param.rebinds = bindings.rebinds;
        if !param.rebinds.is_empty() {
            param.lints = only(&typed.attrs, LEVELS);
            if name.is_some() {
                param.lints.extend(take_expectations(&mut typed.attrs));
            }
        }
        if param.cloned.is_none() {
            let wanted = bindings.names.into_iter().filter(|name| {
                !rebound.contains(name) && !param.captures.contains(name) && self.takes(name)
            });
            let wanted: Vec<Ident> = wanted.collect();
            param.captures.extend(wanted);
        }
        param
    }

    /// A name that occurs nowhere stays out, so that rustc warns about it. One
    /// that starts with `_` moves in, so that it lives as long as the body; not
    /// where a future is returned, which holds what its block mentions.
    fn takes(&self, name: &Ident) -> bool {
        let name = name.unraw().to_string();
        (self.is_async && name.starts_with('_')) || self.words.contains(&name)
    }

    fn check(&self, ty: &Type) -> Option<MoveCheck> {
        let tokens = ty.to_token_stream();
        let has_impl = syntax::find_ident(tokens, &|ident| ident == "impl").is_some();
        if !self.detached() || has_impl {
            return None;
        }
        Some(MoveCheck {
            ty: ty.clone(),
            generic: self.is_generic(ty),
        })
    }

    fn is_generic(&self, ty: &Type) -> bool {
        let names_one = |ident: &Ident| self.type_params.contains(ident);
        syntax::find_ident(ty.to_token_stream(), &names_one).is_some()
    }

    /// The body outlives the caller, so it cannot borrow from it.
    fn refuse_borrow(
        &self,
        name: Option<&Ident>,
        described: &str,
        span: Span,
        diagnostics: &mut Diagnostics,
    ) {
        if name.is_some_and(|name| self.context.clones.contains(name)) {
            // The rules of `clone` have said why this one cannot be cloned.
            return;
        }
        let mut ways = Vec::new();
        if name.is_some_and(|name| self.cloneable.contains(name)) {
            let names: Vec<String> = self.cloneable.iter().map(Ident::to_string).collect();
            ways.push(match names.as_slice() {
                [one] => format!("write `clone = {one}`"),
                several => format!("write `clone = ({})`", several.join(", ")),
            });
        }
        ways.push(if name.is_some_and(|name| name == "self") {
            "take `self: Arc<Self>`".to_owned()
        } else {
            "take it owned".to_owned()
        });
        let message = format!(
            "{described} is borrowed, but the body runs in a task of its own, so that it finishes \
             when its caller goes away: {}, or choose `on_cancel = abandon` (a caller that goes away \
             then leaves the outcome unknown)",
            ways.join(", ")
        );
        diagnostics.report(span, message);
    }
}
