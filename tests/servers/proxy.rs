//! A TCP proxy that counts round trips and makes faults where a test says so.
//!
//! It knows no protocol: a *request* is what a client sends after the server
//! last sent something, a *reply* what the server sends after that, and the two
//! are a trip. Requests and replies are counted over all connections, from 1,
//! since the last [`Proxy::plan`].

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

/// Where a connection is cut, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Before the server sees anything of this request.
    Request(usize),
    /// After the server has sent this reply, of which the client sees nothing.
    Reply(usize),
    /// As `Reply`, and the client sees all but so many bytes of it.
    Tail(usize, usize),
}

/// What becomes of connections, by their numbers.
#[derive(Debug, Clone, Copy, Default)]
struct Mode {
    /// Those up to this one are closed.
    cut: usize,
    /// Those up to this one are kept, and nothing passes on them. When that is
    /// over, everything does.
    silent: usize,
}

#[derive(Debug, Default)]
struct Counts {
    cut: Option<Cut>,
    hold: Option<usize>,
    requests: usize,
    replies: usize,
    accepted: usize,
    ignored: HashSet<usize>,
}

/// One request on its way.
#[derive(Debug, Default)]
struct Held {
    arrived: Notify,
    let_go: Notify,
}

/// A proxy in front of one server; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    counts: Arc<Mutex<Counts>>,
    held: Arc<Held>,
    mode: watch::Sender<Mode>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    /// Listens on a free port of the loopback address.
    pub(crate) async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::new(Mutex::new(Counts::default()));
        let held = Arc::new(Held::default());
        let (mode, modes) = watch::channel(Mode::default());
        let task = tokio::spawn({
            let (counts, held) = (Arc::clone(&counts), Arc::clone(&held));
            async move {
                // Ends its connections when it is aborted.
                let mut connections = tokio::task::JoinSet::new();
                while let Ok((client, _)) = listener.accept().await {
                    let number = {
                        let mut counts = counts.lock().unwrap();
                        counts.accepted += 1;
                        counts.accepted
                    };
                    connections.spawn(Connection::pass(
                        number,
                        client,
                        server,
                        Arc::clone(&counts),
                        Arc::clone(&held),
                        modes.clone(),
                    ));
                }
            }
        });
        Self {
            address,
            counts,
            held,
            mode,
            task,
        }
    }

    /// Starts one for the server of a URL, and returns the URL that goes
    /// through it.
    pub(crate) async fn of_url(url: &str) -> (Self, String) {
        let (before, rest) = url.split_once("127.0.0.1:").unwrap();
        let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let server = format!("127.0.0.1:{port}").parse().unwrap();
        let proxy = Self::start(server).await;
        let url = format!("{before}{}{}", proxy.address, &rest[port.len()..]);
        (proxy, url)
    }

    /// Counts from zero, and cuts there.
    pub(crate) fn plan(&self, cut: Option<Cut>) {
        let mut counts = self.counts.lock().unwrap();
        counts.cut = cut;
        counts.requests = 0;
        counts.replies = 0;
    }

    /// Counts from zero, and holds that request.
    pub(crate) fn hold(&self, request: usize) {
        self.plan(None);
        self.counts.lock().unwrap().hold = Some(request);
    }

    /// Waits until the request that is to be held has come from a task.
    pub(crate) async fn has_held<T>(&self, task: &tokio::task::JoinHandle<T>) {
        let mut arrived = std::pin::pin!(self.held.arrived.notified());
        let pause = std::time::Duration::from_millis(20);
        while tokio::time::timeout(pause, &mut arrived).await.is_err() {
            assert!(!task.is_finished(), "it ended without this request");
        }
    }

    /// Lets the request that is held reach the server.
    pub(crate) fn let_go(&self) {
        self.held.let_go.notify_one();
    }

    /// How many replies came since the last plan.
    pub(crate) fn trips(&self) -> usize {
        self.counts.lock().unwrap().replies
    }

    /// How many requests have had no reply yet.
    pub(crate) fn under_way(&self) -> usize {
        let counts = self.counts.lock().unwrap();
        counts.requests.saturating_sub(counts.replies)
    }

    /// Whether the planned cut is still to come.
    pub(crate) fn is_to_cut(&self) -> bool {
        self.counts.lock().unwrap().cut.is_some()
    }

    /// How many connections were made.
    pub(crate) fn accepted(&self) -> usize {
        self.counts.lock().unwrap().accepted
    }

    /// Neither counts nor cuts a connection, by its number from 1.
    pub(crate) fn ignore(&self, connection: usize) {
        self.counts.lock().unwrap().ignored.insert(connection);
    }

    /// Lets nothing pass, on any connection.
    pub(crate) fn silence(&self) {
        self.mode.send_modify(|mode| mode.silent = usize::MAX);
    }

    /// Lets nothing pass on the connections that there are.
    pub(crate) fn silence_present(&self) {
        let present = self.accepted();
        self.mode.send_modify(|mode| mode.silent = present);
    }

    /// Cuts the connections that there are.
    pub(crate) fn cut_present(&self) {
        let present = self.accepted();
        self.mode.send_modify(|mode| mode.cut = present);
    }

    /// Cuts all connections and accepts none.
    pub(crate) fn down(&self) {
        self.mode.send_modify(|mode| mode.cut = usize::MAX);
    }

    /// Lets everything pass again.
    pub(crate) fn open(&self) {
        let present = self.accepted();
        self.mode.send_modify(|mode| {
            mode.cut = std::cmp::min(mode.cut, present);
            mode.silent = 0;
        });
    }
}

/// Who sent the last bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Client,
    Server,
}

/// What becomes of a request.
enum Passage {
    Free,
    Cut,
    Held,
}

struct Connection {
    number: usize,
    counts: Arc<Mutex<Counts>>,
    held: Arc<Held>,
    modes: watch::Receiver<Mode>,
    last: Last,
}

impl Connection {
    /// Passes bytes on until one side or the proxy closes the connection.
    async fn pass(
        number: usize,
        client: TcpStream,
        server: SocketAddr,
        counts: Arc<Mutex<Counts>>,
        held: Arc<Held>,
        modes: watch::Receiver<Mode>,
    ) {
        let mut connection = Self {
            number,
            counts,
            held,
            modes,
            last: Last::Server,
        };
        // Whatever ends it, both sides are closed.
        connection.run(client, server).await.ok();
    }

    async fn run(&mut self, mut client: TcpStream, server: SocketAddr) -> io::Result<()> {
        self.until_open().await?;
        let mut server = TcpStream::connect(server).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (mut asked, mut told) = (vec![0; 65_536], vec![0; 65_536]);
        let mut modes = self.modes.clone();
        loop {
            tokio::select! {
                () = is_cut(&mut modes, self.number) => return Ok(()),
                read = client.read(&mut asked) => {
                    let bytes = &asked[..read?];
                    if bytes.is_empty() {
                        return Ok(());
                    }
                    self.until_open().await?;
                    match self.request() {
                        Passage::Free => {}
                        Passage::Cut => return Ok(()),
                        Passage::Held => {
                            self.held.arrived.notify_one();
                            self.held.let_go.notified().await;
                        }
                    }
                    server.write_all(bytes).await?;
                }
                read = server.read(&mut told) => {
                    let bytes = &told[..read?];
                    if bytes.is_empty() {
                        return Ok(());
                    }
                    self.until_open().await?;
                    let passed = self.reply(bytes.len());
                    client.write_all(&bytes[..passed]).await?;
                    if passed < bytes.len() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Waits while nothing may pass.
    async fn until_open(&mut self) -> io::Result<()> {
        let number = self.number;
        let mode = self
            .modes
            .wait_for(|mode| number <= mode.cut || number > mode.silent);
        match mode.await.map(|mode| number <= mode.cut) {
            Ok(false) => Ok(()),
            Ok(true) | Err(_) => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }

    /// Counts a request as it begins.
    fn request(&mut self) -> Passage {
        if self.last == Last::Client {
            return Passage::Free;
        }
        self.last = Last::Client;
        let mut counts = self.counts.lock().unwrap();
        if counts.ignored.contains(&self.number) {
            return Passage::Free;
        }
        counts.requests += 1;
        if counts.cut == Some(Cut::Request(counts.requests)) {
            counts.cut = None;
            return Passage::Cut;
        }
        if counts.hold == Some(counts.requests) {
            counts.hold = None;
            return Passage::Held;
        }
        Passage::Free
    }

    /// Counts a reply as it begins, and returns how much of it passes.
    fn reply(&mut self, len: usize) -> usize {
        // A server that speaks first makes no trip of it.
        if self.last == Last::Server {
            return len;
        }
        self.last = Last::Server;
        let mut counts = self.counts.lock().unwrap();
        if counts.ignored.contains(&self.number) {
            return len;
        }
        counts.replies += 1;
        let passed = match counts.cut {
            Some(Cut::Reply(at)) if at == counts.replies => 0,
            Some(Cut::Tail(at, tail)) if at == counts.replies => len.saturating_sub(tail),
            _ => return len,
        };
        counts.cut = None;
        passed
    }
}

async fn is_cut(modes: &mut watch::Receiver<Mode>, number: usize) {
    modes.wait_for(|mode| number <= mode.cut).await.ok();
}
