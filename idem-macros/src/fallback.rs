//! What is emitted when something is wrong: the function as it was written, so
//! that its callers still compile and only the real mistakes are shown.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::Error;

use crate::syntax;

/// The untouched item, followed by one `compile_error!` per mistake.
///
/// A second `#[idempotent]` is left out: it would report everything again.
pub(crate) fn fallback(item: TokenStream, errors: &[Error]) -> TokenStream {
    let errors = errors.iter().map(Error::to_compile_error);
    let item = without_own_attribute(item);
    // An argument that only the attribute uses is no second mistake.
    quote!(#[allow(unused_variables)] #item #(#errors)*)
}

fn without_own_attribute(item: TokenStream) -> TokenStream {
    let mut kept = TokenStream::new();
    let mut tokens = item.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if syntax::is_punct(&token, '#')
            && let Some(TokenTree::Group(group)) = tokens.peek()
            && group.delimiter() == Delimiter::Bracket
        {
            let own = syntax::names_own_attribute(group.stream());
            let group = tokens.next();
            if !own {
                token.to_tokens(&mut kept);
                group.to_tokens(&mut kept);
            }
            continue;
        }
        token.to_tokens(&mut kept);
    }
    kept
}
