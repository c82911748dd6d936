//! The checks on types, each located at the type that it is about.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::Ident;
use syn::spanned::Spanned as _;

use super::private;
use crate::args::choice::OnError;
use crate::plan::{Driver, Plan};
use crate::syntax;

/// `let __idem_ops = ops::<RET, CODEC, P, M>(POLICY, MAP);`, or that of the way in
/// which the body runs.
///
/// The only bounds on the answer, so that one mistake is one error. All its
/// tokens lie at the return type: with mixed locations rustc would underline
/// everything from the attribute down to the type.
pub(super) fn ops(plan: &Plan) -> TokenStream {
    let place = plan.answer.span();
    let span = syntax::at(place);
    let private = private(place);
    let answer = &plan.answer;
    let codec = match &plan.codec {
        Some(path) => syntax::respan(path.to_token_stream(), place),
        None => quote_spanned!(span=> #private::Json),
    };
    let (policy, policy_type) = policy(plan, place);
    let (map, map_type) = error_map(plan, place);
    // Types, not `_`: rustc would infer the only mapping that could still fit,
    // and then complain about the argument instead of the error type.
    let ops = match plan.driver {
        Driver::Detached => quote_spanned!(span=> ops),
        Driver::InPlace => quote_spanned!(span=> ops_in_place),
        Driver::Within => quote_spanned!(span=> ops_within),
    };
    quote_spanned! {span=>
        let __idem_ops =
            #private::#ops::<#answer, #codec, #policy_type, #map_type>(#policy, #map);
    }
}

/// The error policy, and its type.
fn policy(plan: &Plan, place: Span) -> (TokenStream, TokenStream) {
    let span = syntax::at(place);
    let private = private(place);
    let (name, function) = match &plan.on_error {
        OnError::Store => ("Store", None),
        OnError::StoreText => ("StoreText", None),
        OnError::Unknown => ("Unknown", None),
        OnError::Release => ("Release", None),
        OnError::Classify(path) => ("Classify", Some(path)),
        OnError::ClassifyText(path) => ("ClassifyText", Some(path)),
    };
    let name = Ident::new(name, span);
    let policy = quote_spanned!(span=> #private::policy::#name);
    match function {
        None => (policy.clone(), policy),
        Some(path) => (
            quote_spanned!(span=> #policy(#path)),
            quote_spanned!(span=> #policy<_>),
        ),
    }
}

/// How an error of the engine becomes the function's own, and the type of that.
pub(super) fn error_map(plan: &Plan, place: Span) -> (TokenStream, TokenStream) {
    let span = syntax::at(place);
    let private = private(place);
    match &plan.map_err {
        Some(path) => (
            quote_spanned!(span=> #private::MapError(#path)),
            quote_spanned!(span=> #private::MapError<_>),
        ),
        None => {
            let map = quote_spanned!(span=> #private::FromError);
            (map.clone(), map)
        }
    }
}

/// One check per parameter that it can move into a task of its own.
pub(super) fn move_checks(plan: &Plan) -> TokenStream {
    let checks = plan.params.iter().filter_map(|param| {
        let check = param.check.as_ref()?;
        let place = check.ty.span();
        let span = syntax::at(place);
        let private = private(place);
        let function = if check.generic {
            quote_spanned!(span=> sendable)
        } else {
            quote_spanned!(span=> movable)
        };
        let (cfgs, ty) = (&param.cfgs, &check.ty);
        Some(quote_spanned!(span=> #(#cfgs)* #private::#function::<#ty>();))
    });
    quote!(#(#checks)*)
}
