//! The grammar of the parameters that choose a word: `on_error = store`,
//! `on_unknown = recover(expr)`.

use proc_macro2::{Ident, Span, TokenStream};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Error, Expr, LitStr, Path, Token, parenthesized, token};

use super::keyword::{Keyword, closest};
use super::ttl;

#[derive(Debug, Clone, Copy)]
pub(crate) enum OnInProgress {
    WaitMicros(u64),
    Reject,
}

#[derive(Debug, Clone)]
pub(crate) enum OnError {
    Store,
    StoreText,
    Unknown,
    Release,
    Classify(Path),
    ClassifyText(Path),
}

#[derive(Debug, Clone)]
pub(crate) enum OnUnknown {
    Refuse,
    Rerun,
    Recover(Box<Expr>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnCancel {
    Finish,
    Abandon,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnMissingKey {
    Error,
    Run,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnStale {
    Error,
    Replay,
}

/// A word, and what stands in parentheses behind it.
struct Choice {
    word: Ident,
    inner: Option<(Span, TokenStream)>,
}

impl Choice {
    fn parse(keyword: Keyword, input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(LitStr) {
            let text: LitStr = input.parse()?;
            let message = format!(
                "write the choice without quotes: `{} = {}`",
                keyword.word(),
                text.value()
            );
            return Err(Error::new(text.span(), message));
        }
        if !input.peek(Ident::peek_any) {
            let message = format!(
                "`{}` takes a word, such as `{}`",
                keyword.word(),
                keyword.example()
            );
            return Err(Error::new(input.span(), message));
        }
        let word = input.call(Ident::parse_any)?;
        let inner = if input.peek(token::Paren) {
            let content;
            let paren = parenthesized!(content in input);
            Some((paren.span.join(), content.parse()?))
        } else {
            None
        };
        Ok(Self { word, inner })
    }

    /// Refuses parentheses behind a word that takes none.
    fn bare<T>(self, value: T) -> syn::Result<T> {
        match self.inner {
            None => Ok(value),
            Some((span, _)) => {
                let message = format!("`{}` takes nothing in parentheses", self.word);
                Err(Error::new(span, message))
            }
        }
    }

    /// The tokens in parentheses behind a word that needs some.
    fn inner(self, form: &str) -> syn::Result<TokenStream> {
        match self.inner {
            Some((_, inner)) if !inner.is_empty() => Ok(inner),
            _ => {
                let message = format!("`{}` needs parentheses: write `{form}`", self.word);
                Err(Error::new(self.word.span(), message))
            }
        }
    }

    /// The error for a word that is no choice of `keyword`.
    fn unknown<T>(
        &self,
        keyword: Keyword,
        choices: &[&str],
        guesses: &[(&str, &str)],
    ) -> syn::Result<T> {
        let word = self.word.to_string();
        let name = keyword.word();
        let bare = choices.iter().map(|choice| {
            let end = choice.find('(').unwrap_or(choice.len());
            &choice[..end]
        });
        let guess = guesses
            .iter()
            .find(|(guess, _)| *guess == word)
            .map(|(_, meant)| *meant)
            .or_else(|| closest(&word, bare));
        let message = match guess {
            Some(meant) => format!("`{name}` knows no `{word}`; did you mean `{meant}`?"),
            None => format!(
                "`{name}` knows no `{word}`; the choices are `{}`",
                choices.join("`, `")
            ),
        };
        Err(Error::new(self.word.span(), message))
    }
}

pub(crate) fn on_in_progress(input: ParseStream<'_>) -> syn::Result<OnInProgress> {
    let choice = Choice::parse(Keyword::OnInProgress, input)?;
    match choice.word.to_string().as_str() {
        "reject" => choice.bare(OnInProgress::Reject),
        "wait" => {
            let text = choice.inner("wait(\"30s\")")?;
            let parse = |input: ParseStream<'_>| ttl::parse_text("wait", input);
            parse.parse2(text).map(OnInProgress::WaitMicros)
        }
        _ => choice.unknown(
            Keyword::OnInProgress,
            &["wait(\"30s\")", "reject"],
            &[
                ("refuse", "reject"),
                ("error", "reject"),
                ("block", "wait(\"30s\")"),
            ],
        ),
    }
}

pub(crate) fn on_error(input: ParseStream<'_>) -> syn::Result<OnError> {
    let choice = Choice::parse(Keyword::OnError, input)?;
    match choice.word.to_string().as_str() {
        "store" => choice.bare(OnError::Store),
        "store_text" => choice.bare(OnError::StoreText),
        "unknown" => choice.bare(OnError::Unknown),
        "release" => choice.bare(OnError::Release),
        "classify" => classify.parse2(choice.inner("classify(path::to::function)")?),
        _ => choice.unknown(
            Keyword::OnError,
            &[
                "store",
                "store_text",
                "unknown",
                "release",
                "classify(path)",
            ],
            &[
                ("text", "store_text"),
                ("record", "store"),
                ("retry", "release"),
            ],
        ),
    }
}

fn classify(input: ParseStream<'_>) -> syn::Result<OnError> {
    let path: Path = input.parse().map_err(|error| {
        Error::new(
            error.span(),
            "`classify` takes the path of a function, `fn(&E) -> Disposition`",
        )
    })?;
    if input.is_empty() {
        return Ok(OnError::Classify(path));
    }
    let wrong = |span| {
        Error::new(
            span,
            "the form is `classify(path)` or `classify(path, store_text)`",
        )
    };
    input
        .parse::<Token![,]>()
        .map_err(|error| wrong(error.span()))?;
    if input.is_empty() {
        return Ok(OnError::Classify(path));
    }
    let word = input
        .call(Ident::parse_any)
        .map_err(|error| wrong(error.span()))?;
    let _: Option<Token![,]> = input.parse()?;
    match word.to_string().as_str() {
        "store_text" if input.is_empty() => Ok(OnError::ClassifyText(path)),
        "store" if input.is_empty() => Ok(OnError::Classify(path)),
        _ => Err(wrong(word.span())),
    }
}

pub(crate) fn on_unknown(input: ParseStream<'_>) -> syn::Result<OnUnknown> {
    let choice = Choice::parse(Keyword::OnUnknown, input)?;
    match choice.word.to_string().as_str() {
        "refuse" => choice.bare(OnUnknown::Refuse),
        "rerun" => choice.bare(OnUnknown::Rerun),
        "recover" => {
            let inner = choice.inner("recover(gateway.find(&order_id))")?;
            syn::parse2(inner).map(|expr| OnUnknown::Recover(Box::new(expr)))
        }
        _ => choice.unknown(
            Keyword::OnUnknown,
            &["refuse", "rerun", "recover(expr)"],
            &[
                ("reject", "refuse"),
                ("error", "refuse"),
                ("retry", "rerun"),
                ("reexecute", "rerun"),
                ("run", "rerun"),
                ("reconcile", "recover(expr)"),
            ],
        ),
    }
}

pub(crate) fn on_cancel(input: ParseStream<'_>) -> syn::Result<OnCancel> {
    let choice = Choice::parse(Keyword::OnCancel, input)?;
    match choice.word.to_string().as_str() {
        "finish" => choice.bare(OnCancel::Finish),
        "abandon" => choice.bare(OnCancel::Abandon),
        _ => choice.unknown(
            Keyword::OnCancel,
            &["finish", "abandon"],
            &[
                ("detach", "finish"),
                ("spawn", "finish"),
                ("cancel", "abandon"),
                ("abort", "abandon"),
            ],
        ),
    }
}

pub(crate) fn on_missing_key(input: ParseStream<'_>) -> syn::Result<OnMissingKey> {
    let choice = Choice::parse(Keyword::OnMissingKey, input)?;
    match choice.word.to_string().as_str() {
        "error" => choice.bare(OnMissingKey::Error),
        "run" => choice.bare(OnMissingKey::Run),
        _ => choice.unknown(
            Keyword::OnMissingKey,
            &["error", "run"],
            &[
                ("refuse", "error"),
                ("reject", "error"),
                ("skip", "run"),
                ("ignore", "run"),
            ],
        ),
    }
}

pub(crate) fn on_stale(input: ParseStream<'_>) -> syn::Result<OnStale> {
    let choice = Choice::parse(Keyword::OnStale, input)?;
    match choice.word.to_string().as_str() {
        "error" => choice.bare(OnStale::Error),
        "replay" => choice.bare(OnStale::Replay),
        _ => choice.unknown(
            Keyword::OnStale,
            &["error", "replay"],
            &[
                ("refuse", "error"),
                ("reject", "error"),
                ("skip", "replay"),
                ("ignore", "replay"),
                ("newest", "replay"),
            ],
        ),
    }
}
