//! The demo: an import that is killed, the one that goes on, and updates out of order.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::BoxError;
use crate::crm::Crm;
use crate::customer::{generate, read};
use crate::import::{import, install};
use crate::progress::Progress;
use crate::updates::out_of_order;

const CUSTOMERS: u32 = 8_000;
const KILLED_AFTER: u32 = 7_200;
const CHANGED: usize = 100;
/// The most round trips that it may take to find out where to go on.
const TRIPS: usize = 10;

pub(crate) async fn run(store: Option<String>) -> Result<(), BoxError> {
    let folder = tempfile::Builder::new().prefix("crm-sync-").tempdir()?;
    let in_folder = |name: &str| format!("sqlite://{}", folder.path().join(name).display());
    // A server has one database for both; two files do not wait for each other.
    let crm_url = store.clone().unwrap_or_else(|| in_folder("crm.db"));
    let store = store.unwrap_or_else(|| in_folder("idem.db"));
    // A store may have the records of the last demo.
    let namespace = folder.path().file_name().map_or_else(
        || "crm-sync".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    );
    let file = folder.path().join("customers.jsonl");
    generate(&file, CUSTOMERS)?;
    println!("{CUSTOMERS} customers in the file");

    let crm = Crm::anew(&crm_url).await?;
    kill_an_import(&file, &store, &crm_url, &namespace).await?;
    Progress::new(0).end();
    println!("killed with SIGKILL after the record of number {KILLED_AFTER}");
    let before = crm.bodies().await?;

    // As the next process does that is started with the same file.
    let engine = install(&store, &namespace).await?;
    let customers = read(&file)?;
    let bar = Progress::new(customers.len());
    let imported = import(&crm, customers.clone(), async |done| bar.show(done)).await?;
    bar.end();
    println!(
        "{} done, {} to do, found in {} round trips",
        imported.done_before, imported.done_now, imported.trips
    );
    let after = crm.bodies().await? - before;
    println!("{after} bodies ran after the restart");
    let (rows, twice) = (crm.rows().await?, crm.twice().await?);
    match twice {
        0 => println!("{rows} rows, none twice"),
        twice => println!("{rows} rows, {twice} of them twice"),
    }

    let imports = crm.bodies().await?;
    let updated = out_of_order(&crm, &customers[..CHANGED]).await?;
    let updates = crm.bodies().await? - imports;
    println!(
        "{} updates, the newest first: {} customers at their newest version, {} set back",
        updated.sent, updated.newest, updated.set_back
    );
    println!(
        "{updates} bodies ran for them, {} updates were stale",
        updated.stale
    );
    engine.shutdown(std::time::Duration::from_secs(25)).await?;

    let rest = i64::from(CUSTOMERS - KILLED_AFTER);
    let holds = before == i64::from(KILLED_AFTER)
        && after == rest
        && rows == i64::from(CUSTOMERS)
        && twice == 0
        && crm.twice().await? == 0
        && imported.trips <= TRIPS
        && (updated.newest, updated.set_back) == (CHANGED, 0)
        // Of four updates of a customer one runs, two are older, and one is the first once more.
        && (usize::try_from(updates)?, updated.stale) == (CHANGED, 2 * CHANGED);
    if holds {
        Ok(())
    } else {
        Err("a line above is not as it should be".into())
    }
}

/// Runs the import in a process of its own until it has recorded so many, and kills it before it
/// begins the next.
async fn kill_an_import(
    file: &Path,
    store: &str,
    crm: &str,
    namespace: &str,
) -> Result<(), BoxError> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["import", "--store", store, "--crm", crm])
        .args(["--namespace", namespace])
        .args(["--stop-after", &KILLED_AFTER.to_string(), "--file"])
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = child.stdout.take().ok_or("stdout is piped")?;
    let first = BufReader::new(stdout).lines().next_line().await?;
    // SIGKILL: no handler runs, nothing is flushed, nothing is given back.
    child.kill().await?;
    match first {
        Some(line) if line == format!("stopped after {KILLED_AFTER}") => Ok(()),
        other => Err(format!("the import did not get there: {other:?}").into()),
    }
}
