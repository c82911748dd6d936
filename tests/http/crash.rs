//! Servers that are killed, and stores that are away.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idem::EngineBuilder;
use idem::http::IdempotencyLayer;
use idem::sqlx::{self, Connection as _, SqliteConnection};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::world::{Ask, Client, Protocol, StoreKind, World, open};

const VICTIM: &str = "--victim";

/// Whether this process is the one to kill.
pub(crate) fn is_victim() -> bool {
    std::env::args().nth(1).is_some_and(|word| word == VICTIM)
}

fn hasty(builder: EngineBuilder) -> EngineBuilder {
    builder
        .lease(Duration::from_millis(500))
        .grace(Duration::from_millis(100))
}

fn app<T>(
    layer: IdempotencyLayer,
    effect: impl Fn() -> T + Clone + Send + Sync + 'static,
) -> Router {
    let handler = post(move || {
        let _effect = effect();
        // The effect has happened; the answer never comes.
        std::future::pending::<StatusCode>()
    });
    Router::new().route("/pay", handler).layer(layer)
}

fn unscoped(engine: &idem::Engine) -> IdempotencyLayer {
    let builder = IdempotencyLayer::builder(engine).unscoped();
    builder
        .on_in_progress(idem::OnInProgress::Reject)
        .build()
        .unwrap()
}

/// A server whose handler writes a line and hangs.
#[tokio::main]
pub(crate) async fn victim() {
    let words: Vec<String> = std::env::args().skip(2).collect();
    let [store, address, namespace, file] = &words[..] else {
        panic!("a victim is started by its test");
    };
    let store = match store.as_str() {
        "Sqlite" => StoreKind::Sqlite,
        _ => StoreKind::Postgres,
    };
    let builder = hasty(open(store, address).await).namespace(&**namespace);
    let engine = builder.build().await.unwrap();
    let file = file.clone();
    let app = app(unscoped(&engine), move || {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)
            .unwrap();
        writeln!(file, "charged").unwrap();
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    axum::serve(listener, app).await.unwrap();
}

fn start(world: &World, file: &Path) -> (Child, Client) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            VICTIM,
            &format!("{:?}", world.store),
            &world.address(),
            &world.namespace,
        ])
        .arg(file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let client = Client::new(line.trim().parse().unwrap(), world.protocol);
    (child, client)
}

pub(crate) async fn a_killed_server_is_told_of(world: World) {
    let file = world.folder().join("ledger");
    let charges = || std::fs::read_to_string(&file).map_or(0, |text| text.lines().count());
    let (mut child, doomed) = start(&world, &file);
    let ask = Ask::new("/pay", "killed");
    let first = tokio::spawn({
        let ask = ask.clone();
        async move { doomed.try_send(&ask).await }
    });
    crate::world::until(|| charges() == 1).await;
    child.kill().unwrap();
    child.wait().unwrap();
    first.await.unwrap().unwrap_err();

    // Another server on the same store.
    let builder = hasty(open(world.store, &world.address()).await);
    let engine = builder.namespace(&*world.namespace).build().await.unwrap();
    let effects = world.effects.clone();
    let client = world
        .serve(app(unscoped(&engine), move || effects.add()))
        .await;
    // Until the dead server's lease is over, it may only be slow.
    let told = loop {
        let answer = client.send(&ask).await;
        if answer.header("retry-after").is_none() {
            break answer;
        }
        answer.problem(409, "in-progress");
    };
    let problem = told.problem(409, "outcome-unknown");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("its lease lapsed")
    );
    assert_eq!(problem["record"].as_str().map(str::len), Some(12));
    assert_eq!((charges(), world.effects.count()), (1, 0));
}

/// Between an engine and its database, until it is cut.
async fn proxy(to: String) -> (u16, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (cut, is_cut) = watch::channel(false);
    tokio::spawn(async move {
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            let (to, mut is_cut) = (to.clone(), is_cut.clone());
            tokio::spawn(async move {
                if *is_cut.borrow() {
                    return;
                }
                let mut far = TcpStream::connect(to).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    _ = is_cut.wait_for(|cut| *cut) => {}
                }
            });
        }
    });
    (port, cut)
}

/// The host and port of a database's URL.
fn authority(url: &str) -> &str {
    let rest = url.split("://").nth(1).unwrap();
    let rest = rest.rsplit('@').next().unwrap();
    rest.split(['/', '?']).next().unwrap()
}

pub(crate) async fn a_store_that_is_away_runs_nothing(world: World) {
    if world.protocol == Protocol::Http2 && world.store == StoreKind::Sqlite {
        // Once is enough for the lock of a file.
        return;
    }
    let effects = world.effects.clone();
    let address = world.address();
    let serve = async |address: &str| {
        let builder = open(world.store, address)
            .await
            .namespace(&*world.namespace);
        let builder = builder
            .store_timeout(Duration::from_millis(200))
            .reserve_timeout(Duration::from_millis(400));
        let engine = builder.build().await.unwrap();
        let effects = effects.clone();
        let handler = post(move || {
            effects.add();
            std::future::ready(StatusCode::CREATED)
        });
        let app = Router::new()
            .route("/pay", handler)
            .layer(unscoped(&engine));
        world.serve(app).await
    };
    let ask = Ask::new("/pay", "away");
    match world.store {
        StoreKind::Sqlite => {
            let client = serve(&address).await;
            let mut other = SqliteConnection::connect(&address).await.unwrap();
            sqlx::query("BEGIN EXCLUSIVE")
                .execute(&mut other)
                .await
                .unwrap();
            client.send(&ask).await.problem(503, "store-unavailable");
            assert_eq!(effects.count(), 0);
            sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
            settle(&client, &ask).await;
        }
        StoreKind::Postgres => {
            let to = authority(&address);
            let (port, cut) = proxy(to.to_owned()).await;
            let client = serve(&address.replace(to, &format!("127.0.0.1:{port}"))).await;
            cut.send(true).unwrap();
            client.send(&ask).await.problem(503, "store-unavailable");
            assert_eq!(effects.count(), 0);
            cut.send(false).unwrap();
            settle(&client, &ask).await;
        }
    }
    assert_eq!(effects.count(), 1);
}

/// Sends a request until the store is back.
async fn settle(client: &Client, ask: &Ask) {
    loop {
        let answer = client.send(ask).await;
        if answer.header("retry-after").is_none() {
            assert_eq!(answer.status, 201);
            return;
        }
    }
}
