//! What became of it all: from the notes of the consumers, the tables, the mailbox and the queue.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::BoxError;
use super::watch::Moment;

/// One line of the ledger.
pub(super) struct Line {
    pid: u32,
    event: String,
    /// The message, or where a process was killed.
    about: String,
}

/// Everything that can be known afterwards.
pub(super) struct Seen {
    pub(super) payments: usize,
    pub(super) copies: usize,
    pub(super) kills: usize,
    pub(super) ledger: Vec<Line>,
    /// Rows, and different ones.
    pub(super) effects: (i64, i64),
    pub(super) mails: Vec<String>,
    pub(super) left: u64,
}

pub(super) fn read(ledger: &Path) -> Result<Vec<Line>, BoxError> {
    std::fs::read_to_string(ledger)?.lines().map(line).collect()
}

fn line(text: &str) -> Result<Line, BoxError> {
    let mut words = text.splitn(3, ' ').map(str::to_owned);
    match (words.next(), words.next(), words.next()) {
        (Some(pid), Some(event), Some(about)) => Ok(Line {
            pid: pid.parse()?,
            event,
            about,
        }),
        _ => Err(format!("a line of the ledger is cut off: {text}").into()),
    }
}

/// How many acknowledgements are in the ledger so far.
pub(super) fn acknowledged(ledger: &Path) -> Result<usize, BoxError> {
    let text = std::fs::read_to_string(ledger)?;
    Ok(text.lines().filter(|line| line.contains(" ack:")).count())
}

/// Prints what was seen. An error if it is not as it should be.
pub(super) fn tell(seen: &Seen) -> Result<(), BoxError> {
    let of = |event: &'static str| seen.ledger.iter().filter(move |line| line.event == event);
    let killed = |moment: Moment| {
        of("kill")
            .filter(|line| line.about == moment.name())
            .count()
    };
    let (in_the_body, before_the_ack) = (killed(Moment::InTheBody), killed(Moment::BeforeTheAck));
    let deliveries = of("received").count();
    let bodies = of("begin").count();
    let parked = of("park").count();
    let (rows, payments) = seen.effects;
    let mails: HashSet<&String> = seen.mails.iter().collect();
    let early = acknowledged_early(&seen.ledger);

    println!(
        "{} payments, published {} times",
        seen.payments, seen.copies
    );
    println!(
        "a consumer was killed {in_the_body} times in the body, {before_the_ack} times between commit and ack"
    );
    println!(
        "{deliveries} deliveries, {} of them duplicates, {} told to come again",
        deliveries.saturating_sub(seen.payments),
        of("retry").count(),
    );
    println!("{bodies} bodies ran, {} to their end", of("end").count());
    println!("{rows} effects, for {payments} payments");
    println!("{} e-mails, for {} payments", seen.mails.len(), mails.len());
    println!("{early} acknowledged before everybody was done with it, {parked} parked");
    println!("{} messages left", seen.left);

    let wanted = i64::try_from(seen.payments)?;
    let holds = (rows, payments) == (wanted, wanted)
        && (seen.mails.len(), mails.len()) == (seen.payments, seen.payments)
        && in_the_body + before_the_ack == seen.kills
        && deliveries >= seen.copies + seen.kills
        && (early, parked, seen.left) == (0, 0, 0);
    if holds {
        Ok(())
    } else {
        Err("a line above is not as it should be".into())
    }
}

/// How many messages were acknowledged while somebody was still in the body, or before their
/// payment was booked for everybody to see. A body ends before its commit, and who is killed
/// stands still before that, so nobody else can have the answer earlier than this counts.
fn acknowledged_early(ledger: &[Line]) -> usize {
    let mut working: HashMap<&str, HashSet<u32>> = HashMap::new();
    let mut early = 0;
    for line in ledger {
        match line.event.as_str() {
            "begin" => {
                working.entry(&line.about).or_default().insert(line.pid);
            }
            "end" => {
                working.entry(&line.about).or_default().remove(&line.pid);
            }
            "kill" => working.values_mut().for_each(|pids| {
                pids.remove(&line.pid);
            }),
            event if event.starts_with("ack:") => {
                let is_worked_on = working
                    .get(line.about.as_str())
                    .is_some_and(|pids| !pids.is_empty());
                early += usize::from(is_worked_on || event != "ack:1");
            }
            _ => {}
        }
    }
    early
}
