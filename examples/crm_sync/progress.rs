//! A progress bar of one line, on standard error and only if that is a terminal: a log file has no
//! use for it, and what is printed stays whole.

use std::io::IsTerminal as _;

const WIDTH: usize = 40;

pub(crate) struct Progress {
    total: usize,
    is_shown: bool,
}

impl Progress {
    pub(crate) fn new(total: usize) -> Self {
        Self {
            total,
            is_shown: std::io::stderr().is_terminal(),
        }
    }

    pub(crate) fn show(&self, done: usize) {
        if self.is_shown {
            let full = (done * WIDTH).checked_div(self.total).unwrap_or(WIDTH);
            let bar = "#".repeat(full) + &"-".repeat(WIDTH.saturating_sub(full));
            eprint!("\r[{bar}] {done} of {}", self.total);
        }
    }

    /// Leaves the line to what is printed next.
    pub(crate) fn end(&self) {
        if self.is_shown {
            eprint!("\r{:width$}\r", "", width = WIDTH + 30);
        }
    }
}
