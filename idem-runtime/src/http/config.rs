//! What a layer was built with.

use std::borrow::Cow;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderName, Method, Response};

use super::body::Body;
use super::key::Grammar;
use super::policy::{HeaderList, StatusTable};
use super::problem::{PROBLEM_BASE, Problem};
use crate::engine::Engine;
use crate::engine::call::Call;
use crate::policy::{OnInProgress, OnUnknown, Ttl};
use crate::sync::Arc;

/// Adds a request's scope to its call; none if the request has no scope.
pub(super) type Scope = Arc<dyn Fn(&Parts, Call) -> Option<Call> + Send + Sync>;

/// Makes the response of a problem.
pub(super) type Show = Arc<dyn Fn(&Problem) -> Response<Body> + Send + Sync>;

pub(super) struct Config {
    pub(super) engine: Engine,
    pub(super) scope: Scope,
    pub(super) knobs: Knobs,
}

/// Everything but engine and scope.
pub(super) struct Knobs {
    pub(super) operation: Cow<'static, str>,
    pub(super) header: HeaderName,
    pub(super) grammar: Grammar,
    pub(super) methods: Vec<Method>,
    pub(super) required: Arc<dyn Fn(&Parts) -> bool + Send + Sync>,
    pub(super) query: Query,
    pub(super) compared: Vec<HeaderName>,
    pub(super) body_limit: usize,
    pub(super) answer_time: Duration,
    pub(super) ttl: Ttl,
    pub(super) on_in_progress: OnInProgress,
    pub(super) on_unknown: OnUnknown,
    pub(super) statuses: StatusTable,
    pub(super) kept: HeaderList,
    pub(super) mark_replays: bool,
    pub(super) no_store: bool,
    pub(super) problem_base: Cow<'static, str>,
    pub(super) show: Show,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            operation: Cow::Borrowed("http"),
            header: super::IDEMPOTENCY_KEY,
            grammar: Grammar::default(),
            methods: vec![Method::POST, Method::PATCH],
            required: Arc::new(|_| true),
            query: Query::Whole,
            compared: Vec::new(),
            body_limit: 1024 * 1024,
            answer_time: super::ANSWER_TIME,
            ttl: Ttl::For(Duration::from_secs(86_400)),
            on_in_progress: OnInProgress::Wait(Duration::from_secs(2)),
            on_unknown: OnUnknown::Refuse,
            statuses: StatusTable::default(),
            kept: HeaderList::default(),
            mark_replays: false,
            no_store: false,
            problem_base: Cow::Borrowed(PROBLEM_BASE),
            show: Arc::new(Problem::to_response),
        }
    }
}

/// Which part of the query must be equal when a key repeats.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Query {
    /// All of it, as it was sent.
    #[default]
    Whole,
    /// The pairs with these names, in the order in which they were sent.
    Only(Vec<String>),
    /// All pairs but those with these names.
    Except(Vec<String>),
}

impl Query {
    /// Returns the part of a query to compare. Names are compared as they were
    /// sent: `%61` is not `a`.
    pub(super) fn select<'q>(&self, query: &'q str) -> Cow<'q, str> {
        let names = match self {
            Self::Whole => return Cow::Borrowed(query),
            Self::Only(names) | Self::Except(names) => names,
        };
        let only = matches!(self, Self::Only(_));
        let chosen: Vec<_> = query
            .split('&')
            .filter(|pair| {
                let name = pair.split('=').next().unwrap_or_default();
                names.iter().any(|chosen| chosen == name) == only
            })
            .collect();
        Cow::Owned(chosen.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_part_of_a_query_keeps_its_order() {
        let names = || vec!["a".to_owned(), "c".to_owned()];
        for (query, only, except) in [
            ("", "", ""),
            ("a=1&b=2&c=3&a=4", "a=1&c=3&a=4", "b=2"),
            ("c&ab=1&=x", "c", "ab=1&=x"),
        ] {
            assert_eq!(Query::Whole.select(query), query);
            assert_eq!(Query::Only(names()).select(query), only);
            assert_eq!(Query::Except(names()).select(query), except);
        }
    }
}
