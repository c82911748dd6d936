//! The new body of the function: call, check of the answer, and the user's
//! block in a future of its own.

use proc_macro2::{Delimiter, Group, Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::spanned::Spanned as _;

use super::{bounds, call, import, private, quiet};
use crate::plan::{Cloned, Driver, Plan};
use crate::{rename, syntax};

/// Everything between the function's braces. `block` are the user's statements,
/// which `braces` surrounded.
pub(super) fn body(plan: &Plan, block: TokenStream, braces: Span) -> TokenStream {
    let import = import(plan);
    let checks = bounds::move_checks(plan);
    let call = call::call(plan);
    let ops = bounds::ops(plan);
    let clones = clones(plan);
    let future = future(plan, block, braces);
    let driver = driver(plan, &future);
    quote!(#import #checks #call #ops #clones #driver)
}

/// Hands the future over. Located at the function's name, where rustc then says
/// that a future is not `Send`. Some people want every `return` to be written.
fn driver(plan: &Plan, future: &TokenStream) -> TokenStream {
    let place = plan.function.sig.ident.span();
    let span = syntax::at(place);
    let private = private(place);
    match plan.driver {
        Driver::Detached => quote_spanned! {span=>
            let __idem_run = #private::detached(__idem_call, __idem_ops, #future);
            return __idem_run.await
        },
        Driver::InPlace => quote_spanned! {span=>
            let __idem_body = ::core::pin::pin!(#future);
            // Not the tail: in edition 2024 its temporaries would move.
            let __idem_answer = #private::in_place(__idem_call, __idem_ops, __idem_body).await;
            return __idem_answer
        },
        Driver::Within => within(plan, future),
    }
}

/// Reservation, body and answer on the caller's connection, which the body has
/// in between under its own name. What the reservation asks of its type is
/// located at that type.
fn within(plan: &Plan, future: &TokenStream) -> TokenStream {
    let Some(tx) = &plan.within else {
        return TokenStream::new();
    };
    let mut types = plan
        .params
        .iter()
        .filter_map(|param| param.connection.as_ref());
    let place = types.next().map_or_else(|| tx.conn.span(), |ty| ty.span());
    let span = syntax::at(place);
    let private = private(place);
    let kind = if tx.savepoint {
        quote_spanned!(span=> Savepoint)
    } else {
        quote_spanned!(span=> Transaction)
    };
    let mut conn = tx.conn.clone();
    conn.set_span(conn.span().located_at(place));
    let name = plan.function.sig.ident.span();
    let reserve = quote_spanned! {span=>
        let mut __idem_permit = match #private::tx_reserve(
            __idem_call, __idem_ops, #private::Within::#kind, &mut *#conn,
        ).await {
            ::core::ops::ControlFlow::Break(__idem_answer) => return __idem_answer,
            ::core::ops::ControlFlow::Continue(__idem_permit) => __idem_permit,
        };
    };
    let run = quote_spanned! {syntax::at(name)=>
        let __idem_ended = {
            #[allow(clippy::shadow_reuse, clippy::shadow_same, clippy::shadow_unrelated)]
            let (__idem_run, #conn) = __idem_permit.split();
            let __idem_body = ::core::pin::pin!(#future);
            let __idem_ended = __idem_run.run(__idem_body).await;
            __idem_ended
        };
        let __idem_answer = __idem_permit.complete(__idem_ended).await;
        return __idem_answer
    };
    quote!(#reserve #run)
}

fn future(plan: &Plan, block: TokenStream, braces: Span) -> TokenStream {
    let never = never(plan);
    let captures = captures(plan);
    let borrows = borrows_of_clones(plan);
    let probe = probe(plan);
    let rebinds = rebinds(plan);
    let block = user_block(plan, block, braces);
    let inside = quote_spanned! {Span::mixed_site()=>
        #never #captures #borrows #probe #rebinds #block
    };
    // Coverage counts what lies inside of a body's own braces: the user's. And
    // rustc calls the variables of a block that comes from a macro just "value".
    let mut future = Group::new(Delimiter::Brace, inside);
    future.set_span(braces);
    quote_spanned!(braces=> async move #future)
}

/// A `return` that is never taken pins the type of the block, so that arms are
/// coerced and errors point at the return type. It stands outside of the user's
/// block, where the body's own imports cannot change what the type means.
fn never(plan: &Plan) -> TokenStream {
    let answer = &plan.answer;
    quote_spanned! {syntax::at(answer.span())=>
        if let ::core::option::Option::Some(__idem_never) = ::core::option::Option::None::<#answer> {
            #[allow(unreachable_code)]
            return __idem_never;
        }
    }
}

/// Borrowing a binding moves it in as a whole, also when the body uses only one
/// of its fields: a permit lives as long as the body. Captures are dropped in the
/// order of their first use, so the last argument comes first, as in any function.
fn captures(plan: &Plan) -> TokenStream {
    let captures = plan.params.iter().flat_map(|param| {
        let cfgs = &param.cfgs;
        param.captures.iter().map(move |name| {
            let quiet = name.to_string().starts_with('_').then(quiet);
            quote_spanned!(Span::mixed_site()=> #(#cfgs)* #quiet let _ = &#name;)
        })
    });
    let captures: Vec<TokenStream> = captures.collect();
    captures.into_iter().rev().collect()
}

/// The clones that the body's task owns, made by the caller.
fn clones(plan: &Plan) -> TokenStream {
    let clones = plan.params.iter().filter_map(|param| {
        let Cloned {
            name,
            owned,
            ty,
            generic,
            ..
        } = param.cloned.as_ref()?;
        let place = if name == "self" {
            name.span()
        } else {
            ty.span()
        };
        let span = syntax::at(place);
        let private = private(place);
        let cfgs = &param.cfgs;
        let to_owned = if *generic {
            quote_spanned!(span=> to_owned)
        } else {
            quote_spanned!(span=> to_movable)
        };
        Some(quote_spanned!(span=> #(#cfgs)* let #owned = #private::#to_owned::<#ty>(#name);))
    });
    clones.collect()
}

/// Inside the task the clones are borrowed under the names that the body uses.
fn borrows_of_clones(plan: &Plan) -> TokenStream {
    let borrows = plan.params.iter().filter_map(|param| {
        let cloned = param.cloned.as_ref()?;
        let Cloned {
            name,
            owned,
            ty,
            mutability,
            ..
        } = cloned;
        let cfgs = &param.cfgs;
        let span = Span::mixed_site();
        let name = if cloned.is_self() { owned } else { name };
        Some(quote_spanned! {span=>
            #(#cfgs)*
            #[allow(clippy::shadow_unrelated)]
            let #mutability #name: &#ty = ::core::borrow::Borrow::<#ty>::borrow(&#owned);
        })
    });
    borrows.collect()
}

/// `on_unknown = recover(expr)`: what the outside world knows is asked in the
/// body's own future, so that the probe may borrow what the body consumes.
///
/// The `None` tells what the probe is to give, so that a wrong one is one error,
/// at the expression.
fn probe(plan: &Plan) -> TokenStream {
    let Some(expr) = &plan.recover else {
        return TokenStream::new();
    };
    let span = syntax::at(expr.span());
    let private = private(expr.span());
    let (map, _) = bounds::error_map(plan, expr.span());
    let answer = syntax::respan(plan.answer.to_token_stream(), expr.span());
    let operand = call::operand(expr, renamed(plan, expr.to_token_stream()));
    quote_spanned! {span=>
        if #private::must_probe() {
            let __idem_probe = #private::probed(
                ::core::option::Option::None::<#answer>,
                #operand.await,
                &#map,
            );
            if let ::core::option::Option::Some(__idem_answer) = __idem_probe {
                return __idem_answer;
            }
        }
    }
}

/// `mut` bindings are made here from the user's own tokens: `unused_mut` still
/// sees them, and a reference may be set to one of the body's locals.
fn rebinds(plan: &Plan) -> TokenStream {
    let rebinds = plan.params.iter().flat_map(|param| {
        let (cfgs, lints) = (&param.cfgs, &param.lints);
        param.rebinds.iter().map(move |(mutability, name)| {
            quote_spanned! {Span::mixed_site()=>
                #(#cfgs)*
                #(#lints)*
                #[allow(clippy::shadow_same)]
                let #mutability #name = #name;
            }
        })
    });
    rebinds.collect()
}

/// The user's statements. The braces get a span of the macro's, or
/// `unused_braces` would complain about a body of one expression.
fn user_block(plan: &Plan, block: TokenStream, braces: Span) -> TokenStream {
    let mut block = Group::new(Delimiter::Brace, renamed(plan, block));
    block.set_span(syntax::at(braces));
    block.into_token_stream()
}

/// Tokens of the user's that run on the clone of `self`, if there is one.
fn renamed(plan: &Plan, tokens: TokenStream) -> TokenStream {
    if plan.clones_self() {
        rename::rename_self(tokens, &syntax::own_ident("self"))
    } else {
        tokens
    }
}
