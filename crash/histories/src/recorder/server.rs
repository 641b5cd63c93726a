//! A server that the run starts: the real binary on a directory, killed and restarted on the same ports.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

const RESTARTS_MAX: usize = 100;
const RESTART_PAUSE: Duration = Duration::from_millis(100);

/// Killed when dropped.
#[derive(Debug)]
pub struct Server {
    binary: PathBuf,
    data: PathBuf,
    child: Child,
    pub connection_string: String,
    ports: Ports,
}

/// Of tables, of queues and of blobs; 0 for any that is free.
#[derive(Clone, Copy, Debug, Default)]
struct Ports {
    tables: u16,
    queues: u16,
    blobs: u16,
}

impl Server {
    pub fn start(binary: &Path, data: &Path) -> Result<Self, String> {
        let (child, connection_string) = launch(binary, data, Ports::default())?;
        let port = |endpoint: &str| {
            let address = connection_string.split_once(endpoint);
            let port = address.and_then(|(_, rest)| rest.split('/').next()?.rsplit_once(':')?.1.parse().ok());
            port.ok_or_else(|| format!("no port of {endpoint} in {connection_string:?}"))
        };
        let ports = Ports {
            tables: port("TableEndpoint=http://")?,
            queues: port("QueueEndpoint=http://")?,
            blobs: port("BlobEndpoint=http://")?,
        };
        Ok(Self { binary: binary.to_owned(), data: data.to_owned(), child, connection_string, ports })
    }

    /// kill -9. The process has ended when this returns.
    pub fn kill(&mut self) -> Result<(), String> {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        ended.map(|_| ()).map_err(|error| format!("can't kill the server: {error}"))
    }

    /// Starts it again after a kill. A connection of some other program may have one of its ports for a moment.
    pub fn restart(&mut self) -> Result<(), String> {
        let mut launched = launch(&self.binary, &self.data, self.ports);
        for _ in 0..RESTARTS_MAX {
            if launched.is_ok() {
                break;
            }
            thread::sleep(RESTART_PAUSE);
            launched = launch(&self.binary, &self.data, self.ports);
        }
        (self.child, _) = launched?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts it, waits for the banner, and returns the connection string in it.
fn launch(binary: &Path, data: &Path, ports: Ports) -> Result<(Child, String), String> {
    let cant = |why: &dyn std::fmt::Display| format!("can't start {}: {why}", binary.display());
    let mut command = Command::new(binary);
    // Settings from the environment must not change the test.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PARTITA_")) {
        command.env_remove(name);
    }
    let Ports { tables, queues, blobs } = ports;
    command.args(["serve", "--log-level", "error", "--listen", &format!("127.0.0.1:{tables}")]);
    command.args(["--queue-listen", &format!("127.0.0.1:{queues}")]);
    command.args(["--blob-listen", &format!("127.0.0.1:{blobs}")]);
    command.arg("--data").arg(data);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| cant(&format!("{error}; --binary names the server")))?;
    let lines = child.stdout.take().map(|stdout| BufReader::new(stdout).lines());
    for line in lines.into_iter().flatten() {
        let line = line.map_err(|error| cant(&error))?;
        if let Some(start) = line.find("DefaultEndpointsProtocol=") {
            return Ok((child, line[start..].trim().to_owned()));
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(cant(&"it ended without saying where it listens"))
}
