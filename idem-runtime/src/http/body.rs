//! Bodies: read up to a limit and handed on as one piece, or passed through.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};

/// Why a body ended early.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of the requests and responses that the layer hands on.
///
/// It gives first what the layer has read, as one piece, and then whatever is
/// left of the body that it was made from.
#[derive(Default)]
pub struct Body {
    read: Option<Bytes>,
    next: Option<Bytes>,
    rest: Rest,
}

#[derive(Default)]
enum Rest {
    #[default]
    Ended,
    Trailers(HeaderMap),
    Failed(BoxError),
    Live(Pin<Box<dyn Source>>),
}

/// Any body, with its type and its error's forgotten.
trait Source: Send {
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled;
    fn is_end(&self) -> bool;
    fn hint(&self) -> SizeHint;
}

type Polled = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

impl<B> Source for B
where
    B: HttpBody<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        self.poll_frame(cx).map_err(Into::into)
    }

    fn is_end(&self) -> bool {
        self.is_end_stream()
    }

    fn hint(&self) -> SizeHint {
        self.size_hint()
    }
}

impl Body {
    /// Wraps a body, to be passed through as it is.
    pub fn new<B>(body: B) -> Self
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self {
            rest: Rest::Live(Box::pin(body)),
            ..Self::default()
        }
    }

    /// Makes a body of one piece.
    pub(super) fn whole(bytes: Bytes, trailers: Option<HeaderMap>) -> Self {
        Self {
            read: Some(bytes).filter(|bytes| !bytes.is_empty()),
            next: None,
            rest: trailers.map_or(Rest::Ended, Rest::Trailers),
        }
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self::whole(bytes.into(), None)
    }
}

// Never what is in it.
impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Body")
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = &mut *self;
        if let Some(bytes) = this.read.take().or_else(|| this.next.take()) {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if let Rest::Live(source) = &mut this.rest {
            return source.as_mut().poll_next(cx);
        }
        Poll::Ready(match std::mem::take(&mut this.rest) {
            Rest::Trailers(trailers) => Some(Ok(Frame::trailers(trailers))),
            Rest::Failed(error) => Some(Err(error)),
            Rest::Ended | Rest::Live(_) => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        let rest = match &self.rest {
            Rest::Ended => true,
            Rest::Trailers(_) | Rest::Failed(_) => false,
            Rest::Live(source) => source.is_end(),
        };
        rest && self.read.is_none() && self.next.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let read = [&self.read, &self.next]
            .into_iter()
            .flatten()
            .fold(0_u64, |sum, bytes| sum.saturating_add(bytes.len() as u64));
        match &self.rest {
            Rest::Ended | Rest::Trailers(_) => SizeHint::with_exact(read),
            Rest::Failed(_) => at_least(read),
            Rest::Live(source) => {
                let hint = source.hint();
                let mut sum = at_least(read.saturating_add(hint.lower()));
                if let Some(upper) = hint.upper().and_then(|upper| upper.checked_add(read)) {
                    sum.set_upper(upper);
                }
                sum
            }
        }
    }
}

fn at_least(lower: u64) -> SizeHint {
    let mut hint = SizeHint::new();
    hint.set_lower(lower);
    hint
}

/// Reads a body, and can give it back unread.
pub(super) struct Reader {
    source: Pin<Box<dyn Source>>,
    /// The usual body is one piece, which is never copied.
    first: Option<Bytes>,
    /// All pieces in one, if there are more: many small ones would hold many
    /// large buffers of the connection.
    joined: BytesMut,
    over: Option<Bytes>,
    limit: usize,
}

/// How reading ended.
pub(super) enum End {
    /// The body has ended.
    Whole(Bytes, Option<HeaderMap>),
    /// It is longer than the limit.
    OverLimit,
    /// It ended early.
    Failed(BoxError),
}

impl Reader {
    pub(super) fn new<B>(body: B, limit: usize) -> Self
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self {
            source: Box::pin(body),
            first: None,
            joined: BytesMut::new(),
            over: None,
            limit,
        }
    }

    /// Reads to the end or beyond the limit, and shows each piece to `see`.
    ///
    /// Dropping the future loses nothing: what was read is still here.
    pub(super) async fn read(&mut self, mut see: impl FnMut(&[u8]) + Send) -> End {
        if self.is_longer(self.source.hint().lower()) {
            return End::OverLimit;
        }
        let mut trailers = None;
        loop {
            let frame = std::future::poll_fn(|cx| self.source.as_mut().poll_next(cx)).await;
            let frame = match frame {
                None => return End::Whole(self.take(), trailers),
                Some(Err(error)) => return End::Failed(error),
                Some(Ok(frame)) => frame,
            };
            match frame.into_data() {
                Ok(piece) => {
                    if self.is_longer(piece.len() as u64) {
                        self.over = Some(piece);
                        return End::OverLimit;
                    }
                    see(&piece);
                    self.keep(piece);
                }
                Err(frame) => trailers = frame.into_trailers().ok().or(trailers),
            }
        }
    }

    fn is_longer(&self, by: u64) -> bool {
        let first = self.first.as_ref().map_or(0, Bytes::len);
        (self.limit as u64) < by.saturating_add((first + self.joined.len()) as u64)
    }

    fn keep(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        if self.first.is_none() && self.joined.is_empty() {
            self.first = Some(piece);
            return;
        }
        if let Some(first) = self.first.take() {
            self.joined.reserve(first.len() + piece.len());
            self.joined.extend_from_slice(&first);
        }
        self.joined.extend_from_slice(&piece);
    }

    fn take(&mut self) -> Bytes {
        match self.first.take() {
            Some(first) => first,
            None => std::mem::take(&mut self.joined).freeze(),
        }
    }

    /// Gives the body back: what was read, then the rest.
    pub(super) fn into_body(mut self) -> Body {
        let mut body = Body::whole(self.take(), None);
        body.next = self.over.take();
        body.rest = Rest::Live(self.source);
        body
    }

    /// Gives a body back that ended early, with its error at the same place.
    pub(super) fn into_failed(mut self, error: BoxError) -> Body {
        let mut body = Body::whole(self.take(), None);
        body.rest = Rest::Failed(error);
        body
    }
}
