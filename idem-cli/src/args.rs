//! The command line, as clap reads it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use idem::Ttl;
use idem::record::Standing;
use idem::store::Finding;

use crate::{duration, finding};

const AFTER: &str = "\
Exit codes:
  0  done
  1  the store failed
  2  wrong usage
  3  nothing was found
  4  refused: dangerous without --force, or the record has changed meanwhile
  5  `check` found what voids at-most-once, or what no program starts on

A store's URL is `sqlite://PATH`, `postgres://…`, `mysql://…`, `mariadb://…`,
`redis://…` or `redis-cluster://HOST:PORT,…`. This build has no TLS.
Only `migrate` creates anything. Keys, arguments and answers are never shown,
except the answer by `show --reveal` and your own input by `explain`.";

/// Look at the records of idempotent calls, and settle them.
#[derive(Parser)]
#[command(name = "idem", version, after_help = AFTER, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Args)]
pub(crate) struct Global {
    /// The store's URL
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "IDEM_STORE",
        hide_env_values = true
    )]
    pub(crate) store: Option<String>,
    /// The namespace of the programs
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "IDEM_NAMESPACE",
        hide_env_values = true,
        default_value = "default"
    )]
    pub(crate) namespace: String,
    /// A file with the programs' secret: its bytes, without one newline at the end
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = "IDEM_SECRET_FILE",
        hide_env_values = true
    )]
    pub(crate) secret_file: Option<PathBuf>,
    #[arg(
        help = "The schema of the tables (Postgres), or their database (MySQL)",
        long,
        global = true,
        value_name = "NAME",
        env = "IDEM_SCHEMA",
        hide_env_values = true
    )]
    pub(crate) schema: Option<String>,
    /// What tables or keys begin with; else `idem_`, on Redis `idem`
    #[arg(
        long,
        global = true,
        value_name = "TEXT",
        env = "IDEM_PREFIX",
        hide_env_values = true
    )]
    pub(crate) prefix: Option<String>,
    /// How much later than its lease an attempt counts as lapsed; as in the programs
    #[arg(long, global = true, value_name = "TIME", default_value = "5s", value_parser = duration::parse)]
    pub(crate) grace: Duration,
    /// Print JSON, for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create the schema, or bring it up to date
    Migrate,
    /// Print the schema as SQL, for people who run their own migrations
    Schema(Schema),
    /// Say what a program would find about the store when it starts
    Check(Check),
    /// List records; without --state, those that need somebody
    List(List),
    /// Show one record's life, and what was changed in it by hand
    Show(Show),
    /// Print what a key and a payload become: canonical text and digests
    Explain(Explain),
    /// Settle a record whose outcome was found out
    Resolve(Resolve),
    /// Say that nothing happened: the next call runs
    Release(Release),
    /// Make a record as if its key had never been used: the next call runs
    Forget(Forget),
    /// Delete finished records that have expired
    Sweep,
    /// Count records
    Stats(Stats),
    /// Show what is open, again and again until Ctrl-C
    Watch(Watch),
    /// Serve the page for operators
    Serve(Serve),
    /// Print completions for a shell
    Completions(Completions),
}

#[derive(Args)]
pub(crate) struct Schema {
    /// The kind of database
    #[arg(long, value_enum)]
    pub(crate) dialect: Dialect,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
    #[value(alias = "mariadb", help = "MySQL; its statements run on MariaDB too")]
    Mysql,
}

#[derive(Args)]
pub(crate) struct Check {
    /// A finding that is known and accepted, by its name; again for more
    #[arg(long, value_name = "FINDING", value_parser = finding::parse)]
    pub(crate) accept_loss: Vec<Finding>,
}

#[derive(Args)]
pub(crate) struct List {
    /// Where the records stand, several with commas
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_values = ["unknown", "lapsed"],
        hide_default_value = true
    )]
    pub(crate) state: Vec<StateArg>,
    /// Of this operation only
    #[arg(long, value_name = "NAME")]
    pub(crate) operation: Option<String>,
    /// Only those that have stood there for longer, such as `1h30m`
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) older_than: Option<Duration>,
    /// The most records of each standing
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
}

/// The words for [`Standing`]s.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateArg {
    /// The effect may or may not have happened
    Unknown,
    /// The attempt is late: dead, paused or cut off
    Lapsed,
    /// An attempt runs
    InProgress,
    /// An answer is recorded, or the work is done without one to give back
    Done,
    /// Nothing happened; the next call runs
    Released,
}

impl StateArg {
    pub(crate) fn standings(self) -> &'static [Standing] {
        match self {
            Self::Unknown => &[Standing::Unknown],
            Self::Lapsed => &[Standing::Lapsed],
            Self::InProgress => &[Standing::InProgress],
            Self::Done => &[Standing::Completed, Standing::Tombstone],
            Self::Released => &[Standing::Released],
        }
    }
}

/// A call, as its program makes it.
#[derive(Args)]
pub(crate) struct Call {
    /// The operation's name
    #[arg(long, value_name = "NAME")]
    pub(crate) operation: String,
    /// The key, as JSON: of `key = (a, b)` the array of both
    #[arg(long, value_name = "JSON")]
    pub(crate) key: String,
    /// The scope, as JSON, if the function has one
    #[arg(long, value_name = "JSON")]
    pub(crate) scope: Option<String>,
}

#[derive(Args)]
pub(crate) struct Show {
    /// The record's id, or its first digits, at least 4
    #[arg(required_unless_present = "operation", conflicts_with_all = ["operation", "key", "scope"])]
    pub(crate) id: Option<String>,
    /// Instead of the id: the operation's name
    #[arg(long, value_name = "NAME", requires = "key")]
    pub(crate) operation: Option<String>,
    /// Instead of the id: the key, as JSON
    #[arg(long, value_name = "JSON", requires = "operation")]
    pub(crate) key: Option<String>,
    /// Instead of the id: the scope, as JSON, if the function has one
    #[arg(long, value_name = "JSON", requires = "operation")]
    pub(crate) scope: Option<String>,
    /// Show the recorded answer and the versions too
    #[arg(long)]
    pub(crate) reveal: bool,
}

#[derive(Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) call: Call,
    /// The payload, as JSON: of `payload = (a, b)` the array of both
    #[arg(long, value_name = "JSON")]
    pub(crate) payload: Option<String>,
    /// The payload is one value that happens to be a list, not a tuple
    #[arg(long, requires = "payload")]
    pub(crate) one_element: bool,
    /// Compare with what the store has recorded
    #[arg(long)]
    pub(crate) compare: bool,
}

/// Who changes a record by hand, and why; kept for ever.
#[derive(Args)]
pub(crate) struct Note {
    /// Who you are
    #[arg(long, value_name = "NAME", env = "IDEM_BY", hide_env_values = true)]
    pub(crate) by: String,
    /// Why, for whoever looks at the record later
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: String,
}

#[derive(Args)]
pub(crate) struct Resolve {
    /// The record's id, or its first digits, at least 4
    pub(crate) id: String,
    /// It happened: the JSON of its `Ok` value, kept byte for byte; `-` reads it
    #[arg(
        long,
        value_name = "JSON",
        conflicts_with = "not_done",
        required_unless_present = "not_done",
        allow_hyphen_values = true
    )]
    pub(crate) done: Option<String>,
    /// Nothing happened: the next call runs
    #[arg(long)]
    pub(crate) not_done: bool,
    #[command(flatten)]
    pub(crate) note: Note,
    /// How long it is kept from now; else what happened for ever, the rest 24h
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ttl)]
    pub(crate) ttl: Option<Ttl>,
    /// Also if its attempt still holds its lease
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Args)]
pub(crate) struct Release {
    /// The record's id, or its first digits, at least 4
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) note: Note,
    /// How long it is kept from now; else 24h
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ttl)]
    pub(crate) ttl: Option<Ttl>,
    /// Also if its attempt still holds its lease, or its work is done
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Args)]
pub(crate) struct Forget {
    /// The record's id, or its first digits, at least 4
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) note: Note,
    /// Also if its attempt still holds its lease, or its work is done
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Args)]
pub(crate) struct Stats {
    /// Count finished records too, which may read all of them
    #[arg(long)]
    pub(crate) finished: bool,
}

#[derive(Args)]
pub(crate) struct Watch {
    /// How often to look
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration::parse)]
    pub(crate) every: Duration,
    /// The most records of each standing
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) limit: u32,
}

#[derive(Args)]
pub(crate) struct Serve {
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8460")]
    pub(crate) listen: SocketAddr,
    /// Let everybody in who is on this host, without a token
    #[arg(long, conflicts_with = "token_file")]
    pub(crate) no_auth: bool,
    /// A file with the token that visitors need
    #[arg(
        long,
        value_name = "PATH",
        env = "IDEM_TOKEN_FILE",
        hide_env_values = true
    )]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}
