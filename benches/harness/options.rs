//! The command line of the benchmarks.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::time::Duration;

use crate::BoxError;

/// What was asked for.
#[derive(Debug)]
pub struct Options {
    /// Names of stores; empty is all.
    pub stores: Vec<String>,
    /// Interleaved rounds of each comparison.
    pub rounds: usize,
    /// Length of one side of a round.
    pub slice: Duration,
    /// Numbers of records; empty is the benchmark's own.
    pub records: Vec<u64>,
    /// Whether a short run is wanted, whose figures only show that it works.
    pub quick: bool,
    json: Option<File>,
}

impl Options {
    /// Reads `--stores a,b`, `--rounds n`, `--slice ms`, `--records n,n`, `--quick`
    /// and `--json path`. Lines are
    /// appended to that file, one JSON object each.
    ///
    /// # Errors
    /// If there is another word, or a value that cannot be read.
    pub fn of_command_line() -> Result<Self, BoxError> {
        let mut options = Self {
            stores: Vec::new(),
            rounds: 24,
            slice: Duration::from_millis(100),
            records: Vec::new(),
            quick: false,
            json: None,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--stores" => options.stores = value()?.split(',').map(str::to_owned).collect(),
                "--rounds" => options.rounds = value()?.parse::<usize>()?.max(1),
                "--slice" => options.slice = Duration::from_millis(value()?.parse()?),
                "--records" => {
                    let numbers = value()?;
                    let numbers = numbers.split(',').map(str::parse);
                    options.records = numbers.collect::<Result<_, _>>()?;
                }
                "--quick" => options.quick = true,
                "--json" => {
                    let file = OpenOptions::new()
                        .create(true)
                        .append(true)
                        .open(value()?)?;
                    options.json = Some(file);
                }
                // Cargo's own.
                "--bench" => {}
                _ => return Err(format!("there is no option '{word}'").into()),
            }
        }
        if options.quick {
            options.rounds = options.rounds.min(4);
            options.slice = options.slice.min(Duration::from_millis(30));
        }
        Ok(options)
    }

    /// Whether this store is asked for.
    #[must_use]
    pub fn wants(&self, store: &str) -> bool {
        self.stores.is_empty() || self.stores.iter().any(|name| name == store)
    }

    /// Writes a line for programs.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn note(&self, line: &serde_json::Value) -> Result<(), BoxError> {
        if let Some(mut file) = self.json.as_ref() {
            writeln!(file, "{line}")?;
        }
        Ok(())
    }
}

/// The URL of a server that `scripts/stores` has started: `postgres`, `mysql` or `redis`.
///
/// # Errors
/// If it has not.
#[expect(
    clippy::disallowed_methods,
    reason = "where the servers are is told by the environment"
)]
pub fn url(server: &str) -> Result<String, BoxError> {
    let name = format!("IDEM_TEST_{}_URL", server.to_uppercase());
    std::env::var(&name).map_err(|_| {
        let start = "eval \"$(scripts/stores up --durable postgres mariadb redis)\"";
        format!("{name} is not set: {start}").into()
    })
}
