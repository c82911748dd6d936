//! Rules about the parameters of the attribute: what is required, what
//! contradicts, which names are stable.

use proc_macro2::Span;
use syn::GenericParam;
use syn::visit::Visit;

use crate::args::Args;
use crate::args::choice::{OnCancel, OnMissingKey};
use crate::args::key::Selection;
use crate::args::keyword::Keyword;
use crate::diagnostics::Diagnostics;
use crate::input::FnInput;
use crate::syntax;

/// A lease must survive a hiccup of the network and of the scheduler.
const SHORTEST_LEASE_US: u64 = 100_000;

pub(crate) fn check(args: &Args, function: &FnInput, diagnostics: &mut Diagnostics) {
    required(args, diagnostics);
    name_text(args, diagnostics);
    name_required(args, function, diagnostics);
    lease(args, diagnostics);
    clone_needs_finish(args, diagnostics);
    missing_key_needs_option(args, diagnostics);
    stale_needs_version(args, diagnostics);
}

fn required(args: &Args, diagnostics: &mut Diagnostics) {
    let message = match (args.attempted(Keyword::Key), args.attempted(Keyword::Ttl)) {
        (true, true) => return,
        (false, false) => {
            "`key` and `ttl` are required: write `#[idempotent(key = order_id, ttl = \"24h\")]`, with \
             what makes two calls the same intent"
        }
        (false, true) => {
            "`key` is required: write `key = order_id`, with what makes two calls the same intent"
        }
        (true, false) => {
            "`ttl` is required: write `ttl = \"24h\"`, or how long a repeated call may arrive"
        }
    };
    diagnostics.report(Span::call_site(), message);
}

fn name_text(args: &Args, diagnostics: &mut Diagnostics) {
    let Some(name) = &args.name else { return };
    let text = name.value.value();
    let message = if text.is_empty() {
        "`name` is empty: write a stable name, such as `name = \"payments.charge\"`".to_owned()
    } else if let Some(wrong) = text.chars().find(|c| !c.is_ascii_graphic()) {
        format!("`name` holds {wrong:?}: only visible ASCII characters, no spaces, are allowed")
    } else if text.len() > 128 {
        format!(
            "`name` has {} characters; at most 128 are allowed",
            text.len()
        )
    } else {
        return;
    };
    diagnostics.report(name.value.span(), message);
}

/// A derived name is unique only for a free function that is not generic.
fn name_required(args: &Args, function: &FnInput, diagnostics: &mut Diagnostics) {
    if args.attempted(Keyword::Name) {
        return;
    }
    let sig = &function.sig;
    let generic = sig
        .generics
        .params
        .iter()
        .any(|param| matches!(param, GenericParam::Type(_) | GenericParam::Const(_)));
    let what = if sig.receiver().is_some() || mentions_self_type(args, function) {
        "method a stable `name`, such as `name = \"payments.charge\"`: methods of different types"
    } else if generic || has_impl_argument(function) {
        "generic function a stable `name`, such as `name = \"payments.charge\"`: its instances"
    } else {
        return;
    };
    let message = format!("give this {what} would otherwise share recorded answers");
    diagnostics.report(sig.ident.span(), message);
}

/// Without a receiver, only `Self` shows that a function is in an `impl` block.
fn mentions_self_type(args: &Args, function: &FnInput) -> bool {
    [
        args.tokens.clone(),
        function.signature_tokens(),
        function.body.clone(),
    ]
    .into_iter()
    .any(syntax::mentions_self_type)
}

fn has_impl_argument(function: &FnInput) -> bool {
    struct Finder(bool);
    impl<'ast> Visit<'ast> for Finder {
        fn visit_type_impl_trait(&mut self, _: &'ast syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut finder = Finder(false);
    for input in &function.sig.inputs {
        finder.visit_fn_arg(input);
    }
    finder.0
}

fn lease(args: &Args, diagnostics: &mut Diagnostics) {
    if let Some(lease) = &args.lease
        && lease.value < SHORTEST_LEASE_US
    {
        let message = "`lease` must be at least 100 ms: a shorter one lapses while its holder is \
                       alive; write `lease = \"30s\"`";
        diagnostics.report(lease.word.span(), message);
    }
}

fn clone_needs_finish(args: &Args, diagnostics: &mut Diagnostics) {
    if let (Some(clone), Some(cancel)) = (&args.clone, &args.on_cancel)
        && cancel.value == OnCancel::Abandon
    {
        let message = "`clone` and `on_cancel = abandon` contradict: under `abandon` the body borrows \
                       from its caller and needs no clone; remove one of them";
        diagnostics.report(clone.word.span(), message);
    }
}

fn missing_key_needs_option(args: &Args, diagnostics: &mut Diagnostics) {
    if let (Some(missing), Some(key)) = (&args.on_missing_key, &args.key)
        && missing.value == OnMissingKey::Run
        && let Selection::Parts(parts) = &key.value
        && !parts.is_empty()
    {
        let message = "`on_missing_key = run` is for a key that is one `Option`; a `None` in a tuple \
                       is always an error, so remove this or make the key one expression";
        diagnostics.report(missing.word.span(), message);
    }
}

fn stale_needs_version(args: &Args, diagnostics: &mut Diagnostics) {
    if let Some(stale) = &args.on_stale
        && !args.attempted(Keyword::Version)
    {
        let message = "`on_stale` needs a version that can be older than another: add `version = \
                       order.revision`, or remove this";
        diagnostics.report(stale.word.span(), message);
    }
}
