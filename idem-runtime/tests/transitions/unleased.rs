//! A reservation inside of its caller's transaction.

use idem::record::State;
use idem::store::{Reserve, Reserved, Takeover};
use idem::transition::{self, reserve_in_transaction};

use crate::scene::{LAPSE, START, TTL, claim, release, request};

fn won(reply: &Reserved) -> bool {
    matches!(reply, Reserved::Won(_))
}

#[test]
fn what_is_won_has_no_lease() {
    let fresh = reserve_in_transaction(None, &request(1), START);
    let record = fresh.write.unwrap();
    assert!(won(&fresh.reply));
    assert_eq!(record.lease_until_us, None);

    let first = transition::reserve(None, &request(1), START).write.unwrap();
    let holder = idem::store::Holder {
        id: first.id,
        claim: claim(1),
        fence: first.fence,
    };
    let released = transition::release(Some(&first), &release(holder, false), START);
    let released = released.write.unwrap();
    let again = reserve_in_transaction(Some(&released), &request(2), START + 1);
    let record = again.write.unwrap();
    assert!(won(&again.reply));
    assert_eq!(
        (record.state, record.lease_until_us),
        (State::InProgress, None)
    );
    assert!(record.fence > first.fence);
}

#[test]
fn what_is_not_won_is_left_as_it_is_and_nothing_is_taken_over() {
    let running = transition::reserve(None, &request(1), START).write.unwrap();
    let unleased = reserve_in_transaction(None, &request(1), START)
        .write
        .unwrap();
    for takeover in [Takeover::Refuse, Takeover::Rerun, Takeover::Recover] {
        let request = Reserve {
            takeover,
            ..request(2)
        };
        for (record, now_us, is_unknown) in [
            (&running, START, false),
            (&running, START + LAPSE, true),
            (&unleased, START, true),
            (&unleased, START + 1_000 * TTL, true),
        ] {
            let decision = reserve_in_transaction(Some(record), &request, now_us);
            assert_eq!(decision.write, None, "{takeover:?}");
            let unknown = matches!(decision.reply, Reserved::Unknown { .. });
            assert_eq!(unknown, is_unknown, "{takeover:?}: {:?}", decision.reply);
            assert!(!won(&decision.reply));
        }
    }
}
