//! Every event on every state.

use idem::TombstoneReason;
use idem::record::{Record, State};
use idem::store::{
    Ending, GiveBack, Holder, Lease, Reserve, Reserved, Settle, Takeover, Won, Written,
};
use idem::transition::{self, Settlement};

use crate::scene::{
    LEASE, SECOND, Scene, TTL, another_payload, claim, complete, ending, mark, release, request,
    settle, settlement_of, sound, version,
};

/// `reply`, or `reply > state` where the record is written. Nothing else is.
///
/// `doubtful` runs after a takeover, `unleased` runs without a lease.
const OPEN: &str = "
event                       | absent        | running          | doubtful         | lapsed            | unleased         | unknown
reserve                     | won > running | waits            | waits            | unknown > unknown | unknown          | unknown
reserve, rerun              | won > running | waits            | waits            | won > running     | unknown          | won > running
reserve, recover            | won > running | waits            | waits            | won > running     | unknown          | won > running
reserve, rerun too often    | won > running | waits            | waits            | unknown > unknown | unknown          | unknown
reserve, another payload    | won > running | mismatch         | mismatch         | mismatch          | mismatch         | mismatch
reserve, the same claim     | won > running | yours            | yours            | yours > running   | yours            | unknown
complete by the holder      | gone          | done > completed | done > completed | done > completed  | done > completed | done > completed
complete by another claim   | gone          | superseded       | superseded       | superseded        | superseded       | superseded
complete by another fence   | gone          | superseded       | superseded       | superseded        | superseded       | superseded
bury by the holder          | gone          | done > tombstone | done > tombstone | done > tombstone  | done > tombstone | done > tombstone
bury by another claim       | gone          | superseded       | superseded       | superseded        | superseded       | superseded
bury by another fence       | gone          | superseded       | superseded       | superseded        | superseded       | superseded
release by the holder       | gone          | done > released  | done > unknown   | done > released   | done > released  | superseded
release, probed             | gone          | done > released  | done > released  | done > released   | done > released  | superseded
release by another claim    | gone          | superseded       | superseded       | superseded        | superseded       | superseded
release by another fence    | gone          | superseded       | superseded       | superseded        | superseded       | superseded
unknown by the holder       | gone          | done > unknown   | done > unknown   | done > unknown    | done > unknown   | already
undecided by the holder     | gone          | done > unknown   | done > unknown   | done > unknown    | done > unknown   | already
unknown by another claim    | gone          | superseded       | superseded       | superseded        | superseded       | superseded
unknown by another fence    | gone          | superseded       | superseded       | superseded        | superseded       | superseded
give back by the holder     | gone          | done > released  | done > unknown   | done > released   | done > released  | already
give back by another claim  | gone          | superseded       | superseded       | superseded        | superseded       | superseded
renew by the holder         | lost          | held > running   | held > running   | held > running    | held > running   | lost
renew by another claim      | lost          | lost             | lost             | lost              | lost             | lost
renew by another fence      | lost          | lost             | lost             | lost              | lost             | lost
settle as done              | gone          | superseded       | superseded       | done > completed  | done > completed | done > completed
settle as not done          | gone          | superseded       | superseded       | done > released   | done > released  | done > released
settle as forgotten         | gone          | superseded       | superseded       | done > released   | done > released  | done > released
settle as done, forced      | gone          | done > completed | done > completed | done > completed  | done > completed | done > completed
settle as not done, forced  | gone          | done > released  | done > released  | done > released   | done > released  | done > released
settle as forgotten, forced | gone          | done > released  | done > released  | done > released   | done > released  | done > released
settle with another fence   | gone          | superseded       | superseded       | superseded        | superseded       | superseded
sweep                       | kept          | kept             | kept             | kept              | kept             | kept
";

const ENDED: &str = "
event                       | released      | completed  | tombstone        | released, expired | completed, expired | tombstone, expired
reserve                     | won > running | replays    | tombstone        | won > running     | won > running      | won > running
reserve, rerun              | won > running | replays    | tombstone        | won > running     | won > running      | won > running
reserve, recover            | won > running | replays    | tombstone        | won > running     | won > running      | won > running
reserve, rerun too often    | won > running | replays    | tombstone        | won > running     | won > running      | won > running
reserve, another payload    | won > running | mismatch   | mismatch         | won > running     | won > running      | won > running
reserve, the same claim     | waits         | replays    | tombstone        | waits             | waits              | waits
complete by the holder      | superseded    | already    | already          | superseded        | already            | already
complete by another claim   | superseded    | superseded | superseded       | superseded        | superseded         | superseded
complete by another fence   | superseded    | superseded | superseded       | superseded        | superseded         | superseded
bury by the holder          | superseded    | already    | already          | superseded        | already            | already
bury by another claim       | superseded    | superseded | superseded       | superseded        | superseded         | superseded
bury by another fence       | superseded    | superseded | superseded       | superseded        | superseded         | superseded
release by the holder       | already       | superseded | superseded       | already           | superseded         | superseded
release, probed             | already       | superseded | superseded       | already           | superseded         | superseded
release by another claim    | superseded    | superseded | superseded       | superseded        | superseded         | superseded
release by another fence    | superseded    | superseded | superseded       | superseded        | superseded         | superseded
unknown by the holder       | superseded    | superseded | superseded       | superseded        | superseded         | superseded
undecided by the holder     | superseded    | superseded | superseded       | superseded        | superseded         | superseded
unknown by another claim    | superseded    | superseded | superseded       | superseded        | superseded         | superseded
unknown by another fence    | superseded    | superseded | superseded       | superseded        | superseded         | superseded
give back by the holder     | already       | already    | already          | already           | already            | already
give back by another claim  | superseded    | superseded | superseded       | superseded        | superseded         | superseded
renew by the holder         | lost          | lost       | lost             | lost              | lost               | lost
renew by another claim      | lost          | lost       | lost             | lost              | lost               | lost
renew by another fence      | lost          | lost       | lost             | lost              | lost               | lost
settle as done              | superseded    | superseded | done > completed | superseded        | superseded         | done > completed
settle as not done          | superseded    | superseded | done > released  | superseded        | superseded         | done > released
settle as forgotten         | done > released | done > released | done > released | done > released | done > released | done > released
settle as done, forced      | superseded    | superseded | done > completed | superseded        | superseded         | done > completed
settle as not done, forced  | superseded    | superseded | done > released  | superseded        | superseded         | done > released
settle with another fence   | superseded    | superseded | superseded       | superseded        | superseded         | superseded
sweep                       | kept          | kept       | kept             | swept             | swept              | swept
";

/// Ordered apply: what stands there is version 5's, and maybe 6 came after.
const ORDERED: &str = "
event                       | 5 completed   | 5, 6 running | 5, 6 released | 5, 6 unknown | 5 tombstone   | 5 expired     | 5 running
version 4                   | stale         | stale        | stale         | stale        | stale         | stale         | waits
version 5                   | replays       | replays      | replays       | replays      | tombstone     | replays       | waits
version 5, another payload  | mismatch      | mismatch     | mismatch      | mismatch     | mismatch      | mismatch      | mismatch
version 6                   | won > running | waits        | won > running | unknown      | won > running | won > running | waits
version 6, another payload  | won > running | mismatch     | won > running | mismatch     | won > running | won > running | waits
version 7                   | won > running | waits        | won > running | unknown      | won > running | won > running | waits
version 7, rerun            | won > running | waits        | won > running | won > running | won > running | won > running | waits
sweep                       | kept          | kept         | kept          | kept         | kept          | kept          | kept
";

fn reply(reserved: &Reserved) -> &'static str {
    match reserved {
        Reserved::Won(Won { resent: true, .. }) => "yours",
        Reserved::Won(_) => "won",
        Reserved::InProgress { .. } => "waits",
        Reserved::Completed { .. } => "replays",
        Reserved::Tombstone { .. } => "tombstone",
        Reserved::Unknown { .. } => "unknown",
        Reserved::Mismatch { .. } => "mismatch",
        Reserved::Stale { .. } => "stale",
    }
}

fn written(written: Written) -> &'static str {
    match written {
        Written::Done => "done",
        Written::AlreadyDone => "already",
        Written::Superseded => "superseded",
        Written::Gone => "gone",
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::InProgress => "running",
        State::Released => "released",
        State::Completed => "completed",
        State::Tombstone => "tombstone",
        State::Unknown => "unknown",
    }
}

/// What an event is answered, and what it writes.
type Effect = (&'static str, Option<Record>);

fn asked(scene: &Scene, request: &Reserve) -> Effect {
    let decision = transition::reserve(scene.record.as_ref(), request, scene.now_us);
    (reply(&decision.reply), decision.write)
}

fn reserved(scene: &Scene, event: &str) -> Option<Effect> {
    let rerun = Reserve {
        takeover: Takeover::Rerun,
        ..request(200)
    };
    let request = match event {
        "reserve" => request(200),
        "reserve, rerun" => rerun,
        "reserve, recover" => Reserve {
            takeover: Takeover::Recover,
            ..rerun
        },
        "reserve, rerun too often" => Reserve {
            max_takeovers: 0,
            ..rerun
        },
        "reserve, another payload" => another_payload(rerun),
        "reserve, the same claim" => Reserve {
            claim: scene.holder.claim,
            ..request(200)
        },
        _ => return None,
    };
    Some(asked(scene, &request))
}

fn ordered(scene: &Scene, event: &str) -> Option<Effect> {
    let (number, how) = event.strip_prefix("version ")?.split_at(1);
    let versioned = Reserve {
        version: Some(version(number.parse().ok()?)),
        ..request(200)
    };
    let request = match how {
        "" => versioned,
        ", another payload" => another_payload(versioned),
        ", rerun" => Reserve {
            takeover: Takeover::Rerun,
            ..versioned
        },
        _ => return None,
    };
    Some(asked(scene, &request))
}

fn settled(scene: &Scene, event: &str) -> Option<Effect> {
    let Ending::Answer(answer) = ending("settled") else {
        return None;
    };
    let done = Settlement::Done(answer);
    let (event, force) = match event.split_once(", forced") {
        Some((event, _)) => (event, true),
        None => (event, false),
    };
    let (settlement, off) = match event {
        "settle as done" => (done, 0),
        "settle as not done" => (Settlement::NotDone, 0),
        "settle as forgotten" => (Settlement::Forgotten, 0),
        "settle with another fence" => (done, -1),
        _ => return None,
    };
    let request = Settle {
        fence: scene.holder.fence + off,
        force,
        ..settle(scene.holder, settlement)
    };
    let decision = transition::settle(scene.record.as_ref(), &request, scene.now_us);
    Some((written(decision.reply), decision.write))
}

fn held(scene: &Scene, event: &str) -> Option<Effect> {
    let (event, who) = event.split_once(" by ").unwrap_or((event, "the holder"));
    let holder = match who {
        "the holder" => scene.holder,
        "another claim" => Holder {
            claim: claim(99),
            ..scene.holder
        },
        "another fence" => Holder {
            fence: scene.holder.fence - 1,
            ..scene.holder
        },
        _ => return None,
    };
    let (current, now_us) = (scene.record.as_ref(), scene.now_us);
    let buried = Ending::Tombstone(TombstoneReason::TooLarge);
    let decision = match event {
        "complete" => transition::complete(current, &complete(holder, ending("new")), now_us),
        "bury" => transition::complete(current, &complete(holder, buried), now_us),
        "release" => transition::release(current, &release(holder, false), now_us),
        "release, probed" => transition::release(current, &release(holder, true), now_us),
        "unknown" => transition::mark_unknown(current, &mark(holder, None), now_us),
        "undecided" => transition::mark_unknown(current, &mark(holder, Some(SECOND)), now_us),
        "give back" => {
            let request = GiveBack {
                id: holder.id,
                claim: holder.claim,
                ttl_us: Some(TTL),
            };
            transition::give_back(current, &request, now_us)
        }
        "renew" => {
            let lease = Lease {
                holder,
                lease_us: LEASE,
            };
            let decision = transition::renew(current, &lease, now_us);
            return Some((if decision.reply { "held" } else { "lost" }, decision.write));
        }
        _ => return None,
    };
    Some((written(decision.reply), decision.write))
}

fn swept(scene: &Scene) -> Effect {
    let deleted = |record: &Record| record.is_sweepable(scene.now_us, 0);
    let deleted = scene.record.as_ref().is_some_and(deleted);
    (if deleted { "swept" } else { "kept" }, None)
}

fn effect(scene: &Scene, event: &str) -> Effect {
    if event == "sweep" {
        return swept(scene);
    }
    reserved(scene, event)
        .or_else(|| ordered(scene, event))
        .or_else(|| settled(scene, event))
        .or_else(|| held(scene, event))
        .unwrap_or_else(|| panic!("there is no event {event:?}"))
}

/// Checks a table and returns how many cells it has.
fn holds(table: &str) -> usize {
    let mut lines = table.trim().lines().map(|line| {
        let mut cells = line.split('|').map(str::trim);
        (cells.next().unwrap_or_default(), cells.collect::<Vec<_>>())
    });
    let (_, states) = lines.next().unwrap();
    let mut cells = 0;
    for (event, expected) in lines {
        assert_eq!(expected.len(), states.len(), "a cell a state for {event:?}");
        for (from, expected) in states.iter().zip(expected) {
            let scene = Scene::of(from);
            let (reply, write) = effect(&scene, event);
            let got = match &write {
                Some(record) => format!("{reply} > {}", state(record.state)),
                None => reply.to_owned(),
            };
            assert_eq!(got, expected, "{event:?} on a record that is {from:?}");
            if let Some(after) = &write {
                sound(scene.record.as_ref(), after, reply == "won");
            }
            cells += 1;
        }
    }
    cells
}

#[test]
fn every_event_on_an_open_record() {
    assert_eq!(holds(OPEN), 33 * 6);
}

#[test]
fn every_event_on_an_ended_record() {
    assert_eq!(holds(ENDED), 32 * 6);
}

#[test]
fn every_version_on_an_ordered_record() {
    assert_eq!(holds(ORDERED), 8 * 7);
}

#[test]
fn a_settled_record_does_not_listen_to_its_holder() {
    for (from, settlement) in [
        ("unknown", Settlement::NotDone),
        ("lapsed", Settlement::NotDone),
        ("unknown", settlement_of("operator")),
        ("lapsed", settlement_of("operator")),
        ("tombstone", settlement_of("operator")),
        ("unknown", Settlement::Forgotten),
        ("lapsed", Settlement::Forgotten),
    ] {
        let mut scene = Scene::of(from);
        let decision = transition::settle(
            scene.record.as_ref(),
            &settle(scene.holder, settlement),
            scene.now_us,
        );
        assert_eq!(decision.reply, Written::Done);
        scene.record = decision.write;
        for event in [
            "complete",
            "bury",
            "release",
            "release, probed",
            "unknown",
            "renew",
        ] {
            let (reply, write) = effect(&scene, event);
            assert!(matches!(reply, "superseded" | "lost"), "{event} on {from}");
            assert_eq!(write, None);
        }
    }
}

#[test]
fn a_settled_version_is_recorded_as_that_version() {
    for from in ["5, 6 unknown", "5 tombstone"] {
        let mut scene = Scene::of(from);
        let decision = transition::settle(
            scene.record.as_ref(),
            &settle(scene.holder, settlement_of("operator")),
            scene.now_us,
        );
        scene.record = decision.write;
        let (older, equal, newer) = if from.contains('6') {
            ("version 5", "version 6", "version 7")
        } else {
            ("version 4", "version 5", "version 6")
        };
        assert_eq!(effect(&scene, older).0, "stale", "{from}");
        assert_eq!(effect(&scene, equal).0, "replays", "{from}");
        assert_eq!(effect(&scene, newer).0, "won", "{from}");
        let applied = scene.record.and_then(|record| record.version_applied);
        assert!(applied.is_some(), "an operator's answer is applied too");
    }
    let mut scene = Scene::of("5 tombstone");
    let decision = transition::settle(
        scene.record.as_ref(),
        &settle(scene.holder, Settlement::NotDone),
        scene.now_us,
    );
    scene.record = decision.write;
    assert_eq!(effect(&scene, "version 5").0, "won", "it was not done");
}

#[test]
fn a_call_without_a_version_is_not_a_newer_one() {
    let scene = Scene::of("5 running");
    let other = another_payload(request(9));
    let decision = transition::reserve(scene.record.as_ref(), &other, scene.now_us);
    assert!(matches!(decision.reply, Reserved::Mismatch { .. }));
    assert_eq!(decision.write, None);
}

#[test]
fn an_applied_version_never_sinks() {
    let mut scene = Scene::of("5 running");
    let record = scene.record.as_mut().unwrap();
    record.version_applied = Some(version(9));
    let decision = transition::complete(
        scene.record.as_ref(),
        &complete(scene.holder, ending("late")),
        scene.now_us,
    );
    assert_eq!(decision.reply, Written::Done);
    assert_eq!(decision.write.unwrap().version_applied, Some(version(9)));
    let decision = transition::settle(
        scene.record.as_ref(),
        &Settle {
            force: true,
            ..settle(scene.holder, settlement_of("operator"))
        },
        scene.now_us,
    );
    assert_eq!(decision.reply, Written::Done);
    assert_eq!(decision.write.unwrap().version_applied, Some(version(9)));
}
