//! A child process: this same executable with other arguments.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::client::eventually;
use crate::BoxError;

const START: Duration = Duration::from_secs(10);

/// Killed when dropped, however the demo ends.
pub(super) struct Process {
    child: Child,
    url: String,
}

impl Process {
    /// Starts it, and returns once it answers. Its log goes to `folder`.
    pub(super) async fn start(name: &str, words: &[&str], folder: &Path) -> Result<Self, BoxError> {
        let log = folder.join(format!("{name}.log"));
        let mut child = Command::new(std::env::current_exe()?)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .kill_on_drop(true)
            .spawn()?;

        // It was told to listen on port 0; its first line says what it got.
        let stdout = child.stdout.take().ok_or("stdout is piped")?;
        let mut lines = BufReader::new(stdout).lines();
        let line = timeout(START, lines.next_line()).await??;
        let Some(url) = line
            .as_deref()
            .and_then(|line| line.strip_prefix("listening on "))
        else {
            return Err(format!("{name} did not start: {}", std::fs::read_to_string(&log)?).into());
        };
        let health = format!("{url}/health");
        eventually(START, &format!("{name} to be healthy"), async || {
            let answer = super::client::http()?.get(&health).send().await;
            Ok(answer
                .is_ok_and(|answer| answer.status().is_success())
                .then_some(()))
        })
        .await?;
        Ok(Self {
            child,
            url: url.to_owned(),
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// `kill -9`: no handler runs, nothing is flushed, nothing is given back.
    pub(super) async fn kill(&mut self) -> Result<(), BoxError> {
        Ok(self.child.kill().await?)
    }
}
