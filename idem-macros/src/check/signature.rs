//! Rules about the function itself: its keywords, how it is asynchronous, and
//! what it returns.

use proc_macro2::Span;
use quote::ToTokens as _;
use syn::spanned::Spanned as _;
use syn::visit::Visit;
use syn::{ReturnType, Safety, Type};

use super::borrows;
use crate::diagnostics::Diagnostics;
use crate::input::FnInput;
use crate::plan::Shape;
use crate::shape::{self, Output, Recognised};
use crate::syntax;

/// Applies the rules; finds out how the function is asynchronous and what
/// its future gives.
pub(crate) fn check(function: &FnInput, diagnostics: &mut Diagnostics) -> Option<(Shape, Type)> {
    applied_once(function, diagnostics);
    keywords(function, diagnostics);
    let (shape, answer) = asynchronous(function, diagnostics)?;
    let answer = answer_type(function, answer, diagnostics)?;
    Some((shape, answer))
}

fn applied_once(function: &FnInput, diagnostics: &mut Diagnostics) {
    for attr in &function.attrs {
        if syntax::names_own_attribute(attr.meta.to_token_stream()) {
            diagnostics.report(
                attr.path().span(),
                "`#[idempotent]` is applied twice; remove one of them",
            );
        }
    }
}

fn keywords(function: &FnInput, diagnostics: &mut Diagnostics) {
    let sig = &function.sig;
    if let Some(token) = &sig.constness {
        diagnostics.report(token.span, "`#[idempotent]` cannot be used on a `const fn`");
    }
    if let Safety::Unsafe(token) = &sig.safety {
        diagnostics.report(
            token.span,
            "an `unsafe fn` may not be replayed, because its contract would not be checked; \
             annotate a safe function around it",
        );
    }
    if let Some(abi) = &sig.abi {
        diagnostics.report(
            abi.extern_token.span,
            "`#[idempotent]` cannot be used on an `extern` function",
        );
    }
    if let Some(variadic) = &sig.variadic {
        diagnostics.report(
            variadic.dots.span(),
            "`#[idempotent]` cannot be used on a variadic function",
        );
    }
}

/// The shape, and the type of the answer, if one is written.
fn asynchronous(
    function: &FnInput,
    diagnostics: &mut Diagnostics,
) -> Option<(Shape, Option<Output>)> {
    let sig = &function.sig;
    if sig.asyncness.is_some() {
        let answer = match &sig.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some(Output::Written((**ty).clone())),
        };
        return Some((Shape::AsyncFn, answer));
    }
    if sig.constness.is_some() {
        return None;
    }
    match shape::recognise(function) {
        Recognised::Block(found) => {
            let (block, answer) = *found;
            Some((Shape::AsyncBlock(block), Some(answer)))
        }
        Recognised::Early(span) => {
            diagnostics.report(
                span,
                "statements here would run before the call is reserved; move them into the `async` \
                 block, which must be the whole body",
            );
            None
        }
        Recognised::No => {
            let message = if syntax::find_ident(function.body.clone(), &|ident| ident == "block_on")
                .is_some()
            {
                "`#[idempotent]` needs an `async fn`: an attribute above it, such as \
                 `#[tokio::test]`, has taken the `async` away; put `#[idempotent]` above that one"
            } else {
                "`#[idempotent]` needs an `async fn`"
            };
            diagnostics.report(sig.fn_token.span, message);
            None
        }
    }
}

fn answer_type(
    function: &FnInput,
    answer: Option<Output>,
    diagnostics: &mut Diagnostics,
) -> Option<Type> {
    let answer = match answer {
        Some(Output::Written(answer)) => answer,
        // What an alias stands for is the compiler's to judge.
        Some(Output::Projected(answer)) => return Some(answer),
        None => {
            diagnostics.report(
                function.sig.ident.span(),
                "an `#[idempotent]` function returns `Result<T, E>`, so that an error of the engine \
                 has somewhere to go: add `-> Result<(), Error>`",
            );
            return None;
        }
    };
    if let Type::Never(never) = &answer {
        diagnostics.report(
            never.span(),
            "a function that never returns cannot be idempotent: there is no answer to record; \
             return `Result<T, E>`",
        );
        return None;
    }
    if let Some(span) = find_impl_trait(&answer) {
        diagnostics.report(
            span,
            "name the return type: an `impl Trait` answer cannot be read back from the store",
        );
        return None;
    }
    if let Some(span) = borrows::find_borrow(&answer) {
        diagnostics.report(
            span,
            "the answer is recorded and replayed, so it must be owned: return a `String` instead of \
             a `&str`, for example",
        );
        return None;
    }
    Some(answer)
}

fn find_impl_trait(ty: &Type) -> Option<Span> {
    struct Finder(Option<Span>);
    impl<'ast> Visit<'ast> for Finder {
        fn visit_type_impl_trait(&mut self, found: &'ast syn::TypeImplTrait) {
            self.0 = self.0.or(Some(found.impl_token.span));
        }
    }
    let mut finder = Finder(None);
    finder.visit_type(ty);
    finder.0
}
