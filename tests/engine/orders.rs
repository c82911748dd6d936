//! Versions of one key in every order, one by one and all at once, on any
//! engine: what lands only rises, and nothing is lost without a word.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem::record::VersionBytes;
use idem::{Engine, Error, How, OnStale};
use tokio::sync::Barrier;

const TTL: Duration = Duration::from_secs(86_400);
/// What is sent for one key; version 3 is delivered twice.
const SENT: [u64; 5] = [1, 3, 2, 3, 4];

/// Every order of [`SENT`], each once: 60.
pub(crate) fn all() -> Vec<Vec<u64>> {
    let mut orders = vec![Vec::new()];
    for version in SENT {
        let mut longer: Vec<Vec<u64>> = orders
            .iter()
            .flat_map(|order| {
                (0..=order.len()).map(move |at| {
                    let mut order = order.clone();
                    order.insert(at, version);
                    order
                })
            })
            .collect();
        longer.sort();
        longer.dedup();
        orders = longer;
    }
    assert_eq!(orders.len(), 60, "5! / 2!");
    orders
}

/// What a key's bodies wrote, in the order in which it landed.
#[derive(Debug, Clone, Default)]
struct Resource(Arc<Mutex<Vec<u64>>>);

impl Resource {
    fn land(&self, version: u64) {
        self.0.lock().unwrap().push(version);
    }

    fn landed(&self) -> Vec<u64> {
        self.0.lock().unwrap().clone()
    }
}

/// Applies one version; the payload is another one for each of them.
async fn apply(
    engine: &Engine,
    key: usize,
    version: u64,
    on_stale: OnStale,
    resource: &Resource,
) -> (Result<u64, Error>, How) {
    let resource = resource.clone();
    let call = engine.call("orders", &key, TTL).payload(&version);
    let call = call.version(&version).on_stale(on_stale);
    let (answer, outcome) = call
        .run_detailed(async move {
            resource.land(version);
            Ok(version)
        })
        .await;
    (answer, outcome.how)
}

/// The recorded version decides alone, whatever came before it.
pub(crate) async fn one_by_one(engine: &Engine) {
    for (key, order) in all().into_iter().enumerate() {
        let resource = Resource::default();
        let mut expected = Vec::new();
        for &version in &order {
            let recorded = expected.last().copied().unwrap_or(0);
            let (answer, how) = apply(engine, key, version, OnStale::Error, &resource).await;
            if version < recorded {
                let applied = Some(VersionBytes::of(&recorded));
                let stale = (Err(Error::Stale { applied }), How::Refused);
                assert_eq!((answer, how), stale, "{version} in {order:?}");
                let newest = apply(engine, key, version, OnStale::Replay, &resource).await;
                assert_eq!(newest, (Ok(recorded), How::Stale), "{version} in {order:?}");
            } else if version == recorded {
                assert_eq!((answer, how), (Ok(version), How::Replayed), "{order:?}");
            } else {
                assert_eq!((answer, how), (Ok(version), How::Executed), "{order:?}");
                expected.push(version);
            }
            assert_eq!(resource.landed(), expected, "{version} in {order:?}");
        }
        assert_eq!(expected.last(), Some(&4), "{order:?}");
    }
}

/// All five at once; whatever the scheduler makes of it.
pub(crate) async fn at_once(engine: &Engine) {
    for (key, order) in all().into_iter().enumerate() {
        let resource = Resource::default();
        let barrier = Arc::new(Barrier::new(order.len()));
        let mut calls = tokio::task::JoinSet::new();
        for version in order {
            let (engine, resource) = (engine.clone(), resource.clone());
            let barrier = Arc::clone(&barrier);
            calls.spawn(async move {
                barrier.wait().await;
                let told = apply(&engine, key, version, OnStale::Error, &resource).await;
                (version, told.0)
            });
        }
        let told = calls.join_all().await;
        judge(&resource.landed(), &told);
    }
}

/// Checks what landed against what callers were told of each version.
pub(crate) fn judge(landed: &[u64], told: &[(u64, Result<u64, Error>)]) {
    let scene = format!("landed {landed:?}, told {told:?}");
    assert!(
        landed.is_sorted_by(|lower, higher| lower < higher),
        "{scene}"
    );
    assert_eq!(landed.last(), Some(&4), "{scene}");
    for (version, answer) in told {
        match answer {
            Ok(own) => assert!(own == version && landed.contains(version), "{scene}"),
            Err(Error::Stale { applied }) => {
                assert!(*applied > Some(VersionBytes::of(version)), "{scene}");
            }
            Err(_) => panic!("{scene}"),
        }
    }
    for version in landed {
        let ran = (*version, Ok(*version));
        assert!(told.contains(&ran), "{version} landed unseen: {scene}");
    }
}
