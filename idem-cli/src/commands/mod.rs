//! One file for each command.

mod check;
mod completions;
mod explain;
mod forget;
mod list;
mod migrate;
mod release;
mod resolve;
mod schema;
mod serve;
mod show;
mod stats;
mod sweep;
mod watch;

use crate::args::{Cli, Command};
use crate::failure::Failure;

/// Runs what the command line says.
pub(crate) async fn run(cli: Cli) -> Result<(), Failure> {
    let global = &cli.global;
    match &cli.command {
        Command::Migrate => migrate::run(global).await,
        Command::Schema(args) => schema::run(global, args).await,
        Command::Check(args) => check::run(global, args).await,
        Command::List(args) => list::run(global, args).await,
        Command::Show(args) => show::run(global, args).await,
        Command::Explain(args) => Box::pin(explain::run(global, args)).await,
        Command::Resolve(args) => resolve::run(global, args).await,
        Command::Release(args) => release::run(global, args).await,
        Command::Forget(args) => forget::run(global, args).await,
        Command::Sweep => sweep::run(global).await,
        Command::Stats(args) => stats::run(global, args).await,
        Command::Watch(args) => watch::run(global, args).await,
        Command::Serve(args) => serve::run(global, args).await,
        Command::Completions(args) => completions::run(args),
    }
}
