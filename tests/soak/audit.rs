//! Reads what the bodies did and what the callers were told, and knows the
//! guarantee table.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use crate::journal::{self, Effect, Told};
use crate::victim::{GRACE, LEASE};
use crate::within;
use crate::workload::SHORT;

/// A lease and its grace, in the store's time.
#[expect(clippy::cast_possible_truncation, reason = "600,000")]
const OVER_US: i64 = (LEASE.as_micros() + GRACE.as_micros()) as i64;

/// A stretch of time in which a store's processes were held up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disturbance {
    /// One of them, or all.
    pub(crate) pid: Option<u32>,
    pub(crate) from_us: u64,
    pub(crate) to_us: u64,
}

/// What one store's journal says.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) keys: usize,
    pub(crate) effects: usize,
    /// Rows of the calls in their caller's transaction.
    pub(crate) rows: usize,
    pub(crate) told: BTreeMap<String, usize>,
    /// Second effects that the guarantee table allows.
    pub(crate) allowed: usize,
    /// Takeovers of leases that were over by the store's clock, without a fault
    /// that would say why: a busy machine renews late.
    pub(crate) late: usize,
    pub(crate) violations: Vec<String>,
}

/// Audits one store's journal. `settled` is what a call that refuses was told
/// of each key after all faults were over.
pub(crate) fn audit(folder: &Path, settled: &[Told], disturbed: &[Disturbance]) -> Verdict {
    let effects = journal::effects(folder);
    let mut told = journal::told(folder);
    let mut verdict = Verdict {
        effects: effects.len(),
        ..Verdict::default()
    };
    for line in &told {
        *verdict.told.entry(line.how.clone()).or_default() += 1;
    }
    // Their effects are rows, and audited there.
    told.retain(|line| line.operation != within::OPERATION);
    every_answer_was_produced(&effects, told.iter().chain(settled), &mut verdict);
    every_key_has_one_answer(&told, settled, &mut verdict);
    let keys = journal::by_key(effects);
    verdict.keys = keys.len();
    for ((operation, key), effects) in &keys {
        runs(operation, *key, effects, disturbed, &mut verdict);
    }
    // Many would be renewals that do not work.
    if verdict.late * 500 > verdict.effects + 500 {
        let late = format!("{} leases were over for no reason", verdict.late);
        verdict.violations.push(late);
    }
    for line in settled {
        // Whatever happened, a key is answered, refused or unknown by now.
        let fine = matches!(
            line.how.as_str(),
            "executed" | "replayed" | "recovered" | "unknown" | "mismatch" | "panicked"
        );
        if !fine {
            verdict.violations.push(format!(
                "{} {} ended {}",
                line.operation, line.key, line.how
            ));
        }
    }
    verdict
}

/// A value that anybody was told comes from a body of that key and payload.
fn every_answer_was_produced<'a>(
    effects: &[Effect],
    told: impl Iterator<Item = &'a Told>,
    verdict: &mut Verdict,
) {
    let produced: HashSet<_> = effects
        .iter()
        .map(|e| (e.operation.as_str(), e.key, e.payload, e.value.as_str()))
        .collect();
    for line in told {
        let Some(value) = &line.value else { continue };
        let answer = (
            line.operation.as_str(),
            line.key,
            line.payload,
            value.as_str(),
        );
        if !produced.contains(&answer) {
            verdict
                .violations
                .push(format!("told what no body of it produced: {line:?}"));
        }
    }
}

/// What was recorded for a key is what every later caller is told, as long as
/// it is kept.
fn every_key_has_one_answer(told: &[Told], settled: &[Told], verdict: &mut Verdict) {
    let mut recorded: HashMap<_, &Told> = HashMap::new();
    for line in told.iter().chain(settled) {
        if line.operation == "expire" || !line.recorded {
            continue;
        }
        let Some(value) = &line.value else { continue };
        let first = recorded
            .entry((line.operation.as_str(), line.key))
            .or_insert(line);
        if first.value.as_ref() != Some(value) {
            verdict
                .violations
                .push(format!("two recorded answers: {first:?} and {line:?}"));
        }
    }
    for line in settled {
        let before = recorded.get(&(line.operation.as_str(), line.key));
        if line.how == "unknown" && before.is_some() {
            verdict
                .violations
                .push(format!("recorded and then unknown: {before:?}"));
        }
    }
}

/// How often a body of one key may have run.
fn runs(
    operation: &str,
    key: u64,
    effects: &[Effect],
    disturbed: &[Disturbance],
    verdict: &mut Verdict,
) {
    let downstream: HashSet<_> = effects.iter().map(|effect| &effect.downstream).collect();
    let mut wrong = |what: &str, effects: &[Effect]| {
        verdict
            .violations
            .push(format!("{operation} {key}: {what}: {effects:?}"));
    };
    if downstream.len() > 1 {
        wrong("attempts sent different downstream keys", effects);
    }
    for pair in effects.windows(2) {
        let (one, next) = (&pair[0], &pair[1]);
        if one.fence == next.fence {
            wrong("two runs with one fence", pair);
            continue;
        }
        // Whether something held the earlier attempt up before the later began.
        let held_up = disturbed.iter().any(|d| {
            let same = d.pid.is_none_or(|pid| pid == one.pid);
            same && d.from_us <= next.began_us && d.to_us >= one.began_us
        });
        // A fence is the time of its reservation.
        let over = next.fence - one.fence >= OVER_US;
        match operation {
            "refuse" | "abandon" => wrong("a second run", pair),
            "expire" => {
                let kept_us = u64::try_from(SHORT.as_micros()).unwrap();
                if next.began_us < one.at_us + kept_us {
                    wrong("a second run within the TTL", pair);
                }
            }
            // At least once, as its name says: after a panic, a kill, or a pause
            // past the lease, and then also side by side.
            "rerun" if one.panics || held_up => verdict.allowed += 1,
            "rerun" if over => verdict.late += 1,
            "rerun" => wrong("ran again although nothing was in doubt", pair),
            // The probe looked before the earlier one, held up, had its effect.
            "recover" if one.at_us >= next.began_us && held_up => verdict.allowed += 1,
            "recover" if one.at_us >= next.began_us && over => verdict.late += 1,
            "recover" => wrong("ran again although the effect could be seen", pair),
            _ => wrong("not an operation", pair),
        }
    }
}
