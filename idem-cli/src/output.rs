//! Tables for people, JSON for programs, and lines that say how it went.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use comfy_table::{Cell, Color, Table, presets};
use idem::record::Standing;
use serde_json::Value;

use crate::failure::{Failure, scrubbed};

/// Prints a text on standard output. A reader that has gone away, as `head`
/// does, is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed("standard output cannot be written"))
        }
        _ => Ok(()),
    }
}

/// Prints one JSON document on a line of its own.
pub(crate) fn print_json(value: &Value) -> Result<(), Failure> {
    print(&format!("{value}\n"))
}

/// Prints one line on standard error.
pub(crate) fn say(line: &str) {
    // There is nobody else to tell.
    writeln!(io::stderr(), "{}", scrubbed(line)).ok();
}

/// Whether standard output is a terminal on which colours are wanted.
pub(crate) fn has_colors() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Lays out columns without borders.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<Cell>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if !has_colors() {
        table.force_no_tty();
    }
    if !header.is_empty() {
        table.set_header(header.to_vec());
    }
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let mut text = String::new();
    for line in table.to_string().lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A cell with text that somebody else wrote: nothing in it moves the cursor.
pub(crate) fn cell(text: impl AsRef<str>) -> Cell {
    Cell::new(plain(text.as_ref()))
}

/// Replaces control characters.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// A cell that says where a record stands; none is expired.
pub(crate) fn standing_cell(standing: Option<Standing>) -> Cell {
    let color = match standing {
        Some(Standing::Unknown) => Color::Red,
        Some(Standing::Lapsed) => Color::Yellow,
        Some(Standing::InProgress) => Color::Cyan,
        Some(Standing::Completed | Standing::Tombstone) => Color::Green,
        Some(Standing::Released) | None => Color::DarkGrey,
    };
    Cell::new(standing_name(standing)).fg(color)
}

/// The word for where a record stands.
pub(crate) fn standing_name(standing: Option<Standing>) -> &'static str {
    match standing {
        Some(Standing::Unknown) => "unknown",
        Some(Standing::Lapsed) => "lapsed",
        Some(Standing::InProgress) => "in progress",
        Some(Standing::Completed) => "completed",
        Some(Standing::Tombstone) => "tombstone",
        Some(Standing::Released) => "released",
        None => "expired",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_moves_no_cursor() {
        let text = table(&["LABEL"], vec![vec![cell("a\u{1b}[2Jb\nc")]]);
        assert_eq!(text, "LABEL\na\u{fffd}[2Jb\u{fffd}c\n");
    }
}
