//! The status table, line by line.

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::post;
use idem::Disposition;
use idem::http::StatusTable;

use crate::world::{Ask, Client, Effects, World};

/// Every status that is registered and that a handler can answer.
const STATUSES: &[u16] = &[
    200, 201, 202, 203, 204, 205, 206, 207, 208, 226, 300, 301, 302, 303, 304, 305, 307, 308, 400,
    401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421,
    422, 423, 424, 425, 426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 506, 507, 508, 510,
    511, 599,
];

fn app(effects: &Effects) -> Router {
    let effects = effects.clone();
    Router::new().route(
        "/answer/{status}",
        post(move |Path(status): Path<u16>| {
            let effects = effects.clone();
            async move {
                let run = effects.add();
                (StatusCode::from_u16(status).unwrap(), format!("run {run}"))
            }
        }),
    )
}

/// Sends a request twice, and checks what the second client sees.
async fn check(client: &Client, effects: &Effects, status: u16, disposition: Disposition) {
    let before = effects.count();
    let ask = Ask::new(&format!("/answer/{status}"), "status");
    let first = client.send(&ask).await;
    assert_eq!(
        first.status, status,
        "the first client gets what was answered"
    );
    let second = client.send(&ask).await;
    let runs = effects.count() - before;
    match disposition {
        Disposition::Store => {
            assert_eq!(second, first, "{status} is replayed");
            assert_eq!(runs, 1, "{status}");
        }
        Disposition::Unknown => {
            let problem = second.problem(409, "outcome-unknown");
            assert_eq!(problem["retryable"], false, "{status}");
            assert_eq!(problem["record"].as_str().map(str::len), Some(12));
            assert_eq!(runs, 1, "{status} never runs again");
        }
        Disposition::Release => {
            assert_eq!(second.status, status);
            assert_eq!(runs, 2, "{status} runs again");
        }
    }
}

pub(crate) async fn every_line_of_the_default_table(world: World) {
    let client = world.serve(app(&world.effects).layer(world.layer())).await;
    for status in STATUSES {
        let expected = match status {
            408 | 500.. => Disposition::Unknown,
            _ => Disposition::Store,
        };
        check(&client, &world.effects, *status, expected).await;
    }
}

pub(crate) async fn every_line_of_a_changed_table(world: World) {
    let mut table = StatusTable::default()
        .with_range(500..=599, Disposition::Store)
        .with(StatusCode::CREATED, Disposition::Unknown)
        .with(StatusCode::ACCEPTED, Disposition::Release);
    let released = [401, 403, 425, 429];
    for status in released {
        table = table.with(StatusCode::from_u16(status).unwrap(), Disposition::Release);
    }
    let layer = world.builder().statuses(table).build().unwrap();
    let client = world.serve(app(&world.effects).layer(layer)).await;
    for status in STATUSES {
        let expected = match status {
            201 | 408 => Disposition::Unknown,
            202 => Disposition::Release,
            status if released.contains(status) => Disposition::Release,
            _ => Disposition::Store,
        };
        check(&client, &world.effects, *status, expected).await;
    }
}
