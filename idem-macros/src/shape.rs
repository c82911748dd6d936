//! Recognises functions that are asynchronous without the keyword: what
//! `#[async_trait]` leaves behind, and `fn` returning a future.
//!
//! ```text
//! fn charge<'a>(&'a self) -> Pin<Box<dyn Future<Output = R> + Send + 'a>> { Box::pin(async move { .. }) }
//! fn charge(id: Id) -> impl Future<Output = R> + Send { async move { .. } }
//! fn charge(id: Id) -> BoxFuture<'static, R> { async move { .. }.boxed() }
//! ```

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote_spanned};
use syn::spanned::Spanned as _;
use syn::visit::Visit;
use syn::{AssocType, ReturnType, Type};

use crate::input::FnInput;
use crate::plan::{Around, AsyncBlock};
use crate::syntax::{self, is_ident, is_punct};

pub(crate) enum Recognised {
    /// The whole body is one `async` block, whose output has this type.
    Block(Box<(AsyncBlock, Output)>),
    /// A future is returned, but something here runs when it is made.
    Early(Span),
    /// No future is returned.
    No,
}

/// What the future gives.
pub(crate) enum Output {
    /// The `R` of `Output = R`.
    Written(Type),
    /// `<Alias as Future>::Output`: only the compiler sees through an alias.
    Projected(Type),
}

pub(crate) fn recognise(function: &FnInput) -> Recognised {
    let ReturnType::Type(_, ty) = &function.sig.output else {
        return Recognised::No;
    };
    let block = whole_block(function.body.clone());
    match (written_output(ty), block) {
        (Some(answer), Some(block)) => {
            Recognised::Block(Box::new((block, Output::Written(answer))))
        }
        (None, Some(block)) if !matches!(block.around, Around::Nothing) => {
            Recognised::Block(Box::new((block, Output::Projected(projected(ty)))))
        }
        (None, _) if !is_future_by_name(ty) => Recognised::No,
        _ => Recognised::Early(
            function
                .body
                .clone()
                .into_iter()
                .next()
                .map_or_else(|| function.brace.span.join(), |token| token.span()),
        ),
    }
}

/// The `R` of `Output = R`, if the return type says that it is a future.
fn written_output(ty: &Type) -> Option<Type> {
    struct Finder(Option<Type>);
    impl<'ast> Visit<'ast> for Finder {
        fn visit_assoc_type(&mut self, found: &'ast AssocType) {
            if found.ident == "Output" && self.0.is_none() {
                self.0 = Some(found.ty.clone());
            }
        }
    }
    if !syntax::find_word_outside_groups(ty.to_token_stream(), "Future") {
        return None;
    }
    let mut finder = Finder(None);
    finder.visit_type(ty);
    finder.0
}

fn projected(ty: &Type) -> Type {
    let span = syntax::at(ty.span());
    Type::Verbatim(quote_spanned!(span=> <#ty as ::core::future::Future>::Output))
}

/// `BoxFuture<'_, R>`, `future::Boxed<R>` are futures; `Wrapper<Future>` is none.
fn is_future_by_name(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|segment| segment.ident.to_string().ends_with("Future")),
        Type::ImplTrait(_) => syntax::find_word_outside_groups(ty.to_token_stream(), "Future"),
        _ => false,
    }
}

/// `async move { .. }`, `some::path(async move { .. })` or
/// `async move { .. }.boxed()`, and nothing else.
fn whole_block(body: TokenStream) -> Option<AsyncBlock> {
    let mut tokens: Vec<TokenTree> = body.into_iter().collect();
    if let Some(block) = async_block(&tokens) {
        let around = Around::Nothing;
        return Some(AsyncBlock { around, block });
    }
    if let Some(block) = with_method(&tokens) {
        return Some(block);
    }
    let Some(TokenTree::Group(group)) = tokens.pop() else {
        return None;
    };
    let path_only = !tokens.is_empty()
        && tokens.iter().all(|token| {
            is_punct(token, ':')
                || is_punct(token, '<')
                || is_punct(token, '>')
                || matches!(token, TokenTree::Ident(_))
        });
    let ends_in_pin = tokens.last().is_some_and(|token| is_ident(token, "pin"));
    if group.delimiter() != Delimiter::Parenthesis || !path_only || !ends_in_pin {
        return None;
    }
    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
    let block = async_block(&inner)?;
    let around = Around::Call(tokens.into_iter().collect());
    Some(AsyncBlock { around, block })
}

/// `async move { .. }.boxed()` and `.boxed_local()` of the futures crates.
fn with_method(tokens: &[TokenTree]) -> Option<AsyncBlock> {
    let [block @ .., dot, method, TokenTree::Group(arguments)] = tokens else {
        return None;
    };
    let boxes = is_ident(method, "boxed") || is_ident(method, "boxed_local");
    if !boxes || !is_punct(dot, '.') || !arguments.stream().is_empty() {
        return None;
    }
    let around = tokens[block.len()..].iter().cloned().collect();
    Some(AsyncBlock {
        around: Around::Method(around),
        block: async_block(block)?,
    })
}

fn async_block(tokens: &[TokenTree]) -> Option<Group> {
    let block = match tokens {
        [first, second, TokenTree::Group(block)]
            if is_ident(first, "async") && is_ident(second, "move") =>
        {
            block
        }
        [first, TokenTree::Group(block)] if is_ident(first, "async") => block,
        _ => return None,
    };
    (block.delimiter() == Delimiter::Brace).then(|| block.clone())
}
