//! Turns a `Plan` into tokens. The item stays where it is; only its body changes.
//!
//! ```text
//! #[idempotent(key = order_id, payload = amount, ttl = "24h", name = "charge")]
//! async fn charge(gateway: Gateway, order_id: OrderId, amount: u64) -> Result<Charge, E> { BODY }
//!
//! async fn charge(gateway: Gateway, order_id: OrderId, amount: u64) -> Result<Charge, E> {
//!     use ::idem::__private;
//!     movable::<Gateway>(); ..                        a check per parameter, at its type
//!     let call = Call::new(const { &Site { .. } })    digests, from borrows; nothing runs yet
//!         .ttl(..).key(&order_id).payload("amount", &amount);
//!     let ops = ops::<Result<Charge, E>, Json, _, _>(Store, FromError);   the one check on the answer
//!     let run = detached(call, ops, async move {
//!         if let Some(never) = None::<Result<Charge, E>> { return never; }
//!         let _ = &gateway; ..                        moved in as a whole
//!         { BODY }
//!     });
//!     run.await
//! }
//! ```
//!
//! Generated names have mixed-site hygiene, and all paths are absolute. Lints are
//! quieted on the generated statements only, never around the user's block.

mod body;
mod bounds;
mod call;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::Ident;

use crate::input::FnInput;
use crate::plan::{Around, Plan, Shape};
use crate::syntax;

/// The expanded function.
pub(crate) fn generate(plan: &Plan) -> TokenStream {
    let FnInput {
        attrs,
        vis,
        defaultness,
        sig,
        brace,
        ..
    } = &plan.function;
    let body = match &plan.shape {
        Shape::AsyncFn => body::body(plan, plan.function.body.clone(), brace.span.join()),
        Shape::AsyncBlock(shape) => {
            let inner = body::body(plan, shape.block.stream(), shape.block.span());
            let block = quote_spanned!(Span::mixed_site()=> async move { #inner });
            match &shape.around {
                Around::Nothing => block,
                Around::Call(path) => quote_spanned!(Span::mixed_site()=> #path(#block)),
                Around::Method(method) => quote_spanned!(Span::mixed_site()=> #block #method),
            }
        }
    };
    let mut tokens = quote!(#(#attrs)* #vis #defaultness #sig);
    // The outer braces keep the user's span: without it `dead_code` is silent.
    brace.surround(&mut tokens, |tokens| body.to_tokens(tokens));
    tokens
}

/// The runtime's part for generated code, located at `place`, so that an error
/// points there.
fn private(place: Span) -> Ident {
    let mut name = Ident::new("__idem", Span::mixed_site());
    name.set_span(syntax::at(place));
    name
}

/// `use path::__private as ..;`: the only place that names the runtime, so that
/// a wrong path is one error, at the path.
fn import(plan: &Plan) -> TokenStream {
    let runtime = &plan.runtime;
    let place = runtime
        .clone()
        .into_iter()
        .last()
        .map_or_else(Span::call_site, |token| token.span());
    let span = syntax::at(place);
    let name = private(place);
    quote_spanned!(span=> use #runtime::__private as #name;)
}

/// Quiets a lint about statements that nobody wrote.
fn quiet() -> TokenStream {
    quote_spanned!(Span::mixed_site()=> #[allow(clippy::used_underscore_binding)])
}
