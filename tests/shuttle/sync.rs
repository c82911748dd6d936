//! The primitives that a scheduler drives, under the names that the library
//! uses.

pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard};

pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Those of tokio, which no runtime drives, with a place to be interrupted in
/// front of each step.
pub(crate) mod watch {
    use shuttle::thread::yield_now;
    use tokio::sync::watch;

    #[derive(Debug)]
    pub(crate) struct Sender<T>(watch::Sender<T>);

    #[derive(Debug)]
    pub(crate) struct Receiver<T>(watch::Receiver<T>);

    impl<T> Sender<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(watch::Sender::new(value))
        }

        pub(crate) fn subscribe(&self) -> Receiver<T> {
            yield_now();
            Receiver(self.0.subscribe())
        }

        pub(crate) fn send_replace(&self, value: T) -> T {
            yield_now();
            self.0.send_replace(value)
        }
    }

    impl<T> Receiver<T> {
        pub(crate) async fn wait_for(
            &mut self,
            condition: impl FnMut(&T) -> bool,
        ) -> Result<watch::Ref<'_, T>, watch::error::RecvError> {
            yield_now();
            self.0.wait_for(condition).await
        }
    }
}
