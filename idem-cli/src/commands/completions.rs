//! `idem completions`: for a shell.

use clap::CommandFactory as _;

use crate::args::{Cli, Completions};
use crate::failure::Failure;
use crate::output::print;

pub(crate) fn run(args: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "idem", &mut script);
    print(&String::from_utf8_lossy(&script))
}
