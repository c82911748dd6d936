//! This program once more, as a process that is told what to do line by line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use libtest_mimic::Failed;

use crate::ledger::Ledger;

pub(crate) struct Partner {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Partner {
    /// Starts it in a role, on a place and a ledger, and waits until it is ready.
    pub(crate) fn start(
        role: &str,
        place: &str,
        ledger: &Ledger,
        more: &[String],
    ) -> Result<Self, Failed> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([role, place])
            .arg(ledger.path())
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut partner = Self {
            stdin: child.stdin.take().ok_or("no input")?,
            stdout: BufReader::new(child.stdout.take().ok_or("no output")?),
            child,
        };
        assert_eq!(partner.line()?, "ready");
        Ok(partner)
    }

    pub(crate) fn tell(&mut self, line: &str) -> Result<(), Failed> {
        Ok(writeln!(self.stdin, "{line}")?)
    }

    pub(crate) fn line(&mut self) -> Result<String, Failed> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    pub(crate) fn end(mut self) -> Result<(), Failed> {
        drop(self.stdin);
        assert!(self.child.wait()?.success(), "a process failed");
        Ok(())
    }
}
