//! Transcripts: a file of commands and what they print. Each is played against
//! a store that real engines have filled, and compared as a whole;
//! `IDEM_OVERWRITE=1` writes it anew.

pub(crate) mod filled;
mod normal;
mod serving;
mod shell;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output};

pub(crate) use self::normal::normal;
pub(crate) use self::serving::serves;

/// Where a store is.
pub(crate) struct Place {
    pub(crate) url: String,
    /// What keeps it apart from others in the same database.
    pub(crate) apart: Option<Apart>,
}

/// How a store is kept apart.
#[allow(dead_code, reason = "a file needs neither")]
pub(crate) enum Apart {
    Schema(String),
    Prefix(String),
}

/// The command, in an environment of its own.
pub(crate) fn idem(place: &Place) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_idem"));
    command
        .env_clear()
        .env("TZ", "UTC")
        .env("IDEM_STORE", &place.url)
        .env("IDEM_NAMESPACE", "shop");
    match &place.apart {
        Some(Apart::Schema(schema)) => command.env("IDEM_SCHEMA", schema),
        Some(Apart::Prefix(prefix)) => command.env("IDEM_PREFIX", prefix),
        None => &mut command,
    };
    command
}

/// What a command printed: on standard output, then on standard error.
pub(crate) fn printed(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    text(&output.stdout) + &text(&output.stderr)
}

/// Plays `cmd/NAME.txt`.
pub(crate) fn play(name: &str, place: &Place) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cmd")
        .join(format!("{name}.txt"));
    let expected = std::fs::read_to_string(&path).unwrap();
    let mut found = String::new();
    for line in expected.lines() {
        if line.starts_with("# ") {
            writeln!(found, "{line}").unwrap();
        } else if let Some(typed) = line.strip_prefix("$ ") {
            let output = shell::run(typed, place);
            let printed = printed(&output);
            assert!(!printed.contains('\u{1b}'), "no colours: {printed:?}");
            write!(found, "$ {typed}\n{}", normal(&printed)).unwrap();
            if !output.status.success() {
                writeln!(found, "[exit code {}]", output.status.code().unwrap()).unwrap();
            }
            found.push('\n');
        }
    }
    if std::env::var_os("IDEM_OVERWRITE").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    assert!(
        found == expected,
        "{name}.txt is not what is printed (IDEM_OVERWRITE=1 writes it anew):\n{found}"
    );
}
