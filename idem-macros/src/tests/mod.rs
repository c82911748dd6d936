//! What the attribute emits and says, without a compiler around it.

mod messages;
mod shapes;
mod snapshots;
mod soup;

use proc_macro2::{TokenStream, TokenTree};
use syn::LitStr;

use crate::pipeline::expand;

fn tokens(source: &str) -> TokenStream {
    source.parse().expect(source)
}

/// The messages of the errors in an expansion.
fn errors(attr: &str, item: &str) -> Vec<String> {
    let mut messages = Vec::new();
    collect(expand(tokens(attr), tokens(item)), &mut messages);
    messages
}

fn collect(expansion: TokenStream, messages: &mut Vec<String>) {
    let mut is_error = false;
    for token in expansion {
        match &token {
            TokenTree::Ident(ident) => is_error = ident == "compile_error",
            TokenTree::Group(group) if is_error => {
                let message: LitStr = syn::parse2(group.stream()).expect("a message");
                messages.push(message.value());
                is_error = false;
            }
            TokenTree::Group(group) => collect(group.stream(), messages),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}
