//! The `idem` command.

fn main() {}
