//! The effect of a body, outside of the library: one line appended to a file.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub(crate) struct Ledger(PathBuf);

impl Ledger {
    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Has the effect: one write of one line.
    pub(crate) fn append(&self, line: &str) {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.0)
            .unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        match File::open(&self.0) {
            Ok(file) => std::io::read_to_string(file)
                .unwrap()
                .lines()
                .map(str::to_owned)
                .collect(),
            Err(_) => Vec::new(),
        }
    }
}
