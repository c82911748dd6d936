//! How many statements a call sends on its caller's connection.

use std::sync::atomic::{AtomicUsize, Ordering};

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::operation::Act;
use crate::world::{Kind, World};

static SENT: AtomicUsize = AtomicUsize::new(0);

/// The driver says each statement that it has sent.
struct Counter;

impl Subscriber for Counter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        SENT.fetch_add(1, Ordering::SeqCst);
    }

    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Two, and two more for a savepoint. The body sends one of its own.
#[tokio::test]
async fn a_fresh_call_sends_two_statements() {
    tracing::subscriber::set_global_default(Counter).unwrap();
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let mut tx = world.begin().await;
        let before = SENT.load(Ordering::SeqCst);
        assert_eq!(tx.place(&world.order("a", Act::Answer)).await, Ok(42));
        let plain = SENT.load(Ordering::SeqCst) - before;
        assert_eq!(tx.tentative(&world.order("b", Act::Answer)).await, Ok(42));
        let tentative = SENT.load(Ordering::SeqCst) - before - plain;
        tx.commit().await;
        assert_eq!((plain, tentative), (2 + 1, 4 + 1), "{kind:?}");
    }
}
