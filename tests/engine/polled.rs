//! Polls a future so many times, and drops it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Says when the future wants to be polled.
pub(crate) struct Bell(pub(crate) mpsc::Sender<()>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.send(()).ok();
    }
}

pub(crate) enum Polled<T> {
    Ended(T),
    Dropped,
}

/// Polls a future up to `times` times, each time when it asks to, and drops it
/// on a thread that has no runtime.
pub(crate) async fn polled<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
    times: usize,
) -> Polled<T> {
    let mut future: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(future);
    let (ring, rung) = mpsc::channel();
    let waker = Waker::from(Arc::new(Bell(ring)));
    let mut rung = Some(rung);
    for time in 0..times {
        if time > 0 {
            let bell = rung.take().unwrap();
            rung = tokio::task::spawn_blocking(move || {
                bell.recv_timeout(Duration::from_secs(20)).unwrap();
                Some(bell)
            })
            .await
            .unwrap();
        }
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Polled::Ended(value);
        }
    }
    let dropped = std::thread::spawn(move || {
        assert!(tokio::runtime::Handle::try_current().is_err());
        drop(future);
    });
    tokio::task::spawn_blocking(move || dropped.join().unwrap())
        .await
        .unwrap();
    Polled::Dropped
}
