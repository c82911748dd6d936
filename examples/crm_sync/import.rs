//! The job: asks what is still to be done, and does it.

use std::collections::HashMap;
use std::io::Write as _;

use idem::Engine;
use idem::inbox::Unseen;

use crate::BoxError;
use crate::apply::{OPERATION, apply_customer};
use crate::args::Import;
use crate::crm::Crm;
use crate::customer::{Customer, Key, read};
use crate::progress::Progress;

/// After so many customers the progress is told.
const PAGE: usize = 100;

/// What an import found to do, and did.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) done_before: usize,
    pub(crate) done_now: usize,
    pub(crate) trips: usize,
}

/// Opens the store and makes its engine that of every annotated call in this process.
pub(crate) async fn install(store: &str, namespace: &str) -> Result<Engine, BoxError> {
    let builder = match store.split_once("://") {
        Some(("sqlite", path)) => Engine::builder(idem::store::SqliteStore::open(path).await?),
        #[cfg(feature = "servers")]
        Some(("postgres" | "postgresql", _)) => {
            let postgres = idem::store::PostgresStore::connect(store).await?;
            postgres.migrate().await?;
            Engine::builder(postgres)
        }
        _ => {
            return Err(
                "a store is sqlite://PATH or, with `--features servers`, postgres://…".into(),
            );
        }
    };
    let engine = builder.namespace(namespace).build().await?;
    idem::install(engine.clone())?;
    Ok(engine)
}

/// Applies those customers that are not applied yet. `told` hears how many that are so far, page by
/// page, and is awaited before the next one begins.
pub(crate) async fn import(
    crm: &Crm,
    customers: Vec<Customer>,
    mut told: impl AsyncFnMut(usize),
) -> Result<Imported, BoxError> {
    // Where to go on: not a cursor that might lie, but the records themselves.
    let unseen: Unseen<Key> = idem::inbox(OPERATION)
        .unseen(customers.iter().map(Customer::key))
        .await?;
    let mut imported = Imported {
        done_before: unseen.finished,
        done_now: 0,
        trips: unseen.trips,
    };
    let mut by_key: HashMap<Key, Customer> = customers
        .into_iter()
        .map(|customer| (customer.key(), customer))
        .collect();
    // With those that were cut off in the middle: `on_unknown` says what becomes of them.
    let unfinished = unseen.unfinished();
    for page in unfinished.chunks(PAGE) {
        let page = page.iter().filter_map(|key| by_key.remove(key));
        let results = idem::batch(page, |customer| apply_customer(crm.clone(), customer)).await;
        for result in results {
            // What has failed is to be done by the next import; this one tells the first of it.
            result?;
            imported.done_now += 1;
        }
        told(imported.done_before + imported.done_now).await;
    }
    Ok(imported)
}

/// `crm_sync import`: the job as a process of its own.
pub(crate) async fn run(options: Import) -> Result<(), BoxError> {
    let engine = install(&options.store, &options.namespace).await?;
    let crm = Crm::open(&options.crm).await?;
    let customers = read(&options.file)?;
    let bar = Progress::new(customers.len());
    let imported = import(&crm, customers, async |done| {
        bar.show(done);
        if options.stop_after == Some(done) {
            stand_still(done).await;
        }
    })
    .await?;
    bar.end();
    engine.shutdown(std::time::Duration::from_secs(25)).await?;
    println!(
        "{} were done before, {} are done now",
        imported.done_before, imported.done_now
    );
    Ok(())
}

/// For the demo, which kills this process here.
async fn stand_still(done: usize) {
    println!("stopped after {done}");
    if std::io::stdout().flush().is_ok() {
        std::future::pending::<()>().await;
    }
}
