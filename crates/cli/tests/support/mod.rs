//! The real binary as a child process, and a client that sends exactly what a test says.

#![allow(dead_code, reason = "each test binary uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

pub mod batch;
pub mod cluster;
pub mod control;
pub mod http;
pub mod oracle;
pub mod random;
pub mod request_logs;
pub mod transcript;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use front::ServiceKind;
pub use http::{Answer, Client};

pub const ACCOUNT: &str = "devstoreaccount1";
pub const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A running server. Killed when dropped.
pub struct Partita {
    child: Child,
    pub address: SocketAddr,
    pub banner: String,
}

/// The address behind a word of the banner.
fn endpoint(banner: &str, word: &str) -> Option<SocketAddr> {
    let (_, rest) = banner.split_once(word)?;
    rest.split('/').nth(2).and_then(|text| text.parse().ok())
}

/// The program under test. `PARTITA_UNDER_TEST` names another one, such as that of an earlier release.
pub fn binary() -> Command {
    let program = std::env::var_os("PARTITA_UNDER_TEST");
    let mut command = Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_partita").into()));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PARTITA_")) {
        command.env_remove(name);
    }
    command
}

impl Partita {
    pub fn in_memory() -> Self {
        Self::start(&["--in-memory"])
    }

    pub fn in_directory(directory: &Path) -> Self {
        Self::start(&["--data", &directory.display().to_string()])
    }

    /// Starts on a free port and waits until the banner says where.
    pub fn start(arguments: &[&str]) -> Self {
        Self::launch("error", Stdio::inherit(), arguments)
    }

    /// As `start`, in memory, with a log of this level kept in a file.
    pub fn logging_to(log: &Path, level: &str, arguments: &[&str]) -> Self {
        let file = std::fs::File::create(log).unwrap();
        Self::launch(level, file.into(), &[&["--in-memory"], arguments].concat())
    }

    fn launch(log_level: &str, log: Stdio, arguments: &[&str]) -> Self {
        let mut command = binary();
        command.arg("serve").args(["--listen", "127.0.0.1:0", "--log-level", log_level]).args(arguments);
        command.stderr(log);
        Self::spawn(command)
    }

    /// Runs this command and waits until its banner says where it listens.
    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut banner = String::new();
        let mut address = None;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            banner.push_str(&line);
            banner.push('\n');
            if line.contains("TableEndpoint=http") {
                address = endpoint(&line, "TableEndpoint=http");
                break;
            }
        }
        let address = address.unwrap_or_else(|| panic!("no endpoint in the banner: {banner:?}"));
        Self { child, address, banner }
    }

    pub fn client(&self) -> Client {
        Client::new(self.address, ACCOUNT, KEY)
    }

    /// Where queues are served.
    pub fn queue_address(&self) -> SocketAddr {
        let address = endpoint(&self.banner, "QueueEndpoint=http");
        address.unwrap_or_else(|| panic!("no endpoint of queues in the banner: {:?}", self.banner))
    }

    /// Where the console and the administration are served.
    pub fn admin_address(&self) -> SocketAddr {
        let address = endpoint(&self.banner, "Console and metrics: http");
        address.unwrap_or_else(|| panic!("no console in the banner: {:?}", self.banner))
    }

    /// Its metrics, by name and labels.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let address = self.admin_address();
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/plain; version=0.0.4"), "{head}");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let samples = lines.filter_map(|line| line.rsplit_once(' '));
        samples.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
    }

    pub fn queue_client(&self) -> Client {
        Client::of_service(ServiceKind::Queue, self.queue_address(), ACCOUNT, KEY)
    }

    /// Where blobs are served.
    pub fn blob_address(&self) -> SocketAddr {
        let address = endpoint(&self.banner, "BlobEndpoint=http");
        address.unwrap_or_else(|| panic!("no endpoint of blobs in the banner: {:?}", self.banner))
    }

    pub fn blob_client(&self) -> Client {
        Client::of_service(ServiceKind::Blob, self.blob_address(), ACCOUNT, KEY)
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory.
    pub fn memory_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    /// The peak of resident memory.
    pub fn peak_memory_kib(&self) -> u64 {
        self.status_kib("VmHWM:")
    }

    fn status_kib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// kill -9.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM and waits. Returns how it ended.
    pub fn stop(mut self) -> ExitStatus {
        self.terminate();
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "did not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn terminate(&self) {
        testing::signal(self.child.id(), "TERM");
    }

    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }
}

impl Drop for Partita {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The repository's root.
pub fn root() -> PathBuf {
    testing::package_directory().join("../..")
}
