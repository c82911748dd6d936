//! What a call costs on each store, beside the raw statements it cannot do without.
//!
//! **Shows**, for SQLite, Postgres, MariaDB and Redis, a first call and a replay with 1 and 64
//! callers: the engine with its defaults beside plain statements by the same driver (`harness/raw.rs`
//! says which), in interleaved rounds. With one caller the ratio is that of the time of a call, ours
//! to raw; with 64 that of calls a second. Then, for these and the store in memory, calls a second
//! against the number of callers.
//!
//! **Run** it, against servers with durable settings:
//!
//! ```text
//! eval "$(scripts/stores up --durable postgres mariadb redis)"
//! cargo bench --manifest-path benches/Cargo.toml --bench stores -- --stores sqlite,postgres
//! scripts/stores down
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cached::{AsyncRedisCache, ConcurrentCachedAsync as _};
use harness::closed_loop::{pairs, round};
use harness::figures::{Spread, number};
use harness::keys::{mix, text};
use harness::options::url;
use harness::ours::{ANSWER, Ours, RECORDED};
use harness::raw::{CONNECTIONS, RawMySql, RawPostgres, RawRedis, RawSqlite};
use harness::{BoxError, Case, Options, Side, on_two_threads};
use idem::store::{MemoryStore, MySqlStore, PostgresStore, RedisStore, SqliteStore};
use serde_json::json;

const CALLERS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

fn main() -> Result<(), BoxError> {
    let options = Options::of_command_line()?;
    on_two_threads(measure(options))
}

async fn measure(options: Options) -> Result<(), BoxError> {
    println!(
        "{} rounds of {:?} a side, interleaved; p50 in us, medians over the rounds",
        options.rounds, options.slice
    );
    println!(
        "{:<9} {:<7} {:>7}  {:>9} {:>9}  {:>9} {:>9}  ratio, median (min to max)",
        "store", "call", "callers", "raw p50", "ours p50", "raw /s", "ours /s"
    );
    if options.wants("sqlite") {
        let folder = Folder::new()?;
        let raw = RawSqlite::new(&folder.file("raw.db")?).await?;
        let ours = SqliteStore::open(folder.file("ours.db")?).await?;
        let ours = Ours::new(ours, RECORDED).await?;
        compare(&options, "sqlite", &raw, &ours).await?;
        raw.close().await;
        sweep(&options, "sqlite", &ours).await?;
    }
    if options.wants("postgres") {
        let url = url("postgres")?;
        let raw = RawPostgres::new(&url).await?;
        let store = PostgresStore::options()
            .prefix(prefix())
            .connections(CONNECTIONS);
        let store = store.connect(&url).await?;
        store.migrate().await?;
        let ours = Ours::new(store, RECORDED).await?;
        compare(&options, "postgres", &raw, &ours).await?;
        raw.close().await;
        sweep(&options, "postgres", &ours).await?;
    }
    if options.wants("mariadb") {
        let url = url("mysql")?;
        let raw = RawMySql::new(&url).await?;
        let store = MySqlStore::options()
            .prefix(prefix())
            .connections(CONNECTIONS);
        let store = store.connect(&url).await?;
        store.migrate().await?;
        let ours = Ours::new(store, RECORDED).await?;
        compare(&options, "mariadb", &raw, &ours).await?;
        raw.close().await;
        sweep(&options, "mariadb", &ours).await?;
    }
    if options.wants("redis") {
        let url = url("redis")?;
        let raw = RawRedis::new(&url).await?;
        let durability = raw.durability().await?;
        println!("redis: {durability}");
        options.note(&json!({ "bench": "redis", "durability": durability }))?;
        let store = RedisStore::options().prefix(prefix()).connect(&url).await?;
        let ours = Ours::new(store, RECORDED).await?;
        compare(&options, "redis", &raw, &ours).await?;
        // A peer in our place: what `cached` takes for a hit, and for a miss that it fills. It
        // reserves nothing, so two processes both do the work.
        let peer = Cached::new(&url).await?;
        compare(&options, "cached", &raw, &peer).await?;
        sweep(&options, "redis", &ours).await?;
    }
    if options.wants("memory") {
        let ours = Ours::new(MemoryStore::new(), RECORDED).await?;
        sweep(&options, "memory", &ours).await?;
    }
    Ok(())
}

/// `cached` with its Redis store.
#[derive(Clone)]
struct Cached {
    cache: Arc<AsyncRedisCache<String, String>>,
    next: Arc<AtomicU64>,
}

impl Cached {
    async fn new(url: &str) -> Result<Self, BoxError> {
        let cache = AsyncRedisCache::builder(prefix())
            .connection_string(url)
            .connection_manager(true)
            .ttl(std::time::Duration::from_secs(86_400));
        let cache = Arc::new(cache.build().await?);
        let mut callers = tokio::task::JoinSet::new();
        for caller in 0..64 {
            let cache = Arc::clone(&cache);
            callers.spawn(async move {
                for n in (caller..RECORDED).step_by(64) {
                    cache
                        .async_cache_set(text(1, n), "x".repeat(ANSWER))
                        .await?;
                }
                Ok::<_, BoxError>(())
            });
        }
        while let Some(done) = callers.join_next().await {
            done??;
        }
        Ok(Self {
            cache,
            next: Arc::default(),
        })
    }
}

impl Side for Cached {
    async fn first(&self) -> Result<(), BoxError> {
        let key = text(2, self.next.fetch_add(1, Ordering::Relaxed));
        if self.cache.async_cache_get(&key).await?.is_some() {
            return Err("a new key was there".into());
        }
        self.cache.async_cache_set(key, "x".repeat(ANSWER)).await?;
        Ok(())
    }

    async fn replay(&self) -> Result<(), BoxError> {
        let n = mix(self.next.fetch_add(1, Ordering::Relaxed)) % RECORDED;
        let kept = self.cache.async_cache_get(&text(1, n)).await?;
        kept.map(drop).ok_or_else(|| "no hit".into())
    }
}

/// Both calls with one caller and with 64.
async fn compare<R: Side, O: Side>(
    options: &Options,
    store: &str,
    raw: &R,
    ours: &O,
) -> Result<(), BoxError> {
    for case in Case::ALL {
        for callers in [1, 64] {
            let pairs = pairs(raw, ours, case, callers, options.rounds, options.slice).await?;
            let raw_p50 = Spread::of(pairs.iter().map(|(raw, _)| raw.p50));
            let ours_p50 = Spread::of(pairs.iter().map(|(_, ours)| ours.p50));
            let raw_rate = Spread::of(pairs.iter().map(|(raw, _)| raw.per_second));
            let ours_rate = Spread::of(pairs.iter().map(|(_, ours)| ours.per_second));
            // One caller's time is its median, which a neighbour on this machine disturbs less than
            // the mean; that one is beside it, since commits take one of two times.
            let ratio = Spread::of(pairs.iter().map(|(raw, ours)| match callers {
                1 => ours.p50 / raw.p50,
                _ => ours.per_second / raw.per_second,
            }));
            let mean = Spread::of(
                pairs
                    .iter()
                    .map(|(raw, ours)| raw.per_second / ours.per_second),
            );
            let (of, also) = match callers {
                1 => ("time", format!("; of the mean time {:.2}", mean.median)),
                _ => ("throughput", String::new()),
            };
            println!(
                "{store:<9} {:<7} {callers:>7}  {:>9} {:>9}  {:>9} {:>9}  {ratio} x the raw {of}{also}",
                case.name(),
                number(raw_p50.median),
                number(ours_p50.median),
                number(raw_rate.median),
                number(ours_rate.median),
            );
            options.note(&json!({
                "bench": "stores", "store": store, "case": case.name(), "callers": callers,
                "rounds": pairs.len(), "of": of,
                "ratio": ratio.median, "ratio_min": ratio.min, "ratio_max": ratio.max,
                "mean_time_ratio": mean.median,
                "raw_p50_us": raw_p50.median, "ours_p50_us": ours_p50.median,
                "raw_per_s": raw_rate.median, "ours_per_s": ours_rate.median,
            }))?;
        }
    }
    Ok(())
}

/// Calls a second against callers, all numbers of callers in each round.
async fn sweep(options: &Options, store: &str, ours: &Ours) -> Result<(), BoxError> {
    let rounds = (options.rounds / 3).max(1);
    let mut rates = [const { [const { Vec::new() }; CALLERS.len()] }; Case::ALL.len()];
    for _ in 0..rounds {
        for (case, rates) in Case::ALL.into_iter().zip(&mut rates) {
            for (callers, rates) in CALLERS.into_iter().zip(rates) {
                let done = round(ours, case, callers, options.slice).await?;
                rates.push(done.per_second);
            }
        }
    }
    for (case, rates) in Case::ALL.into_iter().zip(&rates) {
        print!("{store:<9} {:<7} calls/s by callers:", case.name());
        for (callers, rates) in CALLERS.into_iter().zip(rates) {
            let rate = Spread::of(rates.iter().copied());
            print!("  {callers}: {}", number(rate.median));
            options.note(&json!({
                "bench": "sweep", "store": store, "case": case.name(), "callers": callers,
                "rounds": rounds, "per_s": rate.median, "per_s_min": rate.min, "per_s_max": rate.max,
            }))?;
        }
        println!();
    }
    Ok(())
}

/// Tables of this run alone: the servers are thrown away after it.
fn prefix() -> String {
    format!("bench{}_", std::process::id())
}

/// A folder on a disk, removed with the end of the run.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, BoxError> {
        let path = std::env::temp_dir().join(format!("idem-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn file(&self, name: &str) -> Result<String, BoxError> {
        let path = self.0.join(name);
        Ok(path
            .to_str()
            .ok_or("the temporary folder has an odd name")?
            .to_owned())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}
