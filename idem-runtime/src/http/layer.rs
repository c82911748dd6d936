//! The layer and its knobs.

use std::borrow::Cow;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderName, Method, Response};
use serde::Serialize;
use tower_layer::Layer;

use super::body::Body;
use super::config::{Config, Knobs, Query, Scope};
use super::key::MAX_LEN;
use super::policy::{StatusTable, is_never_kept};
use super::problem::Problem;
use super::service::Idempotency;
use crate::canonical;
use crate::engine::{Engine, call};
use crate::error::Error;
use crate::policy::{OnInProgress, OnUnknown, Ttl};
use crate::sync::Arc;

/// Gives the services below it `Idempotency-Key`; see the [module](super).
///
/// `Clone` and cheap.
#[derive(Clone)]
pub struct IdempotencyLayer {
    config: Arc<Config>,
}

impl std::fmt::Debug for IdempotencyLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdempotencyLayer")
            .field("operation", &self.config.knobs.operation)
            .finish_non_exhaustive()
    }
}

impl IdempotencyLayer {
    /// Starts to build a layer on an engine.
    ///
    /// It cannot be built before it was said whose keys they are:
    ///
    /// ```compile_fail
    /// # async fn build(engine: idem::Engine) {
    /// let layer = idem::http::IdempotencyLayer::builder(&engine).build();
    /// # }
    /// ```
    pub fn builder(engine: &Engine) -> LayerBuilder<NoScope> {
        LayerBuilder {
            engine: engine.clone(),
            knobs: Knobs::default(),
            scope: NoScope(()),
        }
    }
}

impl<S> Layer<S> for IdempotencyLayer {
    type Service = Idempotency<S>;

    fn layer(&self, inner: S) -> Idempotency<S> {
        Idempotency::new(Arc::clone(&self.config), inner)
    }
}

/// A layer that does not know yet whose keys it gets.
#[derive(Debug)]
pub struct NoScope(());

/// A layer that knows whose keys it gets.
pub struct Scoped(Scope);

impl std::fmt::Debug for Scoped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scoped")
    }
}

/// Builds an [`IdempotencyLayer`].
#[must_use = "call `build`"]
pub struct LayerBuilder<S> {
    engine: Engine,
    knobs: Knobs,
    scope: S,
}

impl<S> std::fmt::Debug for LayerBuilder<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LayerBuilder")
            .field("operation", &self.knobs.operation)
            .finish_non_exhaustive()
    }
}

impl LayerBuilder<NoScope> {
    /// Says whose keys they are: the tenant, or whoever was authenticated, as
    /// a layer further out has put it into the request's extensions.
    ///
    /// A request for which this gives `None` or a blank text gets the problem
    /// `scope-missing`, and the handler does not run.
    pub fn scope<T, F>(self, scope: F) -> LayerBuilder<Scoped>
    where
        T: Serialize,
        F: Fn(&Parts) -> Option<T> + Send + Sync + 'static,
    {
        self.with_scope(Scoped(Arc::new(move |parts, call| {
            let scope = scope(parts)?;
            match canonical::encode(&scope) {
                Ok(encoded) if encoded.missing.is_some() => None,
                // What has no canonical form is the call's own error.
                _ => Some(call.scope(&scope)),
            }
        })))
    }

    /// Says that all callers share their keys: whoever sends another's key and
    /// request gets the other's answer. Only for services with one caller.
    pub fn unscoped(self) -> LayerBuilder<Scoped> {
        self.with_scope(Scoped(Arc::new(|_, call| Some(call))))
    }

    fn with_scope(self, scope: Scoped) -> LayerBuilder<Scoped> {
        LayerBuilder {
            engine: self.engine,
            knobs: self.knobs,
            scope,
        }
    }
}

impl LayerBuilder<Scoped> {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`Error::Misuse`] if a header is to be kept that never is, if the TTL is
    /// zero, if no method is left, if no key is long enough, if the name is
    /// none, or for `OnUnknown::Recover`, since there is nobody to ask.
    pub fn build(self) -> Result<IdempotencyLayer, Error> {
        let knobs = self.knobs;
        if let Some(name) = knobs.kept.more.iter().find(|name| is_never_kept(name)) {
            return Err(Error::misuse_at_start(format!(
                "the header `{name}` belongs to one exchange or one person, and is never replayed: leave out `keep_header`"
            )));
        }
        if knobs.on_unknown == OnUnknown::Recover {
            return Err(Error::misuse_at_start(
                "a layer has nobody to ask what became of a request: annotate the handler with `on_unknown = recover(…)`",
            ));
        }
        if !call::is_name(&knobs.operation) {
            return Err(Error::misuse_at_start(
                "a layer's name has 1 to 128 bytes and no control characters",
            ));
        }
        if knobs.methods.is_empty()
            || knobs.ttl == Ttl::For(Duration::ZERO)
            || knobs.grammar.min_len > MAX_LEN
        {
            return Err(Error::misuse_at_start(
                "a layer needs a method, a TTL above zero, and keys of at most 255 characters",
            ));
        }
        Ok(IdempotencyLayer {
            config: Arc::new(Config {
                engine: self.engine,
                scope: self.scope.0,
                knobs,
            }),
        })
    }
}

impl<S> LayerBuilder<S> {
    fn with(mut self, change: impl FnOnce(&mut Knobs)) -> Self {
        change(&mut self.knobs);
        self
    }

    /// Sets the operation's name, part of the identity and a label of metrics.
    /// Default: `http`; 1 to 128 bytes. Layers of one name on one engine share
    /// their records, so that a retry may arrive through another one.
    pub fn name(self, name: impl Into<Cow<'static, str>>) -> Self {
        let name = name.into();
        self.with(|knobs| knobs.operation = name)
    }

    /// Sets the header of the key. Default: `idempotency-key`.
    pub fn header(self, name: HeaderName) -> Self {
        self.with(|knobs| knobs.header = name)
    }

    /// Sets the methods whose requests take a key. Default: POST and PATCH.
    /// All others pass through untouched.
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.with(|knobs| knobs.methods = methods.into_iter().collect())
    }

    /// Lets requests without a key pass through, without any protection.
    /// Default: they are refused with 400.
    pub fn optional(self) -> Self {
        self.required_if(|_| false)
    }

    /// Decides by the request whether a key is required.
    pub fn required_if(self, required: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.with(|knobs| knobs.required = Arc::new(required))
    }

    /// Takes only keys in double quotes, as the draft has them. Default: the
    /// bare text is the same key.
    pub fn only_quoted_keys(self) -> Self {
        self.with(|knobs| knobs.grammar.only_quoted = true)
    }

    /// Sets the fewest characters of a key. Default: 1; at most 255. A public
    /// service asks for 20 or more, so that keys are not guessed or reused.
    pub fn min_key_len(self, characters: usize) -> Self {
        self.with(|knobs| knobs.grammar.min_len = characters)
    }

    /// Sets which part of the query must be equal when a key repeats.
    /// Default: all of it.
    pub fn query(self, query: Query) -> Self {
        self.with(|knobs| knobs.query = query)
    }

    /// Adds a header that must be equal when a key repeats, such as
    /// `content-type` or the version of the service's interface. Default: none.
    pub fn compare_header(self, name: HeaderName) -> Self {
        self.with(|knobs| knobs.compared.push(name))
    }

    /// Sets the most bytes of a request's body. Default: 1 MiB. A larger one
    /// gets 413 before anything is reserved.
    pub fn body_limit(self, bytes: usize) -> Self {
        self.with(|knobs| knobs.body_limit = bytes)
    }

    /// Sets how long the body of an answer may take to be recorded. Default:
    /// 10 s. After that it is a stream: its client gets it as such, and retries
    /// get the problem `not-replayable`.
    pub fn answer_time(self, time: Duration) -> Self {
        self.with(|knobs| knobs.answer_time = time)
    }

    /// Sets how long an answer is kept, from its completion. Default: 24 h.
    pub fn ttl(self, ttl: impl Into<Ttl>) -> Self {
        let ttl = ttl.into();
        self.with(|knobs| knobs.ttl = ttl)
    }

    /// Sets what happens while another request with the key runs. Default:
    /// wait 2 s for its answer, then 409.
    pub fn on_in_progress(self, choice: OnInProgress) -> Self {
        self.with(|knobs| knobs.on_in_progress = choice)
    }

    /// Sets what happens when an earlier request ended without an answer.
    /// Default: 409 `outcome-unknown`, until somebody settles it.
    pub fn on_unknown(self, choice: OnUnknown) -> Self {
        self.with(|knobs| knobs.on_unknown = choice)
    }

    /// Sets what each status says about the effect.
    pub fn statuses(self, table: StatusTable) -> Self {
        self.with(|knobs| knobs.statuses = table)
    }

    /// Adds a header of answers that is recorded and replayed.
    pub fn keep_header(self, name: HeaderName) -> Self {
        self.with(|knobs| knobs.kept.more.push(name))
    }

    /// Adds `Idempotent-Replayed: true` to replays. Default: nothing is added.
    pub fn mark_replays(self) -> Self {
        self.with(|knobs| knobs.mark_replays = true)
    }

    /// Sets `Cache-Control: no-store` on every answer to a request with a key,
    /// the first one, replays and problems. Default: nothing is added.
    pub fn no_store(self) -> Self {
        self.with(|knobs| knobs.no_store = true)
    }

    /// Sets what stands in front of a problem's name in its type, such as
    /// `https://api.example.com/problems/`. Default: [`PROBLEM_BASE`](super::PROBLEM_BASE).
    pub fn problem_base(self, base: impl Into<Cow<'static, str>>) -> Self {
        let base = base.into();
        self.with(|knobs| knobs.problem_base = base)
    }

    /// Replaces the responses of problems.
    pub fn problems(
        self,
        show: impl Fn(&Problem) -> Response<Body> + Send + Sync + 'static,
    ) -> Self {
        self.with(|knobs| knobs.show = Arc::new(show))
    }
}
