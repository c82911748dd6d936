//! Named points at which tests stop, fail or kill a process.
//!
//! Without the feature `testing` a point is an empty function.

#[cfg(feature = "testing")]
mod points {
    use std::collections::HashMap;
    use std::pin::Pin;

    use crate::sync::{Arc, Mutex, lock};

    type Action = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

    static ACTIONS: Mutex<Option<HashMap<&'static str, Action>>> = Mutex::new(None);

    /// The points of one call, in the order in which it passes them.
    pub const POINTS: &[&str] = &[
        "before-reserve",
        "reserve-committed",
        "after-reserve",
        "before-body",
        "after-body",
        "before-complete",
        "complete-committed",
        "after-complete",
    ];

    /// Sets what happens at a point, in this process, until [`clear`].
    ///
    /// One registry serves the whole process: a test that sets points runs in
    /// a process of its own.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn set<F, Fut>(name: &'static str, action: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        assert!(
            POINTS.contains(&name) || name == "other-committed",
            "there is no fault point of this name"
        );
        let action: Action = Arc::new(move || Box::pin(action()));
        lock(&ACTIONS)
            .get_or_insert_with(HashMap::new)
            .insert(name, action);
    }

    /// Removes all actions.
    pub fn clear() {
        *lock(&ACTIONS) = None;
    }

    fn action(name: &'static str) -> Option<Action> {
        let actions = lock(&ACTIONS);
        actions.as_ref()?.get(name).cloned()
    }

    pub(crate) async fn point(name: &'static str) {
        if let Some(action) = action(name) {
            action().await;
        }
    }

    /// A point on a thread that has no runtime.
    #[cfg(feature = "sqlite")]
    #[expect(
        clippy::expect_used,
        reason = "a test whose action cannot run must not pass"
    )]
    pub(crate) fn point_on_thread(name: &'static str) {
        if let Some(action) = action(name) {
            tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .expect("a runtime for a test's action")
                .block_on(action());
        }
    }
}

#[cfg(feature = "testing")]
pub(crate) use self::points::point;
#[cfg(all(feature = "testing", feature = "sqlite"))]
pub(crate) use self::points::point_on_thread;
#[cfg(feature = "testing")]
pub use self::points::{POINTS, clear, set};

#[cfg(not(feature = "testing"))]
#[expect(clippy::unused_async, reason = "a point can wait where tests are")]
pub(crate) async fn point(_: &'static str) {}

#[cfg(all(feature = "sqlite", not(feature = "testing")))]
pub(crate) fn point_on_thread(_: &'static str) {}
