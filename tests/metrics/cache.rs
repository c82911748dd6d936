//! What a cache of answers spared the store is counted, beside the calls.

use idem::store::MemoryStore;
use idem::telemetry::names;
use idem::{Engine, Error};

use crate::recorder::Recorded;
use crate::{DAY, alone};

#[tokio::test]
async fn replays_from_memory_are_counted_and_are_replays() {
    let _turn = alone().await;
    let recorded = Recorded::start();
    let store = MemoryStore::new();
    for (cache, operation, hits) in [(0, "hits.off", 0), (1 << 20, "hits.on", 3)] {
        let engine = Engine::builder(store.clone()).cache(cache);
        let engine = engine.build().await.unwrap();
        for _ in 0..4 {
            let call = engine.call(operation, &1, DAY);
            call.run(async { Ok::<_, Error>(1) }).await.unwrap();
        }
        let of = ("operation", operation);
        assert_eq!(recorded.count(names::CACHE_HITS, &[of]), hits);
        for (outcome, calls) in [("executed", 1), ("replayed", 3)] {
            let labels = [of, ("outcome", outcome)];
            assert_eq!(recorded.count(names::CALLS, &labels), calls);
        }
    }
}
