//! Which engine the annotated functions of a request find.

use std::pin::Pin;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

use crate::engine::Engine;

/// Makes an engine that of every annotated call below a service.
///
/// It is what [`Engine::scope`] is for a future: without [`install`](crate::install),
/// so that two routers of one process can have two engines.
#[derive(Debug, Clone)]
pub struct EngineLayer {
    engine: Engine,
}

impl EngineLayer {
    /// Creates the layer.
    #[must_use]
    pub fn new(engine: &Engine) -> Self {
        Self {
            engine: engine.clone(),
        }
    }
}

impl<S> Layer<S> for EngineLayer {
    type Service = WithEngine<S>;

    fn layer(&self, inner: S) -> WithEngine<S> {
        WithEngine {
            engine: self.engine.clone(),
            inner,
        }
    }
}

/// A service whose calls find an engine; made by [`EngineLayer`].
#[derive(Debug, Clone)]
pub struct WithEngine<S> {
    engine: Engine,
    inner: S,
}

impl<S, R> Service<R> for WithEngine<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
    S::Response: 'static,
    S::Error: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        Box::pin(self.engine.scope(self.inner.call(request)))
    }
}
