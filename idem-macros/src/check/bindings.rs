//! How a parameter is written: its attributes, and the names that its pattern binds.

use proc_macro2::Span;
use quote::quote;
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Ident, Meta, Pat, PatIdent, Token};

use crate::syntax;

/// What may take a parameter away.
pub(super) const CFG: &[&str] = &["cfg"];
/// What sets the level of a lint, and may be repeated.
pub(super) const LEVELS: &[&str] = &["allow", "warn", "deny", "forbid"];

/// The name of a parameter that is no pattern.
pub(super) fn plain_name(pat: &Pat) -> Option<&Ident> {
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

/// What a message calls it.
pub(super) fn describe(pat: &Pat) -> String {
    match (plain_name(pat), pat) {
        (Some(name), _) => format!("`{name}`"),
        (None, Pat::Wild(_)) => "`_`".to_owned(),
        (None, _) => "this argument".to_owned(),
    }
}

/// Gives a name to `_`, so that the argument can move into the body.
pub(super) fn name_wildcard(pat: &mut Pat, index: usize) -> Option<Ident> {
    let Pat::Wild(wild) = &*pat else { return None };
    let mut name = syntax::own_ident(&format!("argument{index}"));
    name.set_span(syntax::at(wild.underscore_token.span));
    *pat = Pat::Ident(PatIdent {
        attrs: Vec::new(),
        by_ref: None,
        mutability: None,
        ident: name.clone(),
        subpat: None,
    });
    Some(name)
}

/// What of a parameter's attributes has one of these names, `cfg_attr` or not.
pub(super) fn only(attrs: &[Attribute], names: &[&str]) -> Vec<Attribute> {
    let found = attrs.iter().filter_map(|attr| {
        let meta = only_of(&attr.meta, names)?;
        Some(Attribute {
            meta,
            ..attr.clone()
        })
    });
    found.collect()
}

fn only_of(meta: &Meta, names: &[&str]) -> Option<Meta> {
    if names.iter().any(|name| meta.path().is_ident(name)) {
        return Some(meta.clone());
    }
    let Meta::List(list) = meta else { return None };
    if !list.path.is_ident("cfg_attr") {
        return None;
    }
    let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
    let mut parts = parse.parse2(list.tokens.clone()).ok()?.into_iter();
    let condition = parts.next()?;
    let found: Vec<Meta> = parts.filter_map(|meta| only_of(&meta, names)).collect();
    if found.is_empty() {
        return None;
    }
    let mut list = list.clone();
    list.tokens = quote!(#condition, #(#found),*);
    Some(Meta::List(list))
}

/// Takes out the expectations of a parameter whose `mut` is taken out too: they
/// are about the binding.
pub(super) fn take_expectations(attrs: &mut Vec<Attribute>) -> Vec<Attribute> {
    attrs
        .extract_if(.., |attr| attr.path().is_ident("expect"))
        .collect()
}

/// Collects the names that a pattern binds, and takes out their `mut`.
#[derive(Default)]
pub(super) struct Bindings {
    pub(super) names: Vec<Ident>,
    pub(super) rebinds: Vec<(Token![mut], Ident)>,
    pub(super) by_ref: Option<Span>,
}

impl Bindings {
    /// The names that were written with `mut`.
    pub(super) fn rebound(&self) -> Vec<Ident> {
        self.rebinds.iter().map(|(_, name)| name.clone()).collect()
    }
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
