//! What goes wrong in production, one function each. All of them end with a look into the
//! gateway's books: that is where a double charge would show.

use std::fmt::Debug;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::World;
use super::client::{Answer, Request, eventually};
use crate::BoxError;
use crate::charge::Charge;

/// A scenario in which everything held.
pub(super) struct Finding {
    pub(super) said: String,
    /// How many answers were copies of an earlier one.
    pub(super) replayed: usize,
}

type Found = Result<Finding, BoxError>;

/// Everybody clicks at once.
pub(super) async fn crowd(world: &World) -> Found {
    let request = Request::new("crowd", 4_200);
    world.client.set_faults(&[("delay_ms", 300)]).await?;
    let servers = [&world.server_a, &world.server_b];
    let mut sending = JoinSet::new();
    for n in 0..20 {
        let client = world.client.clone();
        let url = servers[n % 2].url().to_owned();
        let request = request.clone();
        sending.spawn(async move { client.send(&url, &request).await });
    }
    let answers = sending.join_all().await;
    let answers: Vec<Answer> = answers.into_iter().collect::<Result<_, _>>()?;
    answers[0].charge()?;
    let equal = answers.iter().filter(|a| **a == answers[0]);
    check("equal answers", equal.count(), 20)?;
    only_charge(world, &request, 1).await?;
    found("20 equal answers, 1 charge", 19)
}

/// The client gives up before the gateway is done.
pub(super) async fn impatient(world: &World) -> Found {
    let request = Request::new("impatient", 1_900);
    world.client.set_faults(&[("delay_ms", 1_000)]).await?;
    let first = world.client.send(world.server_a.url(), &request);
    let given_up = timeout(Duration::from_millis(300), first).await;
    check("given up", given_up.is_err(), true)?;

    // The server did not give up: its answer is recorded, or is about to be.
    let answer = world.client.retry(world.server_b.url(), &request).await?;
    let charge = only_charge(world, &request, 1).await?;
    check("charge", answer.charge()?, charge)?;
    found("the retry got the answer that was missed, 1 charge", 1)
}

/// The gateway charges, and then the connection dies.
pub(super) async fn lost_answer(world: &World) -> Found {
    let request = Request::new("lost-answer", 2_500);
    world.client.set_faults(&[("drop_responses", 1)]).await?;
    let first = world.client.send(world.server_a.url(), &request).await?;
    check("status", first.status, 409)?;
    check("problem", first.problem(), Some("outcome-unknown"))?;

    // The retry asks the gateway what became of the order, and finds the charge.
    let answer = world.client.retry(world.server_a.url(), &request).await?;
    let charge = only_charge(world, &request, 1).await?;
    check("charge", answer.charge()?, charge)?;
    found(
        "409 outcome-unknown, then 201 by asking the gateway, 1 charge",
        0,
    )
}

/// A client's mistake: the same key, but not the same order.
pub(super) async fn other_amount(world: &World) -> Found {
    let request = Request::new("other-amount", 1_000);
    let mut other = request.clone();
    other.order.amount = 9_000;
    world.client.set_faults(&[]).await?;
    let first = world.client.send(world.server_a.url(), &request).await?;
    first.charge()?;

    let refused = world.client.send(world.server_b.url(), &other).await?;
    check("status", refused.status, 422)?;
    check("problem", refused.problem(), Some("key-reused"))?;
    let again = world.client.send(world.server_b.url(), &request).await?;
    check("the first order is still answered", again == first, true)?;
    only_charge(world, &request, 1).await?;
    found("422 key-reused, 1 charge", 1)
}

/// Two customers' clients happen to choose the same key.
pub(super) async fn shared_key(world: &World) -> Found {
    let alice = Request::new("shared-key-alice", 700);
    let mut bob = Request::new("shared-key-bob", 800);
    bob.customer = "bob";
    bob.key.clone_from(&alice.key);
    world.client.set_faults(&[]).await?;

    for request in [&alice, &bob] {
        let first = world.client.send(world.server_a.url(), request).await?;
        check(
            "the customer's own order",
            first.charge()?.order,
            request.order.clone(),
        )?;
        let again = world.client.send(world.server_b.url(), request).await?;
        check("the customer's own answer again", again == first, true)?;
        only_charge(world, request, 1).await?;
    }
    found("each has an order of their own, 2 charges", 2)
}

/// The server dies at the worst moment: the money has moved, and nothing is written down.
pub(super) async fn killed(world: &mut World) -> Found {
    let request = Request::new("killed", 5_000);
    world
        .client
        .set_faults(&[("hold_response_ms", 20_000)])
        .await?;
    let url = world.server_a.url().to_owned();
    let first = world.client.send(&url, &request);
    let kill = async {
        let books = async || Ok(world.client.charges(&request.order.order_id).await?.pop());
        eventually(Duration::from_secs(5), "the charge", books).await?;
        world.server_a.kill().await
    };
    let (first, killed) = tokio::join!(first, kill);
    killed?;
    check("no answer", first.is_err(), true)?;

    // The dead server's lease has to end first; then the retry asks the gateway.
    world.client.set_faults(&[]).await?;
    let answer = world.client.retry(world.server_b.url(), &request).await?;
    let charge = only_charge(world, &request, 1).await?;
    check("charge", answer.charge()?, charge)?;
    found("201 with the dead server's charge, 1 charge", 0)
}

/// What `idem` does not promise: after the ttl it has forgotten. The key that it hands down is
/// still the same, so a gateway that remembers longer prevents the second charge.
pub(super) async fn too_late(world: &World) -> Found {
    let request = Request::new("too-late", 3_300);
    world.client.set_faults(&[]).await?;
    let server = world.start_server_c(&["--ttl", "1s"]).await?;
    world.client.send(server.url(), &request).await?.charge()?;
    eventually(Duration::from_secs(10), "a sweep", async || {
        Ok((world.client.swept(server.url()).await? > 0).then_some(()))
    })
    .await?;

    let late = world.client.send(server.url(), &request).await?;
    // Two requests reached the gateway: the body ran twice.
    let charge = only_charge(world, &request, 2).await?;
    check("charge", late.charge()?, charge)?;
    found(
        "ran again; the gateway, not idem, prevented a 2nd charge",
        0,
    )
}

/// The one charge of this order, which the gateway was asked for `requests` times.
async fn only_charge(world: &World, request: &Request, requests: u64) -> Result<Charge, BoxError> {
    let mut charges = world.client.charges(&request.order.order_id).await?;
    check("charges", charges.len(), 1)?;
    let entry = charges.remove(0);
    check("requests to the gateway", entry.requests, requests)?;
    Ok(entry.charge)
}

/// Like `assert_eq!`, but the demo goes on with the next scenario.
#[expect(
    clippy::needless_pass_by_value,
    reason = "reads better where it is called"
)]
fn check<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Result<(), BoxError> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: expected {expected:?}, found {found:?}").into())
}

fn found(said: &str, replayed: usize) -> Found {
    Ok(Finding {
        said: said.to_owned(),
        replayed,
    })
}
