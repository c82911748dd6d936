//! The rules across parameters and signature: `Args` and `FnInput` become a
//! `Plan`, or every broken rule is reported. One small function a rule.

mod arguments;
mod bindings;
mod borrows;
mod boxed;
mod clones;
mod expressions;
mod parameters;
mod receiver;
mod recursion;
mod signature;
mod transaction;

use syn::ext::IdentExt as _;
use syn::{Ident, Signature};

use crate::args::Args;
use crate::args::choice::{OnCancel, OnError, OnInProgress, OnMissingKey, OnUnknown};
use crate::args::keyword::Keyword;
use crate::diagnostics::Diagnostics;
use crate::input::FnInput;
use crate::plan::{Call, Driver, OnUnknownKind, Plan, Site};
use crate::runtime_path;

/// `on_in_progress = wait("30s")`.
const DEFAULT_WAIT_US: u64 = 30_000_000;

/// What several rules need to know.
struct Context {
    driver: Driver,
    clones: Vec<Ident>,
    /// The parameter that `tx` names; all that it may mean, if it names none.
    tx: Vec<Ident>,
}

/// Applies every rule. `None` only if something was reported.
pub(crate) fn check(
    args: Args,
    mut function: FnInput,
    diagnostics: &mut Diagnostics,
) -> Option<Plan> {
    let context = context(&args, &function);
    arguments::check(&args, &function, diagnostics);
    expressions::check(&args, &function, diagnostics);
    transaction::check(&args, &function, diagnostics);
    recursion::check(&context, &function, diagnostics);
    let shape = signature::check(&function, diagnostics);
    boxed::check(&args, &function, shape.as_ref(), diagnostics);
    let params = parameters::plan(&args, &context, &mut function, diagnostics);

    let (shape, answer) = shape?;
    let value = |keyword: Keyword| args.attempted(keyword);
    if !value(Keyword::Key) || !value(Keyword::Ttl) {
        return None;
    }
    let site = site(&args, &function.sig);
    let recover = match args.on_unknown.map(|arg| arg.value) {
        Some(OnUnknown::Recover(expr)) => Some(*expr),
        _ => None,
    };
    Some(Plan {
        shape,
        answer,
        site,
        recover,
        runtime: runtime_path::resolve(args.runtime.map(|arg| arg.value)),
        call: Call {
            engine: args.engine.map(|arg| arg.value),
            ttl: args.ttl?.value,
            scope: args.scope.map(|arg| arg.value),
            key: args.key?.value,
            payload: args.payload.map(|arg| arg.value),
            version: args.version.map(|arg| arg.value),
            on_stale: args.on_stale.map(|arg| arg.value),
            label: args.label.map(|arg| arg.value),
        },
        on_error: match args.on_error {
            Some(arg) => arg.value,
            // The caller's rollback, or the savepoint, undoes it.
            None if args.tx.is_some() => OnError::Unknown,
            None => OnError::Store,
        },
        map_err: args.map_err.map(|arg| arg.value),
        codec: args.codec.map(|arg| arg.value),
        driver: context.driver,
        within: args.tx.map(|arg| arg.value),
        params,
        function,
    })
}

fn context(args: &Args, function: &FnInput) -> Context {
    let abandon = args
        .on_cancel
        .as_ref()
        .is_some_and(|arg| arg.value == OnCancel::Abandon);
    Context {
        driver: if args.attempted(Keyword::Tx) {
            Driver::Within
        } else if abandon {
            Driver::InPlace
        } else {
            Driver::Detached
        },
        tx: transaction::connections(args, function),
        clones: args
            .clone
            .as_ref()
            .map_or_else(Vec::new, |arg| arg.value.clone()),
    }
}

fn site(args: &Args, sig: &Signature) -> Site {
    Site {
        name: args.name.as_ref().map(|arg| arg.value.clone()),
        function: sig.ident.unraw().to_string(),
        on_in_progress: args
            .on_in_progress
            .as_ref()
            .map_or(OnInProgress::WaitMicros(DEFAULT_WAIT_US), |arg| arg.value),
        on_unknown: match args.on_unknown.as_ref().map(|arg| &arg.value) {
            None | Some(OnUnknown::Refuse) => OnUnknownKind::Refuse,
            Some(OnUnknown::Rerun) => OnUnknownKind::Rerun,
            Some(OnUnknown::Recover(_)) => OnUnknownKind::Recover,
        },
        on_missing_key: args
            .on_missing_key
            .as_ref()
            .map_or(OnMissingKey::Error, |arg| arg.value),
        lease_us: args.lease.as_ref().map(|arg| arg.value),
        max_run_us: args.max_run.as_ref().map(|arg| arg.value),
    }
}
