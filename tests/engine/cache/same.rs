//! With a cache and without one, on two stores, callers are told the same.

use std::fmt::Debug;
use std::time::Duration;

use idem::store::{MemoryStore, SqliteStore, Store};
use idem::testing::ManualClock;
use idem::{Disposition, Engine, Error, How, OnStale, Outcome, PlainCall, on_error};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{HOUR, MIB};
use crate::Runs;

const TTL: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Fail {
    Declined(u32),
    Idem(Error),
}

impl From<Error> for Fail {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

/// What callers were told, in order.
struct Script {
    engine: Engine,
    clock: ManualClock,
    runs: Runs,
    told: Vec<String>,
}

impl Script {
    fn call(&self, name: &'static str) -> PlainCall {
        self.engine.call(name, &1, TTL)
    }

    fn tell(&mut self, told: impl Debug) {
        self.told
            .push(format!("{told:?} after {} runs", self.runs.count()));
    }

    /// Makes a call, and notes what it is told.
    async fn make<T>(&mut self, call: PlainCall, answer: Result<T, Fail>)
    where
        T: Debug + Serialize + DeserializeOwned + Send + 'static,
    {
        let runs = self.runs.clone();
        let body = async move {
            runs.add();
            answer
        };
        let told: (Result<T, Fail>, Outcome) = call.run_detailed(body).await;
        self.tell(told);
    }

    async fn replays_and_mismatches(&mut self) {
        for answer in 0..3 {
            self.make(self.call("plain").payload(&"a"), Ok(answer))
                .await;
        }
        self.make(self.call("plain").payload(&"b"), Ok(3)).await;
        self.make(self.call("plain").payload(&"a"), Ok(4)).await;
        let own = 3;
        let borrowed = &own;
        let call = self.call("plain").payload(&"a");
        let told: Result<i32, Fail> = call.run_borrowed(async { Ok(*borrowed) }).await;
        self.tell(told);
        // Two types of one name.
        self.make(self.call("plain").payload(&"a"), Ok("text".to_owned()))
            .await;
    }

    async fn expires(&mut self) {
        self.make(self.call("ttl"), Ok(0)).await;
        self.clock.advance(TTL / 2);
        self.make(self.call("ttl"), Ok(1)).await;
        self.clock.advance(TTL / 2 - Duration::from_micros(1));
        self.make(self.call("ttl"), Ok(2)).await;
        self.clock.advance(Duration::from_micros(1));
        self.make(self.call("ttl"), Ok(3)).await;
        self.clock.advance(Duration::from_micros(1));
        self.make(self.call("ttl"), Ok(4)).await;
        self.make(self.call("ttl"), Ok(5)).await;
    }

    async fn forgotten(&mut self) {
        self.make(self.call("forget"), Ok(0)).await;
        self.make(self.call("forget"), Ok(1)).await;
        let record = self.engine.record("forget").key(&1);
        let settled = record.release("ada", "it is finished").await;
        self.tell(settled);
        self.make(self.call("forget"), Ok(2)).await;
        let settled = record.forget("ada", "a test").await;
        self.tell(settled);
        self.tell(
            record
                .get()
                .await
                .map(|seen| seen.map(|seen| seen.record.state)),
        );
        self.make(self.call("forget").payload(&"other"), Ok(3))
            .await;
        self.make(self.call("forget").payload(&"other"), Ok(4))
            .await;
        self.make(self.call("forget"), Ok(5)).await;
    }

    async fn versions(&mut self) {
        for version in [1_u32, 1, 2, 1, 2, 3, 2] {
            let call = self.call("version").version(&version);
            self.make(call, Ok(version)).await;
            let call = self.call("version").version(&version);
            self.make(call.on_stale(OnStale::Replay), Ok(version)).await;
        }
    }

    async fn errors(&mut self) {
        for code in 0..3 {
            self.make(self.call("stored"), Err::<u32, _>(Fail::Declined(code)))
                .await;
        }
        for name in ["released", "unknown"] {
            for code in 0..3 {
                let call = self
                    .call(name)
                    .on_error(on_error::Classify(move |_: &Fail| {
                        if name == "released" {
                            Disposition::Release
                        } else {
                            Disposition::Unknown
                        }
                    }));
                let runs = self.runs.clone();
                let body = async move {
                    runs.add();
                    Err::<u32, _>(Fail::Declined(code))
                };
                let told = call.run_detailed(body).await;
                self.tell(told);
            }
        }
        let record = self.engine.record("unknown").key(&1);
        let answer = Ok::<u32, Fail>(7);
        let settled = record.resolve(answer, "ada", "it has happened").await;
        self.tell(settled);
        for answer in 0..2 {
            self.make(self.call("unknown"), Ok::<u32, _>(answer)).await;
        }
    }

    async fn tombstones(&mut self) {
        for _ in 0..3 {
            self.make(self.call("nan"), Ok(f64::NAN)).await;
        }
    }

    async fn many(&mut self) {
        let mut calls = tokio::task::JoinSet::new();
        for caller in 0..64 {
            let runs = self.runs.clone();
            let call = self.call("many").run(async move {
                runs.add();
                tokio::task::yield_now().await;
                Ok::<_, Error>(caller)
            });
            calls.spawn(call);
        }
        let mut answers = calls.join_all().await;
        answers.dedup();
        assert_eq!(answers.len(), 1);
        self.tell("many");
        let (_, outcome) = self
            .call("many")
            .run_detailed(async { Ok::<_, Error>(0) })
            .await;
        assert_eq!(outcome.how, How::Replayed);
    }

    async fn closed(&mut self) {
        self.make(self.call("closed"), Ok(0)).await;
        self.engine.shutdown(TTL).await.unwrap();
        self.make(self.call("closed"), Ok(1)).await;
    }
}

async fn told(store: impl Store, clock: &ManualClock, cache: usize) -> Vec<String> {
    let builder = Engine::builder(store).cache(cache).cache_for(HOUR);
    let engine = builder.clock(clock.clone()).build().await.unwrap();
    let mut script = Script {
        engine,
        clock: clock.clone(),
        runs: Runs::default(),
        told: Vec::new(),
    };
    script.replays_and_mismatches().await;
    script.expires().await;
    script.forgotten().await;
    script.versions().await;
    script.errors().await;
    script.tombstones().await;
    script.many().await;
    script.closed().await;
    script.told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_are_told_the_same_with_a_cache_and_without() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for cache in [0, MIB] {
        let clock = ManualClock::new();
        let memory = MemoryStore::with_clock(clock.clone());
        all.push(told(memory, &clock, cache).await);
        let clock = ManualClock::new();
        let path = folder.path().join(format!("{cache}.db"));
        let sqlite = SqliteStore::options(path).clock(clock.clone());
        all.push(told(sqlite.open().await.unwrap(), &clock, cache).await);
    }
    let [memory, sqlite, cached_memory, cached_sqlite] = &all[..] else {
        panic!("{}", all.len());
    };
    assert!(memory.len() > 50);
    assert_eq!(memory, cached_memory);
    assert_eq!(sqlite, cached_sqlite);
}
