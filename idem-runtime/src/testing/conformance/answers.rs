//! Bytes come back as they were given.

use super::bench::{Bench, TTL, id, text};
use crate::record::{Recorded, TombstoneReason};
use crate::store::{Reserved, Written};

super::topic!("answers":
    an_empty_answer_is_an_answer,
    every_byte_comes_back,
    an_answer_of_a_mebibyte_comes_back,
    the_codec_and_the_kind_come_back,
    the_digest_comes_back_as_it_was_given,
    a_new_answer_replaces_all_of_the_old_one,
    a_tombstone_keeps_no_answer,
    another_process_reads_the_same_answer,
);

async fn comes_back(b: &Bench, key: u8, answer: Recorded) {
    b.answered(key, &answer).await;
    let reply = b.look(key).await;
    let Reserved::Completed { answer: stored, .. } = reply else {
        assert!(matches!(reply, Reserved::Completed { .. }), "{reply:?}");
        return;
    };
    assert_eq!(stored.codec, answer.codec);
    assert_eq!(stored.failed, answer.failed);
    assert!(stored.bytes == answer.bytes, "other bytes came back");
    assert_eq!(stored.digest, answer.digest);
}

fn bytes(key: u8, bytes: Vec<u8>) -> Recorded {
    Recorded::new(&id(key), "json", false, bytes)
}

async fn an_empty_answer_is_an_answer(b: &Bench) {
    comes_back(b, 1, bytes(1, Vec::new())).await;
    assert!(matches!(b.look(1).await, Reserved::Completed { .. }));
}

async fn every_byte_comes_back(b: &Bench) {
    comes_back(b, 1, bytes(1, (0..=255).collect())).await;
    comes_back(b, 2, bytes(2, vec![0; 100])).await;
    comes_back(b, 3, bytes(3, b"trailing \r\n\0".to_vec())).await;
    comes_back(b, 4, bytes(4, "\u{feff}größe 😀".as_bytes().to_vec())).await;
    comes_back(b, 5, bytes(5, vec![0xff; 3])).await;
}

async fn an_answer_of_a_mebibyte_comes_back(b: &Bench) {
    let large: Vec<u8> = (0_u8..=250).cycle().take(1 << 20).collect();
    let answer = bytes(1, large);
    comes_back(b, 1, answer.clone()).await;
    assert!(answer.is_intact(&id(1)));
}

async fn the_codec_and_the_kind_come_back(b: &Bench) {
    let answers = [
        ("json", true),
        ("json", false),
        ("", true),
        ("größe/1;v='2'", false),
    ];
    for (key, (codec, failed)) in (1..).zip(answers) {
        let answer = Recorded::new(&id(key), codec, failed, b"x".to_vec());
        comes_back(b, key, answer).await;
    }
}

async fn the_digest_comes_back_as_it_was_given(b: &Bench) {
    // The engine compares it; a store that computes its own hides the damage.
    let mut answer = text(1, "a");
    answer.digest = [0; 32];
    comes_back(b, 1, answer).await;
}

async fn a_new_answer_replaces_all_of_the_old_one(b: &Bench) {
    let mut long = Recorded::new(&id(1), "cbor", true, vec![7; 10_000]);
    long.digest[0] ^= 1;
    comes_back(b, 1, long).await;
    b.advance(TTL + 1);
    comes_back(b, 1, text(1, "short")).await;
    b.advance(TTL + 1);
    comes_back(b, 1, bytes(1, Vec::new())).await;
}

async fn a_tombstone_keeps_no_answer(b: &Bench) {
    b.answered(1, &text(1, "old")).await;
    b.advance(TTL + 1);
    let attempt = b.take(1).await;
    let reason = TombstoneReason::TooLarge;
    assert_eq!(b.bury(attempt.holder, reason).await, Written::Done);
    assert_eq!(b.look(1).await, Reserved::Tombstone { reason });
}

async fn another_process_reads_the_same_answer(b: &Bench) {
    let answer = bytes(1, (0..=255).rev().collect());
    b.answered(1, &answer).await;
    let reply = super::bench::done(b.another().await.reserve(&b.request(1)).await);
    assert!(matches!(reply, Reserved::Completed { answer: a, .. } if a == answer));
}
