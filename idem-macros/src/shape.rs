//! Recognises functions that are asynchronous without the keyword: what
//! `#[async_trait]` leaves behind, and `fn` returning `impl Future`.
//!
//! ```text
//! fn charge<'a>(&'a self) -> Pin<Box<dyn Future<Output = R> + Send + 'a>> { Box::pin(async move { .. }) }
//! fn charge(id: Id) -> impl Future<Output = R> + Send { async move { .. } }
//! ```

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::visit::Visit;
use syn::{AssocType, ReturnType, Type};

use crate::input::FnInput;
use crate::plan::AsyncBlock;
use crate::syntax::{is_ident, is_punct};

pub(crate) enum Recognised {
    /// The whole body is one `async` block, whose output has this type.
    Block(Box<(AsyncBlock, Type)>),
    /// A future is returned, but something here runs when it is made.
    Early(Span),
    /// No future is returned.
    No,
}

pub(crate) fn recognise(function: &FnInput) -> Recognised {
    let Some(answer) = output_type(&function.sig.output) else {
        return Recognised::No;
    };
    match whole_block(function.body.clone()) {
        Some(block) => Recognised::Block(Box::new((block, answer))),
        None => Recognised::Early(
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
fn output_type(output: &ReturnType) -> Option<Type> {
    struct Finder(Option<Type>);
    impl<'ast> Visit<'ast> for Finder {
        fn visit_assoc_type(&mut self, found: &'ast AssocType) {
            if found.ident == "Output" && self.0.is_none() {
                self.0 = Some(found.ty.clone());
            }
        }
    }
    let ReturnType::Type(_, ty) = output else {
        return None;
    };
    let names_future = crate::syntax::find_word_outside_groups(ty.to_token_stream(), "Future");
    if !names_future {
        return None;
    }
    let mut finder = Finder(None);
    finder.visit_type(ty);
    finder.0
}

/// `async move { .. }`, or `some::path(async move { .. })`, and nothing else.
fn whole_block(body: TokenStream) -> Option<AsyncBlock> {
    let mut tokens: Vec<TokenTree> = body.into_iter().collect();
    if let Some(block) = async_block(&tokens) {
        return Some(AsyncBlock { boxed: None, block });
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
    Some(AsyncBlock {
        boxed: Some(tokens.into_iter().collect()),
        block,
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
