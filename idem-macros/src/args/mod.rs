//! The parameters as they were written: each with its own span, each at most
//! once. Whether they fit together is not asked here.

pub(crate) mod choice;
pub(crate) mod key;
pub(crate) mod keyword;
pub(crate) mod ttl;
pub(crate) mod tx;

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, LitStr, Path, Token, parenthesized, token};

use crate::diagnostics::Diagnostics;
use choice::{OnCancel, OnError, OnInProgress, OnMissingKey, OnStale, OnUnknown};
use key::Selection;
use keyword::Keyword;
use ttl::TtlArg;
use tx::Tx;

/// A value, with the word that introduced it.
#[derive(Debug, Clone)]
pub(crate) struct Arg<T> {
    pub(crate) word: Ident,
    pub(crate) value: T,
}

/// Everything written in `#[idempotent(..)]`.
#[derive(Debug, Default)]
pub(crate) struct Args {
    pub(crate) key: Option<Arg<Selection>>,
    pub(crate) ttl: Option<Arg<TtlArg>>,
    pub(crate) name: Option<Arg<LitStr>>,
    pub(crate) scope: Option<Arg<Expr>>,
    pub(crate) payload: Option<Arg<Selection>>,
    pub(crate) version: Option<Arg<Expr>>,
    pub(crate) label: Option<Arg<Expr>>,
    pub(crate) engine: Option<Arg<Expr>>,
    pub(crate) on_in_progress: Option<Arg<OnInProgress>>,
    pub(crate) on_error: Option<Arg<OnError>>,
    pub(crate) on_unknown: Option<Arg<OnUnknown>>,
    pub(crate) on_cancel: Option<Arg<OnCancel>>,
    pub(crate) on_missing_key: Option<Arg<OnMissingKey>>,
    pub(crate) on_stale: Option<Arg<OnStale>>,
    pub(crate) clone: Option<Arg<Vec<Ident>>>,
    pub(crate) map_err: Option<Arg<Path>>,
    pub(crate) codec: Option<Arg<Path>>,
    pub(crate) lease: Option<Arg<u64>>,
    pub(crate) max_run: Option<Arg<u64>>,
    pub(crate) tx: Option<Arg<Tx>>,
    pub(crate) runtime: Option<Arg<Path>>,
    /// All tokens of the attribute.
    pub(crate) tokens: TokenStream,
    /// Parameters that were written, well or badly.
    seen: Vec<Keyword>,
    /// Parameters that a wrong word probably meant.
    guessed: Vec<Keyword>,
}

impl Args {
    /// Reads every parameter, and goes on after a mistake.
    pub(crate) fn parse(tokens: TokenStream, diagnostics: &mut Diagnostics) -> Self {
        let mut args = Self {
            tokens: tokens.clone(),
            ..Self::default()
        };
        let parsed = (|input: ParseStream<'_>| {
            while !input.is_empty() {
                let argument = args.argument(input);
                if diagnostics.keep(argument).is_none() {
                    skip_argument(input);
                }
                diagnostics.keep(separator(input));
            }
            Ok(())
        })
        .parse2(tokens);
        diagnostics.keep(parsed);
        args
    }

    /// Says whether the user tried to give this parameter, so that "missing"
    /// would be a second error for one mistake.
    pub(crate) fn attempted(&self, keyword: Keyword) -> bool {
        self.seen.contains(&keyword) || self.guessed.contains(&keyword)
    }

    /// The expressions that are evaluated before anything is reserved.
    pub(crate) fn before_the_call(&self) -> Vec<(Keyword, TokenStream)> {
        let mut found = Vec::new();
        for (keyword, arg) in [(Keyword::Key, &self.key), (Keyword::Payload, &self.payload)] {
            for expr in arg.iter().flat_map(|arg| arg.value.exprs()) {
                found.push((keyword, expr.to_token_stream()));
            }
        }
        for (keyword, arg) in [
            (Keyword::Scope, &self.scope),
            (Keyword::Version, &self.version),
            (Keyword::Label, &self.label),
            (Keyword::Engine, &self.engine),
        ] {
            found.extend(arg.iter().map(|arg| (keyword, arg.value.to_token_stream())));
        }
        if let Some(Arg {
            value: TtlArg::Expr(expr),
            ..
        }) = &self.ttl
        {
            found.push((Keyword::Ttl, expr.to_token_stream()));
        }
        found
    }

    /// The expression in `recover(..)`.
    pub(crate) fn probe(&self) -> Option<&Expr> {
        match &self.on_unknown.as_ref()?.value {
            OnUnknown::Recover(expr) => Some(expr),
            OnUnknown::Refuse | OnUnknown::Rerun => None,
        }
    }

    fn argument(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        if !input.peek(Ident::peek_any) {
            return Err(Error::new(
                input.span(),
                "expected a parameter, such as `key = order_id`",
            ));
        }
        let word = input.call(Ident::parse_any)?;
        let Some(keyword) = Keyword::find(&word.to_string()) else {
            let (meant, error) = keyword::unknown(&word);
            self.guessed.extend(meant);
            return Err(error);
        };
        if self.seen.contains(&keyword) {
            let message = format!("`{word}` is given twice; keep one of them");
            return Err(Error::new(word.span(), message));
        }
        self.seen.push(keyword);
        if !input.peek(Token![=]) || input.peek(Token![==]) {
            let message = format!("`{word}` needs a value: write `{}`", keyword.example());
            return Err(Error::new(word.span(), message));
        }
        input.parse::<Token![=]>()?;
        if input.is_empty() || input.peek(Token![,]) {
            let message = format!("`{word}` needs a value: write `{}`", keyword.example());
            return Err(Error::new(word.span(), message));
        }
        self.value(keyword, word, input)
    }

    fn value(&mut self, keyword: Keyword, word: Ident, input: ParseStream<'_>) -> syn::Result<()> {
        macro_rules! set {
            ($field:ident = $value:expr) => {{
                let value = $value;
                self.$field = Some(Arg { word, value });
            }};
        }
        match keyword {
            Keyword::Key => set!(key = Selection::new(input.parse()?)),
            Keyword::Ttl => set!(ttl = ttl::parse(input)?),
            Keyword::Name => set!(name = text(keyword, input)?),
            Keyword::Scope => set!(scope = input.parse()?),
            Keyword::Payload => set!(payload = Selection::new(input.parse()?)),
            Keyword::Version => set!(version = input.parse()?),
            Keyword::Label => set!(label = input.parse()?),
            Keyword::Engine => set!(engine = input.parse()?),
            Keyword::OnInProgress => set!(on_in_progress = choice::on_in_progress(input)?),
            Keyword::OnError => set!(on_error = choice::on_error(input)?),
            Keyword::OnUnknown => set!(on_unknown = choice::on_unknown(input)?),
            Keyword::OnCancel => set!(on_cancel = choice::on_cancel(input)?),
            Keyword::OnMissingKey => set!(on_missing_key = choice::on_missing_key(input)?),
            Keyword::OnStale => set!(on_stale = choice::on_stale(input)?),
            Keyword::Clone => set!(clone = clone_list(input)?),
            Keyword::MapErr => set!(map_err = path(keyword, input)?),
            Keyword::Codec => set!(codec = path(keyword, input)?),
            Keyword::Lease => set!(lease = ttl::parse_text("lease", input)?),
            Keyword::MaxRun => set!(max_run = ttl::parse_text("max_run", input)?),
            Keyword::Tx => set!(tx = tx::parse(input)?),
            Keyword::Crate => set!(runtime = path(keyword, input)?),
        }
        Ok(())
    }
}

fn text(keyword: Keyword, input: ParseStream<'_>) -> syn::Result<LitStr> {
    if input.peek(LitStr) {
        return input.parse();
    }
    let message = format!(
        "`{}` takes a text in quotes: write `{}`",
        keyword.word(),
        keyword.example()
    );
    Err(Error::new(input.span(), message))
}

fn path(keyword: Keyword, input: ParseStream<'_>) -> syn::Result<Path> {
    let start = input.span();
    let wrong = |span| {
        let message = format!(
            "`{}` takes a path without quotes, such as `{}`",
            keyword.word(),
            keyword.example()
        );
        Error::new(span, message)
    };
    let path: Path = input.parse().map_err(|_| wrong(start))?;
    if input.is_empty() || input.peek(Token![,]) {
        Ok(path)
    } else {
        Err(wrong(start))
    }
}

/// `self`, a parameter's name, or a tuple of them.
fn clone_list(input: ParseStream<'_>) -> syn::Result<Vec<Ident>> {
    let name = |input: ParseStream<'_>| {
        if input.peek(Token![self]) || input.peek(syn::Ident) {
            return input.call(Ident::parse_any);
        }
        Err(Error::new(
            input.span(),
            "`clone` takes `self` or names of parameters: write `clone = (self, request)`",
        ))
    };
    if !input.peek(token::Paren) {
        return Ok(vec![name(input)?]);
    }
    let content;
    parenthesized!(content in input);
    let names = Punctuated::<Ident, Token![,]>::parse_terminated_with(&content, name)?;
    Ok(names.into_iter().collect())
}

/// The comma after a parameter, which may be missing after the last one.
fn separator(input: ParseStream<'_>) -> syn::Result<()> {
    if input.is_empty() || input.parse::<Option<Token![,]>>()?.is_some() {
        return Ok(());
    }
    let span = input.span();
    let message = if starts_argument(input) {
        "expected a `,` before this parameter"
    } else {
        skip_argument(input);
        input.parse::<Option<Token![,]>>()?;
        "expected a `,` after the value"
    };
    Err(Error::new(span, message))
}

/// Goes to the comma before the next parameter.
fn skip_argument(input: ParseStream<'_>) {
    while !input.is_empty() {
        if input.peek(Token![,]) {
            let ahead = input.fork();
            if ahead.parse::<Token![,]>().is_ok() && (ahead.is_empty() || starts_argument(&ahead)) {
                return;
            }
        }
        if input.parse::<TokenTree>().is_err() {
            return;
        }
    }
}

fn starts_argument(input: ParseStream<'_>) -> bool {
    input.peek(Ident::peek_any) && input.peek2(Token![=]) && !input.peek2(Token![==])
}
