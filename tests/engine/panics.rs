//! A panic in what the user gives beside the body: it goes on in its caller,
//! nothing was begun, and nothing is left.

use std::fmt;
use std::time::Duration;

use idem::{Engine, Error, idempotent};
use serde::{Serialize, Serializer};

use crate::{Runs, engine, idle, memory};

/// Panics where it is told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    Key,
    Scope,
    Payload,
    Label,
    Ttl,
    Engine,
}

#[derive(Debug, Clone, Copy)]
struct Trap {
    here: Place,
    bomb: Place,
}

impl Trap {
    fn step(self) {
        assert!(self.here != self.bomb, "in the user's own code");
    }
}

impl Serialize for Trap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.step();
        serializer.serialize_str("1")
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.step();
        f.write_str("1")
    }
}

const PLACES: [Place; 6] = [
    Place::Key,
    Place::Scope,
    Place::Payload,
    Place::Label,
    Place::Ttl,
    Place::Engine,
];

fn at(here: Place, bomb: Place) -> Trap {
    Trap { here, bomb }
}

fn ttl(bomb: Place) -> Duration {
    at(Place::Ttl, bomb).step();
    Duration::from_secs(3_600)
}

fn chosen(engine: &Engine, bomb: Place) -> Engine {
    at(Place::Engine, bomb).step();
    engine.clone()
}

#[idempotent(
    name = "panics.given",
    key = (order, at(Place::Key, bomb)),
    scope = at(Place::Scope, bomb),
    payload = at(Place::Payload, bomb),
    label = at(Place::Label, bomb),
    ttl = ttl(bomb),
    engine = chosen(&engine, bomb),
)]
async fn given(engine: Engine, runs: Runs, order: u32, bomb: Place) -> Result<usize, Error> {
    Ok(runs.add())
}

#[tokio::test]
async fn a_panic_before_the_reservation_goes_on_in_its_caller_and_begins_nothing() {
    let store = crate::faulty::Faulty::default();
    let engine = engine(store.clone()).await;
    for (order, bomb) in (0..).zip(PLACES) {
        let runs = Runs::default();
        let call = given(engine.clone(), runs.clone(), order, bomb);
        let panic = tokio::spawn(call).await.unwrap_err().into_panic();
        assert_eq!(
            panic.downcast_ref::<&str>(),
            Some(&"in the user's own code"),
            "{bomb:?}"
        );
        assert_eq!(runs.count(), 0, "{bomb:?}");
        idle(&engine).await;
        let before = store.reserves();
        let next = given(engine.clone(), runs.clone(), order, Place::Nowhere).await;
        assert_eq!(next, Ok(1), "{bomb:?}");
        assert_eq!(store.reserves(), before + 1, "{bomb:?}");
    }
    // Each next call reserved, and nobody else did.
    assert_eq!(store.reserves(), PLACES.len());
}

/// An error of the body's own, which panics when it is made of the engine's.
#[derive(Debug, PartialEq, Serialize, serde::Deserialize)]
struct Own;

fn map(_: Error) -> Own {
    panic!("in `map_err`")
}

#[idempotent(name = "panics.map", key = order, payload = amount, ttl = "1h", engine = engine, map_err = map)]
async fn mapped(engine: Engine, runs: Runs, order: u32, amount: u32) -> Result<usize, Own> {
    Ok(runs.add())
}

#[tokio::test]
async fn a_panic_in_map_err_goes_on_in_its_caller_and_changes_no_answer() {
    let (engine, runs) = (memory().await, Runs::default());
    let call = |amount| mapped(engine.clone(), runs.clone(), 1, amount);
    assert_eq!(call(1).await, Ok(1));
    let panic = tokio::spawn(call(2)).await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"in `map_err`"));
    idle(&engine).await;
    assert_eq!(call(1).await, Ok(1));
    assert_eq!(runs.count(), 1);
}
