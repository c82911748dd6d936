//! Short work in this process, many times over, beside other ways to do it.

use idem::{Clock as _, SystemClock};
use serde_json::json;

use crate::figures::{Spread, number};
use crate::{BoxError, Options};

/// One way to do some work.
pub struct Part<'a> {
    name: &'static str,
    run: Box<dyn FnMut(u32) -> Result<(), BoxError> + 'a>,
    batch: u32,
    nanoseconds: Vec<f64>,
}

impl<'a> Part<'a> {
    /// `run` does the work as often as it is told.
    pub fn new(name: &'static str, run: impl FnMut(u32) -> Result<(), BoxError> + 'a) -> Self {
        Self {
            name,
            run: Box::new(run),
            batch: 1,
            nanoseconds: Vec::new(),
        }
    }

    fn time(&mut self) -> Result<f64, BoxError> {
        let begun = SystemClock.monotonic();
        (self.run)(self.batch)?;
        Ok((SystemClock.monotonic() - begun).as_secs_f64() * 1e9)
    }
}

/// Times all parts in rounds, the first of each round another one, and prints each beside the first
/// part. `divide` is by how much a time is divided, if one run of a part is of several calls.
/// `floor` is a part whose time is taken from all others in the ratios: what carries the work out.
///
/// # Errors
/// If a part fails.
pub fn compare(
    options: &Options,
    group: &str,
    divide: f64,
    floor: Option<usize>,
    parts: &mut [Part<'_>],
) -> Result<(), BoxError> {
    let batch = if options.quick { 0.5e6 } else { 3e6 };
    for part in &mut *parts {
        while part.time()? < batch && part.batch < 1 << 24 {
            part.batch *= 2;
        }
    }
    for round in 0..options.rounds.max(8) {
        for turn in 0..parts.len() {
            let count = parts.len();
            let part = &mut parts[(round + turn) % count];
            let took = part.time()?;
            part.nanoseconds.push(took / f64::from(part.batch) / divide);
        }
    }
    println!("\n{group}, ns");
    let least = |round: usize| floor.map_or(0.0, |floor| parts[floor].nanoseconds[round]);
    for (index, part) in parts.iter().enumerate() {
        let time = Spread::of(part.nanoseconds.iter().copied());
        let ratio = Spread::of(
            part.nanoseconds
                .iter()
                .zip(&parts[0].nanoseconds)
                .enumerate()
                .map(|(round, (own, first))| (own - least(round)) / (first - least(round))),
        );
        let beside = if index == 0 || floor == Some(index) {
            String::new()
        } else {
            format!("{ratio} x {}", parts[0].name)
        };
        println!(
            "  {:<44} {:>9} ({} to {})  {beside}",
            part.name,
            number(time.median),
            number(time.min),
            number(time.max),
        );
        options.note(&json!({
            "bench": "parts", "group": group, "part": part.name, "rounds": part.nanoseconds.len(),
            "ns": time.median, "ns_min": time.min, "ns_max": time.max, "beside": parts[0].name,
            "ratio": ratio.median, "ratio_min": ratio.min, "ratio_max": ratio.max,
        }))?;
    }
    Ok(())
}
