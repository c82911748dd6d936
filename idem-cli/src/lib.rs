//! What the `idem` command is made of, and the page for operators.

pub mod ops;
