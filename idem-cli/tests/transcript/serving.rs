//! The page, served by the command.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use super::{Place, idem};

/// The command, ended with the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Serves the page on a free port, looks at it, and stops it by a signal.
pub(crate) fn serves(place: &Place) {
    let mut command = idem(place);
    command
        .args(["serve", "--no-auth", "--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped());
    let mut served = Served(command.spawn().unwrap());
    let mut said = String::new();
    let stderr = served.0.stderr.take().unwrap();
    BufReader::new(stderr).read_line(&mut said).unwrap();
    let address = said
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.split('/').next())
        .expect(&said);

    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert!(page.contains("4636ed10c457"), "{page}");

    let signal = Command::new("kill")
        .args(["-INT", &served.0.id().to_string()])
        .status()
        .unwrap();
    assert!(signal.success());
    assert!(served.0.wait().unwrap().success());
}
