//! The command line, parsed by hand: a subcommand, then `--name value` pairs.

use std::collections::HashMap;
use std::path::PathBuf;

use super::watch::Moment;

pub(crate) const USAGE: &str = "\
usage: [--broker URL] [--store URL]    the demo
The broker is by default the one that `scripts/stores up` has told the environment. A store is
sqlite://PATH or, with `--features servers`, postgres://USER@HOST/DATABASE. `consume` and `mail` are
the processes that the demo starts.";

#[derive(Debug)]
pub(crate) enum Command {
    Demo(Demo),
    Consume(Options),
    Mail(Options),
    Help,
}

#[derive(Debug)]
pub(crate) struct Demo {
    pub(crate) broker: String,
    pub(crate) store: Option<String>,
}

/// What the processes of one demo are told.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) broker: String,
    pub(crate) store: String,
    /// The queue's name, and the engine's namespace.
    pub(crate) queue: String,
    pub(crate) ledger: PathBuf,
    pub(crate) mailbox: PathBuf,
    /// Stands still there, to be killed.
    pub(crate) stand: Option<Moment>,
}

impl Command {
    /// `variable` is where the environment has the broker's URL.
    #[expect(clippy::disallowed_methods, reason = "a program, not the library")]
    pub(crate) fn parse(
        words: impl Iterator<Item = String>,
        variable: &str,
    ) -> Result<Self, String> {
        let mut words = words.peekable();
        let command = words.next_if(|word| !word.starts_with("--"));
        if words.peek().is_some_and(|word| word == "--help") {
            return Ok(Self::Help);
        }
        let mut given = Given::collect(words)?;
        let parsed = match command.as_deref() {
            None => {
                let broker = given.0.remove("broker");
                let broker = broker.or_else(|| std::env::var(variable).ok());
                Self::Demo(Demo {
                    broker: broker
                        .ok_or_else(|| format!("--broker is missing, and {variable} is not set"))?,
                    store: given.0.remove("store"),
                })
            }
            Some("consume") => Self::Consume(given.options()?),
            Some("mail") => Self::Mail(given.options()?),
            Some("help") => Self::Help,
            Some(other) => return Err(format!("no such command: {other}")),
        };
        match given.0.keys().next() {
            None => Ok(parsed),
            Some(name) => Err(format!("--{name}: unknown here")),
        }
    }
}

impl Options {
    /// The words that [`Command::parse`] reads.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut add =
            |name: &str, value: &str| words.extend([format!("--{name}"), value.to_owned()]);
        add("broker", &self.broker);
        add("store", &self.store);
        add("queue", &self.queue);
        add("ledger", &self.ledger.to_string_lossy());
        add("mailbox", &self.mailbox.to_string_lossy());
        if let Some(moment) = self.stand {
            add("stand", moment.name());
        }
        words
    }
}

struct Given(HashMap<String, String>);

impl Given {
    fn collect(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut pairs = HashMap::new();
        while let Some(word) = words.next() {
            let name = word
                .strip_prefix("--")
                .ok_or_else(|| format!("expected an option, found {word}"))?;
            let value = words
                .next()
                .ok_or_else(|| format!("--{name} needs a value"))?;
            pairs.insert(name.to_owned(), value);
        }
        Ok(Self(pairs))
    }

    fn required(&mut self, name: &str) -> Result<String, String> {
        self.0
            .remove(name)
            .ok_or_else(|| format!("--{name} is missing"))
    }

    fn options(&mut self) -> Result<Options, String> {
        let stand = self.0.remove("stand").map(|name| {
            Moment::named(&name).ok_or_else(|| format!("--stand: {name} is no moment"))
        });
        Ok(Options {
            broker: self.required("broker")?,
            store: self.required("store")?,
            queue: self.required("queue")?,
            ledger: self.required("ledger")?.into(),
            mailbox: self.required("mailbox")?.into(),
            stand: stand.transpose()?,
        })
    }
}
