//! Where the runtime is: `crate = path`, a dependency that was renamed in the
//! user's manifest, or `::idem`.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote};
use syn::{Ident, Path};

use crate::syntax;

/// The package's name on the registry, as a crate; its library is named `idem`.
const UNRENAMED: &str = "idem_runtime";

pub(crate) fn resolve(written: Option<Path>) -> TokenStream {
    if let Some(path) = written {
        return path.to_token_stream();
    }
    let name = match crate_name("idem-runtime") {
        Ok(FoundCrate::Name(name)) if name != UNRENAMED => name,
        Ok(FoundCrate::Name(_) | FoundCrate::Itself) | Err(_) => "idem".to_owned(),
    };
    let name = Ident::new(&name, Span::mixed_site());
    let path = quote!(::#name);
    syntax::respan(path, Span::call_site())
}
