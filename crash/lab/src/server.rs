//! The real binary on a data directory: started, watched, told to stop, or killed.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::ServiceKind;
use connection::{Client, Endpoint, Target};

/// Recovery of a few megabytes takes far less, even on a busy machine; a server that takes longer hangs.
pub const START_TIME_MAX: Duration = Duration::from_secs(60);
/// The server shows only the published key. Clients of other accounts are made where their keys are known.
const HIDDEN_KEY: &str = "<key>";
const OTHER_KEY: &str = "AAAA";
/// Also when what no blob needs was removed.
const LOG_LEVEL: &str = "warn,blob_service=debug";
const POLL: Duration = Duration::from_millis(2);
const SAID_BYTES_MAX: u64 = 4096;

/// How to start it.
#[derive(Clone, Debug)]
pub struct Launch {
    pub binary: PathBuf,
    pub data: PathBuf,
    /// Its standard error is appended here.
    pub log: PathBuf,
    pub cache_mib: u32,
    /// More arguments of `partita serve`.
    pub arguments: Vec<String>,
    pub variables: Vec<(&'static str, PathBuf)>,
}

#[derive(Debug)]
pub enum Start {
    Ready(Server),
    /// It ended before it was ready. `said` is the end of its log.
    Ended {
        status: ExitStatus,
        said: String,
    },
}

impl Launch {
    /// Starts it and waits for its banner.
    pub fn start(&self) -> Result<Start, String> {
        let mut server = self.spawn()?;
        let stdout = server.child.stdout.take().ok_or("no standard output")?;
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some((_, connection)) = line.split_once("Connection string  ") {
                    // Fails only if the time is over and nobody waits any more.
                    let _ = send.send(connection.to_owned());
                }
            }
        });
        match receive.recv_timeout(START_TIME_MAX) {
            Ok(connection) => {
                server.queue_authority = authority_of("Queue", &connection);
                server.blob_authority = authority_of("Blob", &connection);
                let endpoint = Endpoint::parse(&connection.replace(HIDDEN_KEY, OTHER_KEY))
                    .map_err(|error| error.to_string())?;
                server.target = Some(Arc::new(Target { service: ServiceKind::Table, endpoint, tls: None }));
                Ok(Start::Ready(server))
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let status = server.wait(START_TIME_MAX).ok_or("it closed its output and did not end")?;
                Ok(Start::Ended { status, said: server.said() })
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                Err(format!("was not ready after {START_TIME_MAX:?} and said: {}", server.said()))
            }
        }
    }

    /// Starts it without waiting.
    pub fn spawn(&self) -> Result<Server, String> {
        let log = OpenOptions::new().create(true).append(true).open(&self.log);
        let log = log.map_err(|error| format!("can't write {}: {error}", self.log.display()))?;
        let log_start = log.metadata().map_or(0, |metadata| metadata.len());
        let mut command = Command::new(&self.binary);
        command.args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--log-level",
            LOG_LEVEL,
            "--shutdown-seconds",
            "5",
        ]);
        command
            .args(["--cache-mib", &self.cache_mib.to_string(), "--data"])
            .arg(&self.data)
            .args(&self.arguments);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let child = command.spawn();
        let child = child.map_err(|error| format!("can't start {}: {error}", self.binary.display()))?;
        let (queue_authority, blob_authority) = (None, None);
        Ok(Server { child, target: None, queue_authority, blob_authority, log: self.log.clone(), log_start })
    }
}

/// Killed when it is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    target: Option<Arc<Target>>,
    queue_authority: Option<String>,
    blob_authority: Option<String>,
    log: PathBuf,
    /// Where its part of the log begins.
    log_start: u64,
}

impl Server {
    pub fn client(&self) -> Result<Client, String> {
        self.target.clone().map(Client::new).ok_or_else(|| "the server was not waited for".to_owned())
    }

    /// The host and port that it listens on.
    pub fn authority(&self) -> Result<String, String> {
        let target = self.target.as_ref().ok_or("the server was not waited for")?;
        Ok(target.endpoint.authority())
    }

    /// The host and port that it serves queues on.
    pub fn queue_authority(&self) -> Result<String, String> {
        self.queue_authority.clone().ok_or_else(|| "the server does not say where its queues are".to_owned())
    }

    /// The host and port that it serves blobs on.
    pub fn blob_authority(&self) -> Result<String, String> {
        self.blob_authority.clone().ok_or_else(|| "the server does not say where its blobs are".to_owned())
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        // Fails only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM.
    pub fn terminate(&self) -> Result<(), String> {
        // By the shell, because not every system has `kill` as a program.
        let process = self.child.id().to_string();
        let sent = Command::new("sh")
            .args(["-c", r#"kill -TERM "$1""#, "sh", &process])
            .stderr(Stdio::null())
            .status();
        sent.map(drop).map_err(|error| format!("can't run sh: {error}"))
    }

    /// How it ended; `None` if it did not end in time.
    pub fn wait(&mut self, longest: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + longest;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(POLL);
        }
    }

    /// SIGTERM. The server must end successfully.
    pub fn stop(mut self) -> Result<(), String> {
        self.terminate()?;
        match self.wait(START_TIME_MAX) {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("ended with {status} when told to stop, and said: {}", self.said())),
            None => Err(format!("did not stop within {START_TIME_MAX:?}")),
        }
    }

    /// How often it has written a line with this text to its log.
    pub fn has_said(&self, text: &str) -> usize {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        let own = bytes.get(self.log_start as usize..).unwrap_or_default();
        String::from_utf8_lossy(own).lines().filter(|line| line.contains(text)).count()
    }

    /// The end of its log, for a report.
    pub fn said(&self) -> String {
        let read = || -> std::io::Result<String> {
            let mut file = File::open(&self.log)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(self.log_start.max(length.saturating_sub(SAID_BYTES_MAX))))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
        };
        read().unwrap_or_else(|error| format!("(its log can't be read: {error})"))
    }
}

/// Of a connection string with `QueueEndpoint=http://HOST:PORT/ACCOUNT` or another service's.
fn authority_of(service: &str, connection: &str) -> Option<String> {
    let (_, endpoint) = connection.split_once(&format!("{service}Endpoint=http://"))?;
    Some(endpoint.split(['/', ';']).next()?.to_owned())
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
