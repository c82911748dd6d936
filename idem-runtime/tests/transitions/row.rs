//! What a row says of itself, and what by hand is done to one with versions.

use idem::record::{Note, Standing, VersionBytes};
use idem::transition::{self, Settlement};

use crate::scene::{GRACE, LAPSE, Scene, TTL, complete, ending, failed, request, settle, version};

fn recorded(scene: &Scene) -> (Option<VersionBytes>, Option<VersionBytes>) {
    let record = scene.record.as_ref().unwrap();
    (
        record.version_applied.clone(),
        record.version_recorded.clone(),
    )
}

/// Version 5 is applied, 6 has failed, 7 ended without an answer.
fn five_then_six_failed_then_seven_unknown() -> Scene {
    let mut scene = Scene::new();
    for (number, ending) in [(5, ending("five")), (6, failed("six"))] {
        let mut next = request(number);
        next.version = Some(version(number));
        scene = scene.wins(&next).ends(|record, holder, now| {
            transition::complete(record, &complete(holder, ending), now)
        });
    }
    let mut last = request(7);
    last.version = Some(version(7));
    let scene = scene.wins(&last).wait(LAPSE);
    assert_eq!(recorded(&scene), (Some(version(5)), Some(version(6))));
    scene
}

#[test]
fn what_was_not_done_leaves_the_answer_of_an_older_version() {
    let scene = five_then_six_failed_then_seven_unknown().ends(|record, holder, now| {
        transition::settle(record, &settle(holder, Settlement::NotDone), now)
    });
    assert_eq!(recorded(&scene), (Some(version(5)), Some(version(6))));
}

#[test]
fn an_operators_error_is_recorded_and_not_applied() {
    let idem::store::Ending::Answer(answer) = failed("refused") else {
        panic!("an answer");
    };
    let scene = five_then_six_failed_then_seven_unknown().ends(|record, holder, now| {
        let done = Settlement::Done(answer);
        transition::settle(record, &settle(holder, done), now)
    });
    assert_eq!(recorded(&scene), (Some(version(5)), Some(version(7))));
}

#[test]
fn an_attempt_without_a_lease_is_in_doubt_however_late_it_is() {
    let mut scene = Scene::new().wins(&request(1));
    let record = scene.record.as_mut().unwrap();
    let standing = |record: &idem::record::Record, us| record.standing(scene.now_us + us, GRACE);
    assert_eq!(standing(record, 0), Some(Standing::InProgress));
    assert_eq!(standing(record, LAPSE), Some(Standing::Lapsed));
    record.lease_until_us = None;
    assert_eq!(standing(record, 0), Some(Standing::Unknown));
    assert_eq!(standing(record, LAPSE), Some(Standing::Unknown));
}

#[test]
fn a_row_is_swept_when_its_ttl_and_the_grace_are_over() {
    let scene = Scene::new().wins(&request(1)).completed("done");
    let record = scene.record.unwrap();
    for (after, swept) in [(TTL, false), (TTL + GRACE, false), (TTL + GRACE + 1, true)] {
        let now_us = scene.now_us + after;
        assert_eq!(record.is_sweepable(now_us, GRACE), swept, "{after}");
    }
}

#[test]
fn a_note_is_cut_to_what_is_kept() {
    let note = Note::new(&"é".repeat(Note::MAX_BY), &"x".repeat(Note::MAX_WHY + 1)).unwrap();
    assert_eq!(note.by(), "é".repeat(Note::MAX_BY / 2));
    assert_eq!(note.why(), "x".repeat(Note::MAX_WHY));
    assert_eq!(Note::new(" \n", "why"), None);
    assert_eq!(Note::new("who", ""), None);
}
