//! The processes of the demo: this program again, with other words.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::BoxError;
use super::args::Options;

/// Longer than a process ever takes to say what is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns when this process is told to stop, or whoever has started it is gone: at the end of its
/// standard input.
pub(crate) async fn stopped() {
    let mut stdin = tokio::io::stdin();
    let mut byte = [0];
    while stdin.read(&mut byte).await.is_ok_and(|read| read > 0) {}
}

pub(super) struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts this program again, and returns when it says that it is ready.
    pub(super) async fn start(command: &str, options: &Options) -> Result<Self, BoxError> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(command)
            .args(options.words())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().ok_or("stdout is piped")?;
        let lines = BufReader::new(stdout).lines();
        let mut process = Self { child, lines };
        process.says("ready").await?;
        Ok(process)
    }

    /// Waits for a line that begins so.
    pub(super) async fn says(&mut self, beginning: &str) -> Result<(), BoxError> {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        match line.map_err(|_| format!("a process did not say in time: {beginning}"))?? {
            Some(line) if line.starts_with(beginning) => Ok(()),
            other => Err(format!("a process said {other:?}, not: {beginning}").into()),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id().unwrap_or(0)
    }

    /// SIGKILL: no handler runs, nothing is flushed, nothing is given back.
    pub(super) async fn kill(mut self) -> Result<(), BoxError> {
        Ok(self.child.kill().await?)
    }

    /// Tells it to stop, and waits until it has.
    pub(super) async fn stop(mut self) -> Result<(), BoxError> {
        drop(self.child.stdin.take());
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let status = ended.map_err(|_| "a process did not stop in time")??;
        match status.success() {
            true => Ok(()),
            false => Err(format!("a process has failed: {status}").into()),
        }
    }
}
