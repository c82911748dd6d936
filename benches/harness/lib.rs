//! What the benchmarks share.
//!
//! Rules of every comparison:
//!
//! 1. Both sides run in one process, on one runtime of two threads, with the same settings and as
//!    many connections, in short rounds that alternate; which of the two goes first alternates too.
//! 2. A ratio is taken within a round, never between two rounds. What is reported is the median over
//!    the rounds, with the least and the greatest.
//! 3. A call that fails ends the program: nothing is measured that did not happen.

pub mod batch;
pub mod closed_loop;
pub mod counting;
pub mod figures;
pub mod keys;
pub mod options;
pub mod orders;
pub mod ours;
pub mod raw;

pub use self::closed_loop::{Case, Round, Side};
pub use self::options::Options;

/// Why a benchmark ended early.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Runs a benchmark on a thread of a runtime's pool, as a server's requests are.
///
/// # Errors
/// Those of the benchmark, and if no runtime can be started.
pub fn on_two_threads<F>(benchmark: F) -> Result<(), BoxError>
where
    F: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async { tokio::spawn(benchmark).await? })
}
