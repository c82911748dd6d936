//! The `idem` command.

mod args;
mod commands;
mod connect;
mod duration;
mod failure;
mod finding;
mod json;
mod operators;
mod output;
mod settled;
mod shown;
mod time;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::args::Cli;
use crate::failure::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return wrong_usage(&error),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(commands::run(cli)),
        Err(_) => Err(Failure::failed("the runtime could not start")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, message }) => {
            output::say(&format!("error: {message}"));
            ExitCode::from(code)
        }
    }
}

/// Prints help as it is, and what is wrong in one line.
fn wrong_usage(error: &clap::Error) -> ExitCode {
    let text = error.render();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Clap sees to colours, and a reader that has gone is no failure.
            error.print().ok();
            return ExitCode::SUCCESS;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            output::say("error: no command is given; `idem --help` lists them");
            return ExitCode::from(2);
        }
        _ => {}
    }
    output::say(&one_line(&text.to_string()));
    ExitCode::from(2)
}

/// Joins what clap says over several lines, without its usage.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for part in text.lines().map(str::trim).filter(|part| !part.is_empty()) {
        if part.starts_with("Usage:") || part.starts_with("For more information") {
            break;
        }
        if !line.is_empty() {
            line.push_str(if line.ends_with(':') { " " } else { "; " });
        }
        line.push_str(part);
    }
    line.push_str("; `--help` says what is possible");
    line
}
