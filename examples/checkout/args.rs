//! The command line, parsed by hand: a subcommand, then `--name value` pairs.

use std::time::Duration;

pub(crate) const USAGE: &str = "\
usage: checkout                        the demo: a gateway, servers and a client that breaks things
       checkout gateway --addr HOST:PORT
       checkout serve   --addr HOST:PORT --gateway URL --store sqlite://PATH [--lease 2s] [--ttl 24h]

Port 0 takes a free port; the first line printed says which. Durations: 500ms, 2s, 15m, 24h.";

#[derive(Debug)]
pub(crate) enum Command {
    Demo,
    Gateway { addr: String },
    Serve(Serve),
    Help,
}

/// The options of one checkout server.
#[derive(Debug)]
pub(crate) struct Serve {
    pub(crate) addr: String,
    pub(crate) gateway: String,
    pub(crate) store: String,
    /// How long a server that died keeps its orders to itself.
    pub(crate) lease: Duration,
    /// How long an answer is kept for late retries.
    pub(crate) ttl: Duration,
}

impl Command {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let Some(command) = words.next() else {
            return Ok(Self::Demo);
        };
        let mut options = Options::collect(words)?;
        let parsed = match command.as_str() {
            "gateway" => Self::Gateway {
                addr: options.required("addr")?,
            },
            "serve" => Self::Serve(Serve {
                addr: options.required("addr")?,
                gateway: options.required("gateway")?,
                store: options.required("store")?,
                lease: options.duration("lease", "2s")?,
                ttl: options.duration("ttl", "24h")?,
            }),
            "help" | "--help" | "-h" => Self::Help,
            other => return Err(format!("no such command: {other}")),
        };
        options.none_left()?;
        Ok(parsed)
    }
}

struct Options(Vec<(String, String)>);

impl Options {
    fn collect(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut pairs = Vec::new();
        while let Some(word) = words.next() {
            let name = word
                .strip_prefix("--")
                .ok_or_else(|| format!("expected an option, found {word}"))?;
            let value = words
                .next()
                .ok_or_else(|| format!("--{name} needs a value"))?;
            pairs.push((name.to_owned(), value));
        }
        Ok(Self(pairs))
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(found, _)| found == name)?;
        Some(self.0.swap_remove(at).1)
    }

    fn required(&mut self, name: &str) -> Result<String, String> {
        self.take(name)
            .ok_or_else(|| format!("--{name} is missing"))
    }

    fn duration(&mut self, name: &str, default: &str) -> Result<Duration, String> {
        let text = self.take(name).unwrap_or_else(|| default.to_owned());
        duration(&text).ok_or_else(|| format!("--{name}: {text} is not a duration like 2s"))
    }

    fn none_left(self) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(format!("--{name}: unknown here, or given twice")),
        }
    }
}

fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let count: u64 = count.parse().ok()?;
    count.checked_mul(unit_ms).map(Duration::from_millis)
}
