//! What the auditor reads: the effects of bodies, and what callers were told.
//! One file for each, one write for each line, outside of the library.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// An open journal of one store.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    effects: Arc<File>,
    told: Arc<File>,
    stalls: Arc<File>,
}

/// One run of a body: its effect is this line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) operation: String,
    pub(crate) key: u64,
    pub(crate) payload: u64,
    pub(crate) fence: i64,
    /// When the body was polled first, or its probe began.
    pub(crate) began_us: u64,
    /// When the effect happened.
    pub(crate) at_us: u64,
    pub(crate) downstream: String,
    /// The process that ran it.
    pub(crate) pid: u32,
    /// Whether the body panics after it.
    pub(crate) panics: bool,
    /// What the body answers: unlike every other answer.
    pub(crate) value: String,
}

/// What a call was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) operation: String,
    pub(crate) key: u64,
    pub(crate) payload: u64,
    pub(crate) at_us: u64,
    /// How the answer came about, or which error it was.
    pub(crate) how: String,
    /// Whether the store is known to hold the answer.
    pub(crate) recorded: bool,
    /// The value of an answer, `Ok` or `Err`.
    pub(crate) value: Option<String>,
}

/// This host's time, the same for all processes.
#[expect(clippy::disallowed_methods, reason = "the ledger is not the library's")]
pub(crate) fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_micros()).unwrap()
}

fn append(path: &Path) -> Arc<File> {
    let mut options = OpenOptions::new();
    Arc::new(options.create(true).append(true).open(path).unwrap())
}

impl Journal {
    pub(crate) fn open(folder: &Path) -> Self {
        Self {
            effects: append(&folder.join("effects")),
            told: append(&folder.join("told")),
            stalls: append(&folder.join("stalls")),
        }
    }

    pub(crate) fn effect(&self, effect: &Effect) {
        let Effect {
            operation,
            key,
            payload,
            fence,
            began_us,
            at_us,
            downstream,
            pid,
            panics,
            value,
        } = effect;
        let line = format!(
            "{operation} {key} {payload} {fence} {began_us} {at_us} {downstream} {pid} {panics} {value}\n"
        );
        (&*self.effects).write_all(line.as_bytes()).unwrap();
    }

    /// Notes that this process, or the store it asked, did not get on for so
    /// long: nobody's doing, and as good as a pause.
    pub(crate) fn stall(&self, from_us: u64, to_us: u64) {
        let line = format!("{} {from_us} {to_us}\n", std::process::id());
        (&*self.stalls).write_all(line.as_bytes()).unwrap();
    }

    pub(crate) fn told(&self, told: &Told) {
        let Told {
            operation,
            key,
            payload,
            at_us,
            how,
            recorded,
            value,
        } = told;
        let value = value.as_deref().unwrap_or("-");
        let line = format!("{operation} {key} {payload} {at_us} {how} {recorded} {value}\n");
        (&*self.told).write_all(line.as_bytes()).unwrap();
    }
}

/// The whole lines of a file. A process that was killed may have written part
/// of a last one, in which case its effect did not happen.
fn lines(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    text.split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'))
        .map(words)
        .collect()
}

pub(crate) fn effects(folder: &Path) -> Vec<Effect> {
    let read = |line: Vec<String>| Effect {
        operation: line[0].clone(),
        key: line[1].parse().unwrap(),
        payload: line[2].parse().unwrap(),
        fence: line[3].parse().unwrap(),
        began_us: line[4].parse().unwrap(),
        at_us: line[5].parse().unwrap(),
        downstream: line[6].clone(),
        pid: line[7].parse().unwrap(),
        panics: line[8] == "true",
        value: line[9].clone(),
    };
    lines(&folder.join("effects"))
        .into_iter()
        .map(read)
        .collect()
}

pub(crate) fn told(folder: &Path) -> Vec<Told> {
    let read = |line: Vec<String>| Told {
        operation: line[0].clone(),
        key: line[1].parse().unwrap(),
        payload: line[2].parse().unwrap(),
        at_us: line[3].parse().unwrap(),
        how: line[4].clone(),
        recorded: line[5] == "true",
        value: (line[6] != "-").then(|| line[6].clone()),
    };
    lines(&folder.join("told")).into_iter().map(read).collect()
}

/// Of which process, from when, and until when.
pub(crate) fn stalls(folder: &Path) -> Vec<(u32, u64, u64)> {
    let read = |line: Vec<String>| {
        (
            line[0].parse().unwrap(),
            line[1].parse().unwrap(),
            line[2].parse().unwrap(),
        )
    };
    lines(&folder.join("stalls"))
        .into_iter()
        .map(read)
        .collect()
}

/// The effect of a key, as a probe looks it up.
pub(crate) fn find(folder: &Path, operation: &str, key: u64) -> Option<Effect> {
    let of_key = |effect: &Effect| effect.operation == operation && effect.key == key;
    effects(folder).into_iter().find(of_key)
}

/// Effects by operation and key, each in the order of their fences.
pub(crate) fn by_key(effects: Vec<Effect>) -> HashMap<(String, u64), Vec<Effect>> {
    let mut keys: HashMap<_, Vec<Effect>> = HashMap::new();
    for effect in effects {
        let key = (effect.operation.clone(), effect.key);
        keys.entry(key).or_default().push(effect);
    }
    for effects in keys.values_mut() {
        effects.sort_by_key(|effect| effect.fence);
    }
    keys
}
