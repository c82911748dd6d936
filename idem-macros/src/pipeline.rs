//! The four passes in order: parse, check, plan, generate. The only place that
//! turns mistakes into output.

use proc_macro2::TokenStream;

use crate::args::Args;
use crate::diagnostics::Diagnostics;
use crate::input::FnInput;
use crate::{check, fallback, generate};

/// Expands `#[idempotent(attr)] item`.
pub(crate) fn expand(attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut diagnostics = Diagnostics::default();
    let plan = diagnostics
        .keep(FnInput::parse(item.clone()))
        .and_then(|input| {
            let args = Args::parse(attr, &mut diagnostics);
            check::check(args, input, &mut diagnostics)
        });
    match diagnostics.finish(plan) {
        Ok(plan) => generate::generate(&plan),
        Err(errors) => fallback::fallback(item, &errors),
    }
}
