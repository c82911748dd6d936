//! Turns a `Plan` into tokens. The item stays where it is; only its body changes.
//!
//! ```text
//! #[idempotent(key = order_id, payload = amount, ttl = "24h", name = "charge")]
//! async fn charge(gateway: Gateway, order_id: OrderId, amount: u64) -> Result<Charge, E> { BODY }
//!
//! async fn charge(gateway: Gateway, order_id: OrderId, amount: u64) -> Result<Charge, E> {
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

use crate::input::FnInput;
use crate::plan::{Plan, Shape};
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
            match &shape.boxed {
                None => block,
                Some(path) => quote_spanned!(Span::mixed_site()=> #path(#block)),
            }
        }
    };
    let mut tokens = quote!(#(#attrs)* #vis #defaultness #sig);
    // The outer braces keep the user's span: without it `dead_code` is silent.
    brace.surround(&mut tokens, |tokens| body.to_tokens(tokens));
    tokens
}

/// `path::__private`, located at `place`, so that an error points there.
fn private(plan: &Plan, place: Span) -> TokenStream {
    let runtime = syntax::respan(plan.runtime.clone(), place);
    let span = syntax::at(place);
    quote_spanned!(span=> #runtime::__private)
}

/// Quiets a lint about statements that nobody wrote.
fn quiet() -> TokenStream {
    quote_spanned!(Span::mixed_site()=> #[allow(clippy::used_underscore_binding)])
}
