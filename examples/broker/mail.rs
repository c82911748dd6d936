//! The second operation: sends what is in the outbox. It runs in a process of its own, and there
//! are two of them, which see the same rows.
//!
//! An e-mail leaves the database, so its operation is not in a transaction: it has a record of its
//! own, under the outbox row's id.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use idem::{Recovered, idempotent};

use super::BoxError;
use super::args::Options;
use super::books::Books;
use super::process::stopped;

/// How long to wait for new rows.
const PAUSE: Duration = Duration::from_millis(50);

/// Sends one e-mail.
#[idempotent(
    name = "payments.mail",
    key = id,
    payload = text,
    ttl = "14d",
    // Died between sending and recording: the mail server knows, so it is asked.
    on_unknown = recover(server.find(&id)),
    // A failed send may have arrived.
    on_error = unknown,
)]
async fn send(server: MailServer, id: String, text: String) -> Result<(), MailError> {
    server.deliver(&id, &text)
}

/// `mail`: sends until it is told to stop.
pub(crate) async fn run(options: Options) -> Result<(), BoxError> {
    let (books, engine) = Books::open(&options.store, &options.queue).await?;
    idem::install(engine.clone())?;
    let server = MailServer(options.mailbox);
    println!("ready");
    let mut stop = std::pin::pin!(stopped());
    loop {
        let rows = books.unsent().await?;
        let is_idle = rows.is_empty();
        let sent = idem::batch(rows, async |(id, customer, cents)| {
            let text = format!("{customer}: we have received {cents} cents");
            send(server.clone(), id.clone(), text).await?;
            Ok::<_, MailError>(id)
        });
        for result in sent.await {
            match result {
                Ok(id) => books.mark_sent(&id).await?,
                // It stays in the outbox, and the next round tries again.
                Err(error) => tracing::warn!(%error, "not sent"),
            }
        }
        if is_idle && tokio::time::timeout(PAUSE, &mut stop).await.is_ok() {
            break;
        }
    }
    engine.shutdown(Duration::from_secs(5)).await?;
    Ok(())
}

/// A file stands for the mail server: one line for each e-mail that it took.
#[derive(Clone, Debug)]
struct MailServer(PathBuf);

impl MailServer {
    fn deliver(&self, id: &str, text: &str) -> Result<(), MailError> {
        let mut file = self.file().map_err(MailError::Server)?;
        let line = format!("{id} {text}\n");
        file.write_all(line.as_bytes()).map_err(MailError::Server)
    }

    fn file(&self) -> std::io::Result<File> {
        OpenOptions::new().create(true).append(true).open(&self.0)
    }

    /// Whether it took this one.
    async fn find(&self, id: &str) -> Result<Recovered<()>, MailError> {
        let path = self.0.clone();
        let ids = tokio::task::spawn_blocking(move || taken(&path)).await;
        match ids.map_err(std::io::Error::other).and_then(|ids| ids) {
            Ok(ids) if ids.iter().any(|taken| taken == id) => Ok(Recovered::Done(())),
            Ok(_) => Ok(Recovered::NotDone),
            Err(error) => Err(MailError::Server(error)),
        }
    }
}

/// The ids of the e-mails in the file.
pub(super) fn taken(path: &Path) -> std::io::Result<Vec<String>> {
    Ok(std::fs::read_to_string(path)?
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect())
}

#[derive(Debug)]
enum MailError {
    Server(std::io::Error),
    Idem(idem::Error),
}

impl From<idem::Error> for MailError {
    fn from(error: idem::Error) -> Self {
        Self::Idem(error)
    }
}

impl std::fmt::Display for MailError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server(error) => write!(f, "the mail server: {error}"),
            Self::Idem(error) => error.fmt(f),
        }
    }
}
