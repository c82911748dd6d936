//! A hit in memory: the caches that people take for it, beside a replay of ours.
//!
//! **Shows** a hit of `foyer`, of `moka`, a replay from the engine's own cache, if it is on, and one
//! from the store in memory. The caches know the key and give the value; a replay also digests its
//! arguments, compares the payload and reads the answer.
//!
//! **Run** it:
//!
//! ```text
//! cargo bench --manifest-path benches/Cargo.toml --bench hits --features cache
//! ```

use std::hint::black_box;
use std::time::Duration;

use harness::batch::{Part, compare};
use harness::keys::{key, mix, text};
use harness::ours::ANSWER;
use harness::{BoxError, Options};
use idem::store::MemoryStore;
use idem::{Engine, Error};

const KEYS: u64 = 1_000;
const TTL: Duration = Duration::from_secs(3_600);

fn main() -> Result<(), BoxError> {
    let options = Options::of_command_line()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;

    let value = || std::sync::Arc::<[u8]>::from(vec![b'x'; ANSWER]);
    let foyer: foyer_memory::Cache<_, _> =
        foyer_memory::CacheBuilder::new(usize::try_from(KEYS)? * 2).build();
    let moka = moka::sync::Cache::new(KEYS * 2);
    for n in 0..KEYS {
        foyer.insert(key(1, n), value());
        moka.insert(key(1, n), value());
    }
    let mut parts = vec![
        hits(&runtime, "foyer", foyer, |foyer, key| {
            Some(black_box(foyer.get(key)?.value().clone()))
        }),
        hits(&runtime, "moka", moka, |moka, key| {
            Some(black_box(moka.get(key)?))
        }),
    ];
    #[cfg(feature = "cache")]
    {
        let engine = Engine::builder(MemoryStore::new()).cache(64 << 20);
        let engine = runtime.block_on(recorded(engine.build()))?;
        parts.push(replays(&runtime, "idem, engine's cache", engine));
    }
    let engine = runtime.block_on(recorded(Engine::builder(MemoryStore::new()).build()))?;
    parts.push(replays(&runtime, "idem, memory store", engine));
    compare(&options, "hit in memory", 1.0, None, &mut parts)
}

/// An engine with its answers recorded.
async fn recorded(engine: impl Future<Output = Result<Engine, Error>>) -> Result<Engine, BoxError> {
    let engine = engine.await?;
    for n in 0..KEYS {
        call(&engine, n).await?;
    }
    Ok(engine)
}

async fn call(engine: &Engine, n: u64) -> Result<String, Error> {
    let call = engine.call("bench.charge", text(1, n).as_str(), TTL);
    call.run(async { Ok::<_, Error>("x".repeat(ANSWER)) }).await
}

/// On a thread of the runtime's pool, as a server's requests are, and as ours are here.
fn hits<'a, C: Clone + Send + Sync + 'static>(
    runtime: &'a tokio::runtime::Runtime,
    name: &'static str,
    cache: C,
    get: fn(&C, &[u8; 32]) -> Option<std::sync::Arc<[u8]>>,
) -> Part<'a> {
    Part::new(name, move |times| {
        let cache = cache.clone();
        runtime.block_on(async {
            let gets = tokio::spawn(async move {
                for n in 0..u64::from(times) {
                    get(&cache, &key(1, mix(n) % KEYS)).ok_or("no hit")?;
                }
                Ok::<_, BoxError>(())
            });
            gets.await?
        })
    })
}

/// In the same way.
fn replays<'a>(
    runtime: &'a tokio::runtime::Runtime,
    name: &'static str,
    engine: Engine,
) -> Part<'a> {
    Part::new(name, move |times| {
        let engine = engine.clone();
        runtime.block_on(async {
            let calls = tokio::spawn(async move {
                for n in 0..u64::from(times) {
                    black_box(call(&engine, mix(n) % KEYS).await?);
                }
                Ok::<_, BoxError>(())
            });
            calls.await?
        })
    })
}
