//! As much of a shell as transcripts need.

use std::io::Write as _;
use std::process::{Output, Stdio};

use super::{Place, idem};

/// Runs `idem …`, or `echo TEXT | idem …`.
pub(crate) fn run(typed: &str, place: &Place) -> Output {
    let words = words(typed);
    let (input, words) = match words.as_slice() {
        [echo, text, pipe, rest @ ..] if echo == "echo" && pipe == "|" => {
            (format!("{text}\n"), rest)
        }
        rest => (String::new(), rest),
    };
    let [program, arguments @ ..] = words else {
        panic!("no command: {typed}");
    };
    assert_eq!(program, "idem", "{typed}");
    let mut child = idem(place)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end before it has read anything.
    child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
    child.wait_with_output().unwrap()
}

/// Splits at spaces outside of single quotes.
fn words(typed: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for c in typed.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
