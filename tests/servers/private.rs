//! A database server of one test's own, as `scripts/stores` starts them: to be
//! killed, or to have settings that others must not see.

use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use idem::sqlx::{Connection as _, MySqlConnection, PgConnection};
use tempfile::TempDir;

use crate::place::Server;

/// Ends with its files when dropped.
pub(crate) struct Private {
    server: Server,
    folder: TempDir,
    port: u16,
    settings: Vec<String>,
    process: Option<Child>,
}

impl Drop for Private {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Private {
    /// Creates and starts a server with settings as its command line has them.
    pub(crate) async fn start(server: Server, settings: &[&str]) -> Self {
        let private = Self::at(server, folder(server), settings);
        let data = private.data();
        let (user, command) = (
            user(server),
            match server {
                Server::Postgres => {
                    let mut command = as_user("postgres", postgres("initdb"));
                    command.args(["--no-sync", "-A", "trust", "-U", "postgres", "-D"]);
                    command.arg(&data);
                    command
                }
                Server::MariaDb | Server::MySql => {
                    let mut command = as_user("mysql", PathBuf::from("mariadb-install-db"));
                    command.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
                    command.args(["--skip-test-db", "--skip-log-bin"]);
                    command.arg(format!("--datadir={}", data.display()));
                    // A server that starts removes what looks like a temporary table
                    // of an earlier one from its tmpdir, so no two may share one.
                    command.arg(format!("--tmpdir={}", private.folder.path().display()));
                    command
                }
                Server::Redis => as_user("redis", PathBuf::from("true")),
            },
        );
        run(command, user);
        let mut private = private;
        private.restart().await;
        private
    }

    /// A hot standby of a Postgres server.
    pub(crate) async fn standby(of: &Self) -> Self {
        let mut private = Self::at(of.server, folder(of.server), &[]);
        let mut command = as_user("postgres", postgres("pg_basebackup"));
        command.args(["-h", "127.0.0.1", "-U", "postgres", "-R", "--no-sync"]);
        command.args(["-c", "fast", "-p", &of.port.to_string(), "-D"]);
        command.arg(private.data());
        run(command, "postgres");
        private.restart().await;
        private
    }

    fn at(server: Server, folder: TempDir, settings: &[&str]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        Self {
            server,
            folder,
            port: free.local_addr().unwrap().port(),
            settings: settings.iter().map(|&text| text.to_owned()).collect(),
            process: None,
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("db")
    }

    pub(crate) fn url(&self) -> String {
        match self.server {
            Server::Postgres => format!("postgres://postgres@127.0.0.1:{}/postgres", self.port),
            Server::MariaDb | Server::MySql => {
                format!("mysql://root@127.0.0.1:{}/mysql", self.port)
            }
            Server::Redis => format!("redis://127.0.0.1:{}/", self.port),
        }
    }

    /// Changes the settings of the next start.
    pub(crate) fn set(&mut self, settings: &[&str]) {
        self.settings = settings.iter().map(|&text| text.to_owned()).collect();
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts the server on its files and port, and waits until it answers.
    pub(crate) async fn restart(&mut self) {
        loop {
            let mut process = self.command().spawn().unwrap();
            // The last one's processes may still be on their way out: then this
            // one ends by itself.
            while process.try_wait().unwrap().is_none() {
                if self.answers().await {
                    self.process = Some(process);
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    fn command(&self) -> Command {
        let (folder, data, port) = (self.folder.path().display(), self.data(), self.port);
        let mut command = match self.server {
            Server::Postgres => {
                let mut command = as_user("postgres", PathBuf::from("eatmydata"));
                command.arg(postgres("postgres")).arg("-D").arg(data);
                command.args(["-c", "listen_addresses=127.0.0.1"]);
                command.args(["-c", &format!("port={port}"), "-c", "max_connections=50"]);
                command.args(["-c", &format!("unix_socket_directories={folder}")]);
                for setting in &self.settings {
                    command.args(["-c", setting]);
                }
                command
            }
            Server::MariaDb | Server::MySql => {
                let mut command = as_user("mysql", PathBuf::from("eatmydata"));
                command.args(["mariadbd", "--no-defaults", "--bind-address=127.0.0.1"]);
                command.arg(format!("--datadir={}", data.display()));
                command.arg(format!("--tmpdir={folder}"));
                command.arg(format!("--port={port}"));
                command.arg(format!("--socket={folder}/socket"));
                command.arg(format!("--pid-file={folder}/pid"));
                command.args(["--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M"]);
                for setting in &self.settings {
                    command.arg(format!("--{setting}"));
                }
                command
            }
            Server::Redis => {
                let mut command = as_user("redis", PathBuf::from("redis-server"));
                command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
                command
                    .args(["--save", "", "--dir"])
                    .arg(self.folder.path());
                for setting in &self.settings {
                    let (name, value) = setting.split_once('=').unwrap();
                    command.arg(format!("--{name}")).args(value.split(' '));
                }
                command
            }
        };
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    async fn answers(&self) -> bool {
        let url = self.url();
        match self.server {
            Server::Postgres => match PgConnection::connect(&url).await {
                Ok(connection) => connection.close().await.is_ok(),
                Err(_) => false,
            },
            Server::MariaDb | Server::MySql => match MySqlConnection::connect(&url).await {
                Ok(connection) => connection.close().await.is_ok(),
                Err(_) => false,
            },
            Server::Redis => {
                let client = idem::redis::Client::open(url).unwrap();
                let Ok(mut connection) = client.get_multiplexed_async_connection().await else {
                    return false;
                };
                // It answers "loading" until its log is read.
                let asked = idem::redis::cmd("GET").arg("k").clone();
                let answer: Result<Option<String>, _> = asked.query_async(&mut connection).await;
                answer.is_ok()
            }
        }
    }
}

/// The servers refuse to run as root.
fn user(server: Server) -> &'static str {
    match server {
        Server::Postgres => "postgres",
        Server::MariaDb | Server::MySql => "mysql",
        Server::Redis => "redis",
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Execs, so that the process that is started becomes the server.
fn as_user(user: &str, program: PathBuf) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={user}"), &format!("--regid={user}")]);
    command.arg("--init-groups").arg(program);
    command
}

fn run(mut command: Command, user: &str) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "as {user}: {command:?}: {said}");
}

/// A folder that the server's user may write to.
fn folder(server: Server) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    if is_root() {
        let mut command = Command::new("chown");
        command.arg(user(server)).arg(folder.path());
        run(command, "root");
    }
    folder
}

/// A program of the newest Postgres that is installed.
fn postgres(program: &str) -> PathBuf {
    let versions = std::fs::read_dir(Path::new("/usr/lib/postgresql")).unwrap();
    let number = |path: &PathBuf| -> u32 {
        path.file_name()
            .unwrap()
            .to_string_lossy()
            .parse()
            .unwrap_or(0)
    };
    let newest = versions
        .map(|entry| entry.unwrap().path())
        .max_by_key(number);
    newest.unwrap().join("bin").join(program)
}
