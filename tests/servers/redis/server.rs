//! A server of a test's own, whose settings it may change.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use super::raw;

pub(super) struct Server {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Starts one that flushes each write and evicts nothing, with more options.
    pub(super) fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"])
            .args(["--appendfsync", "always", "--port", &port.to_string()])
            .arg("--dir")
            .arg(folder.path())
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = said.any(|line| line.unwrap().contains("Ready to accept connections"));
        assert!(ready, "it did not start");
        // What it says later must not fill the pipe.
        std::thread::spawn(move || said.for_each(drop));
        Self {
            child,
            port,
            _folder: folder,
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub(super) async fn set(&self, name: &str, value: &str) {
        raw::<()>(&self.url(), &["CONFIG", "SET", name, value]).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
