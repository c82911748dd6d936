//! The key block: everything that is computed from borrows before the call is
//! reserved.

use proc_macro2::{Literal, Span, TokenStream};
use quote::{ToTokens as _, quote_spanned};
use syn::Expr;
use syn::spanned::Spanned as _;

use super::{private, quiet};
use crate::args::choice::{OnInProgress, OnMissingKey, OnStale};
use crate::args::key::Selection;
use crate::args::ttl::TtlArg;
use crate::plan::{OnUnknownKind, Plan};
use crate::syntax;

/// `let __idem_call = { .. };`. The inner name ends every temporary in the
/// block, on each edition, so that no borrow lives on across an `.await`.
pub(super) fn call(plan: &Plan) -> TokenStream {
    let span = Span::mixed_site();
    let private = private(span);
    let site = site(plan);
    let call = &plan.call;
    let engine = call.engine.as_ref().map(|expr| step("engine", None, expr));
    let derived = plan
        .site
        .name
        .is_none()
        .then(|| quote_spanned!(span=> .derived_from(#private::path_of(&|| {}))));
    let ttl = ttl(plan);
    let scope = call.scope.as_ref().map(|expr| step("scope", None, expr));
    let key = key(&call.key);
    let payload = call.payload.as_ref().map(payload);
    let version = call
        .version
        .as_ref()
        .map(|expr| step("version", None, expr));
    let on_stale = call.on_stale.map(on_stale);
    let label = call.label.as_ref().map(|expr| step("label", None, expr));
    let quiet = quiet();
    quote_spanned! {span=>
        #quiet
        let __idem_call = {
            let __idem_call = #private::Call::new(const { &#site })
                #engine #derived #ttl #scope #key #payload #version #on_stale #label;
            __idem_call
        };
    }
}

fn on_stale(choice: OnStale) -> TokenStream {
    let span = Span::mixed_site();
    let private = private(span);
    let choice = match choice {
        OnStale::Error => quote_spanned!(span=> Error),
        OnStale::Replay => quote_spanned!(span=> Replay),
    };
    quote_spanned!(span=> .on_stale(#private::OnStale::#choice))
}

fn key(key: &Selection) -> TokenStream {
    match key {
        Selection::Whole(expr) => step("key", None, expr),
        Selection::Parts(parts) => {
            let parts = parts.iter().map(|part| step("key_part", None, part));
            quote_spanned!(Span::mixed_site()=> #(#parts)* .end_key())
        }
    }
}

fn payload(payload: &Selection) -> TokenStream {
    let elements = payload.exprs().iter().map(|expr| {
        let label = syntax::source_label(expr.to_token_stream());
        step("payload", Some(&label), expr)
    });
    elements.collect()
}

/// `.method("label", &expr)`, located at the expression: what is wrong with its
/// type is reported there.
fn step(method: &str, label: Option<&str>, expr: &Expr) -> TokenStream {
    let span = syntax::at(expr.span());
    let method = syn::Ident::new(method, span);
    let label = label.map(|label| quote_spanned!(span=> #label,));
    let operand = operand(expr, expr.to_token_stream());
    quote_spanned!(span=> .#method(#label &#operand))
}

/// `tokens` of the expression, in parentheses unless it binds tighter than `&`.
pub(super) fn operand(expr: &Expr, tokens: TokenStream) -> TokenStream {
    let tight = matches!(
        expr,
        Expr::Path(_)
            | Expr::Field(_)
            | Expr::Index(_)
            | Expr::Call(_)
            | Expr::MethodCall(_)
            | Expr::Lit(_)
            | Expr::Paren(_)
            | Expr::Macro(_)
            | Expr::Tuple(_)
            | Expr::Array(_)
    );
    if tight {
        return tokens;
    }
    let span = syntax::at(expr.span());
    quote_spanned!(span=> (#tokens))
}

fn ttl(plan: &Plan) -> TokenStream {
    let span = Span::mixed_site();
    let private = private(span);
    match &plan.call.ttl {
        TtlArg::Micros(micros) => {
            let micros = Literal::u64_suffixed(*micros);
            quote_spanned!(span=> .ttl(#private::Ttl::from_micros(#micros)))
        }
        TtlArg::Forever => quote_spanned!(span=> .ttl(#private::Ttl::Forever)),
        TtlArg::Expr(expr) => {
            let span = syntax::at(expr.span());
            quote_spanned!(span=> .ttl(#expr))
        }
    }
}

fn site(plan: &Plan) -> TokenStream {
    let span = Span::mixed_site();
    let private = private(span);
    let site = &plan.site;
    let name = match &site.name {
        Some(name) => quote_spanned!(span=> Given(#name)),
        None => quote_spanned!(span=> Derived),
    };
    let function = &site.function;
    let on_in_progress = match site.on_in_progress {
        OnInProgress::Reject => quote_spanned!(span=> Reject),
        OnInProgress::WaitMicros(micros) => {
            let wait = duration(micros);
            quote_spanned!(span=> Wait(#wait))
        }
    };
    let on_unknown = match site.on_unknown {
        OnUnknownKind::Refuse => quote_spanned!(span=> Refuse),
        OnUnknownKind::Rerun => quote_spanned!(span=> Rerun),
        OnUnknownKind::Recover => quote_spanned!(span=> Recover),
    };
    let on_missing_key = match site.on_missing_key {
        OnMissingKey::Error => quote_spanned!(span=> Error),
        OnMissingKey::Run => quote_spanned!(span=> Run),
    };
    let lease = optional_duration(site.lease_us);
    let max_run = optional_duration(site.max_run_us);
    quote_spanned! {span=>
        #private::Site {
            name: #private::Name::#name,
            module: ::core::module_path!(),
            function: #function,
            file: ::core::file!(),
            line: ::core::line!(),
            column: ::core::column!(),
            on_in_progress: #private::OnInProgress::#on_in_progress,
            on_unknown: #private::OnUnknown::#on_unknown,
            on_missing_key: #private::OnMissingKey::#on_missing_key,
            lease: #lease,
            max_run: #max_run,
        }
    }
}

fn duration(micros: u64) -> TokenStream {
    let micros = Literal::u64_suffixed(micros);
    quote_spanned!(Span::mixed_site()=> ::core::time::Duration::from_micros(#micros))
}

fn optional_duration(micros: Option<u64>) -> TokenStream {
    let span = Span::mixed_site();
    match micros.map(duration) {
        Some(duration) => quote_spanned!(span=> ::core::option::Option::Some(#duration)),
        None => quote_spanned!(span=> ::core::option::Option::None),
    }
}
