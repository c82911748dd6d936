//! The command line, parsed by hand: a subcommand, then `--name value` pairs.

use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
usage: crm_sync [--store URL]          the demo: an import that is killed and goes on
       crm_sync import --file PATH --store URL --crm URL [--namespace crm] [--stop-after N]

A URL is sqlite://PATH or, with `--features servers`, postgres://USER@HOST/DATABASE. A file has one
customer a line: {\"id\": \"c1\", \"name\": \"Kim\", \"email\": \"kim@example.com\", \"updated_at\": 1750000000}.";

#[derive(Debug)]
pub(crate) enum Command {
    Demo { store: Option<String> },
    Import(Import),
    Help,
}

/// The options of one import.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) file: PathBuf,
    pub(crate) store: String,
    pub(crate) crm: String,
    pub(crate) namespace: String,
    /// Stands still after so many, to be killed there.
    pub(crate) stop_after: Option<usize>,
}

impl Command {
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut words = words.peekable();
        let command = words.next_if(|word| !word.starts_with("--"));
        if words.peek().is_some_and(|word| word == "--help") {
            return Ok(Self::Help);
        }
        let mut options = Options::collect(words)?;
        let parsed = match command.as_deref() {
            None => Self::Demo {
                store: options.take("store"),
            },
            Some("import") => Self::Import(Import {
                file: options.required("file")?.into(),
                store: options.required("store")?,
                crm: options.required("crm")?,
                namespace: options
                    .take("namespace")
                    .unwrap_or_else(|| "crm".to_owned()),
                stop_after: options
                    .take("stop-after")
                    .map(|text| {
                        text.parse()
                            .map_err(|_| format!("--stop-after: {text} is no number"))
                    })
                    .transpose()?,
            }),
            Some("help") => Self::Help,
            Some(other) => return Err(format!("no such command: {other}")),
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

    fn none_left(self) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(format!("--{name}: unknown here, or given twice")),
        }
    }
}
