use std::pin::Pin;

use tokio::sync::mpsc;

use super::*;

/// As many as a test can keep apart.
const LANES: usize = 2;

type Outcome = Result<Replies<u8>, StoreError>;

/// A trip under way, as the test sees it: what was sent, and how it ends.
struct Sent {
    keys: Vec<u8>,
    end: oneshot::Sender<Outcome>,
}

impl Sent {
    /// Answers each with its own key.
    fn answer(self) {
        let replies = self.keys.iter().map(|key| Ok(*key)).collect();
        self.end.send(Ok(Replies::Each(replies))).ok();
    }
}

struct Fake(mpsc::UnboundedSender<Sent>);

impl Fake {
    async fn go(&self, keys: Vec<u8>) -> Outcome {
        let (end, ended) = oneshot::channel();
        self.0.send(Sent { keys, end }).ok();
        ended
            .await
            .unwrap_or_else(|_| Err(no_runtime().ambiguous()))
    }
}

#[derive(Debug, Clone, Copy)]
struct Key(RecordId);

impl Key {
    fn of(key: u8) -> Self {
        Self(RecordId::from_bytes([key; 32]))
    }

    fn number(self) -> u8 {
        self.0.as_bytes()[0]
    }
}

impl Request for Key {
    fn key(&self) -> &RecordId {
        &self.0
    }

    fn bytes(&self) -> usize {
        // Those above 200 are large.
        if self.number() > 200 { MOST_BYTES } else { 1 }
    }
}

impl Trip for Fake {
    type Request = Key;
    type Reply = u8;

    async fn alone(&self, request: &Key) -> Result<u8, StoreError> {
        match self.go(vec![request.number()]).await? {
            Replies::Each(mut replies) => replies.pop().unwrap_or_else(|| Err(no_runtime())),
            Replies::Refused => Err(StoreError::new(StoreErrorKind::Permanent, "refused")),
        }
    }

    async fn together(&self, requests: &[Key]) -> Outcome {
        self.go(requests.iter().map(|key| key.number()).collect())
            .await
    }
}

type Sending = Pin<Box<dyn Future<Output = Result<u8, StoreError>> + Send>>;

struct Scene {
    gather: Gather<Fake>,
    sent: mpsc::UnboundedReceiver<Sent>,
}

impl Scene {
    fn new() -> Self {
        Self::with(LANES)
    }

    fn with(lanes: usize) -> Self {
        Self::alone(lanes, 0)
    }

    /// With so many that their own callers send.
    fn alone(lanes: usize, alone: usize) -> Self {
        let (sender, sent) = mpsc::unbounded_channel();
        let gather = Gather::with(Fake(sender), lanes, alone);
        Self { gather, sent }
    }

    /// Sends, up to where it waits.
    async fn send(&self, key: u8) -> Sending {
        let gather = self.gather.clone();
        let mut sending: Sending = Box::pin(async move { gather.send(&Key::of(key)).await });
        let polled = poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx))).await;
        assert!(polled.is_pending());
        sending
    }

    /// Sends the first of the numbers, which take all lanes.
    async fn fill(&mut self) -> Vec<(Sending, Sent)> {
        let mut full = Vec::new();
        for key in (100..).take(LANES) {
            let sending = self.send(key).await;
            let sent = self.next().await;
            assert_eq!(sent.keys, [key], "while a lane is free, alone and at once");
            full.push((sending, sent));
        }
        full
    }

    async fn next(&mut self) -> Sent {
        self.sent
            .recv()
            .await
            .expect("the sender lives in `gather`")
    }
}

#[tokio::test]
async fn what_waits_goes_together_when_a_lane_is_free() {
    let mut scene = Scene::new();
    let mut full = scene.fill().await;
    let waiting = [
        scene.send(1).await,
        scene.send(2).await,
        scene.send(3).await,
    ];
    assert!(scene.sent.try_recv().is_err(), "nothing goes before");
    let (first, sent) = full.remove(0);
    sent.answer();
    assert_eq!(first.await, Ok(100));
    let together = scene.next().await;
    assert_eq!(together.keys, [1, 2, 3]);
    together.answer();
    for (sending, key) in waiting.into_iter().zip(1..) {
        assert_eq!(sending.await, Ok(key), "to each its own");
    }
}

#[tokio::test]
async fn requests_for_one_key_go_one_after_the_other() {
    let mut scene = Scene::new();
    let mut full = scene.fill().await;
    let _waiting = [
        scene.send(1).await,
        scene.send(1).await,
        scene.send(2).await,
        scene.send(1).await,
    ];
    let (_first, sent) = full.remove(0);
    sent.answer();
    drop(_first.await);
    for keys in [vec![1, 2], vec![1], vec![1]] {
        let sent = scene.next().await;
        assert_eq!(sent.keys, keys);
        sent.answer();
    }
}

#[tokio::test]
async fn what_is_large_goes_by_itself_and_no_trip_is_longer_than_the_most() {
    let mut scene = Scene::new();
    let mut full = scene.fill().await;
    let mut waiting = Vec::new();
    for key in (1..70).chain([201, 202]) {
        waiting.push(scene.send(key).await);
    }
    let (first, sent) = full.remove(0);
    sent.answer();
    first.await.unwrap();
    let mut sizes = Vec::new();
    for _ in 0..4 {
        let sent = scene.next().await;
        sizes.push(sent.keys.len());
        sent.answer();
    }
    assert_eq!(sizes, [MOST, 69 - MOST, 1, 1]);
}

#[tokio::test]
async fn what_the_server_refused_together_goes_by_itself() {
    let mut scene = Scene::new();
    let mut full = scene.fill().await;
    let good = scene.send(1).await;
    let bad = scene.send(2).await;
    let (first, sent) = full.remove(0);
    sent.answer();
    first.await.unwrap();
    let together = scene.next().await;
    assert_eq!(together.keys, [1, 2]);
    together.end.send(Ok(Replies::Refused)).ok();
    let apart = [scene.next().await, scene.next().await];
    for sent in apart {
        match sent.keys.as_slice() {
            [1] => sent.answer(),
            _ => drop(sent.end.send(Ok(Replies::Refused))),
        }
    }
    assert_eq!(
        good.await,
        Ok(1),
        "what is wrong with another is not its own"
    );
    assert_eq!(bad.await.unwrap_err().kind(), StoreErrorKind::Permanent);
}

#[tokio::test]
async fn one_that_waits_apart_holds_up_nobody() {
    let mut scene = Scene::new();
    let full = scene.fill().await;
    let _stuck = [scene.send(1).await, scene.send(2).await];
    let mut ends = full.into_iter();
    let (first, sent) = ends.next().unwrap();
    sent.answer();
    first.await.unwrap();
    scene.next().await.end.send(Ok(Replies::Refused)).ok();
    // Neither is answered, and the lane is free all the same.
    let _apart = [scene.next().await, scene.next().await];
    let next = scene.send(3).await;
    let sent = scene.next().await;
    assert_eq!(sent.keys, [3]);
    sent.answer();
    assert_eq!(next.await, Ok(3));
}

#[tokio::test]
async fn an_error_on_the_way_is_everybodys() {
    let mut scene = Scene::new();
    let mut full = scene.fill().await;
    let waiting = [scene.send(1).await, scene.send(2).await];
    let (first, sent) = full.remove(0);
    sent.answer();
    first.await.unwrap();
    let lost = || StoreError::new(StoreErrorKind::Transient, "lost").ambiguous();
    scene.next().await.end.send(Err(lost())).ok();
    for sending in waiting {
        assert_eq!(sending.await, Err(lost()));
    }
}

#[tokio::test]
async fn whoever_leaves_before_it_is_sent_is_not_sent() {
    let mut scene = Scene::new();
    let mut full = scene.fill().await;
    let stays = scene.send(1).await;
    drop(scene.send(2).await);
    let (first, sent) = full.remove(0);
    sent.answer();
    first.await.unwrap();
    let sent = scene.next().await;
    assert_eq!(sent.keys, [1]);
    sent.answer();
    assert_eq!(stays.await, Ok(1));
}

#[tokio::test]
async fn whoever_is_cut_off_leaves_the_lane_to_those_who_wait() {
    let mut scene = Scene::new();
    let mut full = scene.fill().await;
    let waits = scene.send(1).await;
    drop(full.remove(0));
    let sent = scene.next().await;
    assert_eq!(sent.keys, [1]);
    sent.answer();
    assert_eq!(waits.await, Ok(1));
}

#[tokio::test]
async fn a_trip_goes_on_for_those_who_stay_and_ends_when_all_have_left() {
    let mut scene = Scene::new();
    let mut full = scene.fill().await;
    let (leaves, stays) = (scene.send(1).await, scene.send(2).await);
    let (first, sent) = full.remove(0);
    sent.answer();
    first.await.unwrap();
    let mut together = scene.next().await;
    drop(leaves);
    // One more trip of the other lane's, so that the task has seen it leave.
    let (other, sent) = full.remove(0);
    sent.answer();
    other.await.unwrap();
    assert!(!together.end.is_closed(), "one still waits");
    drop(stays);
    together.end.closed().await;
    // And the lanes are free again.
    scene.fill().await;
}

#[tokio::test]
async fn those_who_are_ready_at_the_same_moment_leave_together() {
    let mut scene = Scene::new();
    let all = [
        scene.send(1).await,
        scene.send(2).await,
        scene.send(3).await,
    ];
    let sent = scene.next().await;
    assert_eq!(sent.keys, [1, 2, 3]);
    let later = scene.send(4).await;
    assert_eq!(scene.next().await.keys, [4], "another lane is free");
    sent.answer();
    for (sending, key) in all.into_iter().zip(1..) {
        assert_eq!(sending.await, Ok(key));
    }
    assert!(later.await.unwrap_err().is_ambiguous());
}

#[tokio::test]
async fn while_many_are_under_way_few_lanes_carry_them() {
    let mut scene = Scene::with(4);
    let mut asked = Vec::new();
    let mut trips = Vec::new();
    for key in 1..=4 {
        asked.push(scene.send(key).await);
        trips.push(scene.next().await);
    }
    for key in 5..=7 {
        asked.push(scene.send(key).await);
    }
    trips.remove(0).answer();
    let three = scene.next().await;
    assert_eq!(three.keys, [5, 6, 7]);
    for key in 8..=9 {
        asked.push(scene.send(key).await);
    }
    // Six are under way, in four lanes: two of them come back and stay away.
    trips.remove(0).answer();
    trips.remove(0).answer();
    for sending in asked.drain(..3) {
        sending.await.unwrap();
    }
    assert!(scene.sent.try_recv().is_err());
    trips.remove(0).answer();
    let two = scene.next().await;
    assert_eq!(two.keys, [8, 9], "one of the last two goes on");
    two.answer();
    three.answer();
    for (sending, key) in asked.into_iter().zip(4..) {
        assert_eq!(sending.await, Ok(key));
    }
}

/// Theirs takes a lane, or goes alone, ours waits, and their runtime ends.
#[tokio::test]
async fn a_runtime_that_ends_cuts_its_trip_off_and_nobody_elses() {
    for alone in [0, LANES] {
        let mut scene = Scene::alone(LANES, alone);
        let theirs = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap();
        let mut their_trips = Vec::new();
        for key in (100..).take(LANES) {
            let gather = scene.gather.clone();
            theirs.spawn(async move { gather.send(&Key::of(key)).await.ok() });
            their_trips.push(scene.next().await);
        }
        let ours = tokio::spawn(scene.send(1).await);
        theirs.shutdown_background();
        for mut trip in their_trips {
            trip.end.closed().await;
        }
        let sent = scene.next().await;
        assert_eq!(sent.keys, [1]);
        sent.answer();
        assert_eq!(ours.await.unwrap(), Ok(1));
        // Polled: it may have to take a lane a second time.
        let next = tokio::spawn(scene.send(2).await);
        scene.next().await.answer();
        assert_eq!(next.await.unwrap(), Ok(2));
    }
}

/// Whose runtime has ended takes a lane that is dropped at once.
#[tokio::test]
async fn a_runtime_that_has_ended_sends_nothing_and_is_in_nobodys_way() {
    let mut scene = Scene::new();
    let ended = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let theirs = ended.handle().clone();
    ended.shutdown_background();
    let error = {
        let gather = scene.gather.clone();
        std::thread::spawn(move || {
            let _entered = theirs.enter();
            let key = Key::of(1);
            let mut sending = std::pin::pin!(gather.send(&key));
            let waker = std::task::Waker::noop();
            let mut cx = std::task::Context::from_waker(waker);
            loop {
                if let Poll::Ready(sent) = sending.as_mut().poll(&mut cx) {
                    return sent.unwrap_err();
                }
            }
        })
        .join()
        .unwrap()
    };
    assert!(!error.is_ambiguous(), "{error:?}");
    assert!(scene.sent.try_recv().is_err());
    scene.fill().await;
}

#[tokio::test]
async fn the_first_ones_are_sent_by_their_own_callers() {
    let mut scene = Scene::alone(4, 2);
    let first = scene.send(1).await;
    // Without a task of ours having run.
    let one = scene.sent.try_recv().unwrap();
    let second = scene.send(2).await;
    let two = scene.sent.try_recv().unwrap();
    let third = scene.send(3).await;
    assert!(scene.sent.try_recv().is_err(), "the next one takes a lane");
    let three = scene.next().await;
    for (sending, sent, key) in [(first, one, 1), (second, two, 2), (third, three, 3)] {
        assert_eq!(sent.keys, [key]);
        sent.answer();
        assert_eq!(sending.await, Ok(key));
    }
    let again = scene.send(4).await;
    assert_eq!(scene.sent.try_recv().unwrap().keys, [4]);
    drop(again);
}

#[tokio::test]
async fn when_one_that_went_alone_ends_those_who_wait_go_together() {
    for answered in [true, false] {
        let mut scene = Scene::alone(1, 1);
        let first = scene.send(1).await;
        let one = scene.next().await;
        let others = [scene.send(2).await, scene.send(3).await];
        tokio::task::yield_now().await;
        assert!(scene.sent.try_recv().is_err(), "there is one lane");
        if answered {
            one.answer();
            assert_eq!(first.await, Ok(1));
        } else {
            // It leaves, and cuts off nobody but itself.
            drop(first);
        }
        let together = scene.next().await;
        assert_eq!(together.keys, [2, 3]);
        together.answer();
        for (sending, key) in others.into_iter().zip(2..) {
            assert_eq!(sending.await, Ok(key));
        }
        // Nobody is on the road any more.
        let last = scene.send(4).await;
        assert_eq!(scene.sent.try_recv().unwrap().keys, [4]);
        drop(last);
    }
}
