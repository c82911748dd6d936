//! `idem check`: what a program would find about the store when it starts.

use comfy_table::{Cell, Color};
use idem::store::Finding;
use serde_json::json;

use crate::args::{Check, Global};
use crate::failure::Failure;
use crate::output::{print, print_json, table};
use crate::{connect, finding};

/// The largest answer of an engine that says nothing about it.
const ANSWER_LIMIT: usize = 1024 * 1024;

pub(crate) async fn run(global: &Global, args: &Check) -> Result<(), Failure> {
    let secret = connect::secret(global)?;
    let (store, mut findings) = connect::checked(global).await?;
    // What an engine adds by itself.
    if secret.is_none() {
        findings.push(Finding::NoSecret);
    }
    if store
        .largest_answer()
        .is_some_and(|largest| largest < ANSWER_LIMIT)
    {
        findings.push(Finding::SmallPackets);
    }
    let is_accepted = |found: &Finding| args.accept_loss.contains(found);
    let voided: Vec<_> = findings
        .iter()
        .filter(|found| found.voids_at_most_once() && !is_accepted(found))
        .map(|found| finding::name(*found))
        .collect();
    if global.json {
        let findings = findings.iter().map(|found| {
            json!({
                "name": finding::name(*found),
                "voids_at_most_once": found.voids_at_most_once(),
                "accepted": is_accepted(found),
                "meaning": found.to_string(),
            })
        });
        let findings: Vec<_> = findings.collect();
        print_json(&json!({"findings": findings, "starts": voided.is_empty()}))?;
    } else if findings.is_empty() {
        print("nothing found: a program starts on this store\n")?;
    } else {
        let rows = findings.iter().map(|found| {
            let weight = if !found.voids_at_most_once() {
                Cell::new("a warning")
            } else if is_accepted(found) {
                Cell::new("accepted")
            } else {
                Cell::new("voids at-most-once").fg(Color::Red)
            };
            vec![Cell::new(finding::name(*found)), weight, Cell::new(found)]
        });
        print(&table(&["FINDING", "WEIGHT", "MEANING"], rows.collect()))?;
    }
    if voided.is_empty() {
        return Ok(());
    }
    Err(Failure::voided(format!(
        "no program starts on this store: correct {}, or accept it by name, here with --accept-loss, in programs with `accept_loss`",
        voided.join(", ")
    )))
}
