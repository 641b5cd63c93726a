//! A running server's control socket, for `partita reload`, `backup`, `freeze`, `thaw` and `migrate`. The command is one
//! line, and so is the answer.
//!
//! The socket is in the data directory, and only the server's user can open it. It needs no key: who can open it can also
//! read the data.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use admin::{Command, CommandError, Commands, MigrationCheck};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

/// The socket's name in the data directory.
pub const SOCKET: &str = "control";

const COMMAND_BYTES_MAX: u64 = 4096;
const COMMAND_TIME_MAX: Duration = Duration::from_secs(10);
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// A checkpoint first flushes memory to the disk.
const CHECKPOINT_TIME_MAX: Duration = Duration::from_secs(15 * 60);

fn answer_time_max(command: Command) -> Duration {
    match command {
        Command::Reload | Command::Freeze | Command::Thaw(_) => ANSWER_TIME_MAX,
        Command::Checkpoint => CHECKPOINT_TIME_MAX,
    }
}

/// Why there is no control socket.
#[derive(Debug, Error)]
pub enum BindError {
    #[error("can't create the control socket {}: {source}; choose another place with --control", .path.display())]
    Unusable { path: PathBuf, source: io::Error },
    #[error("{} is the control socket of another server; choose another place with --control", .path.display())]
    Taken { path: PathBuf },
    #[error(
        "{} exists and is not a socket; move it away, or choose another place with --control",
        .path.display()
    )]
    InTheWay { path: PathBuf },
}

/// Why a command got no success from a server.
#[derive(Debug, Error)]
pub enum AskError {
    #[error(
        "no server listens at {} ({source}); name its data directory with --data, or its socket with --control",
        .socket.display()
    )]
    NoServer { socket: PathBuf, source: io::Error },
    #[error("the server at {} did not answer: {source}; its log may say why", .socket.display())]
    Broken { socket: PathBuf, source: io::Error },
    #[error("the server at {} did not answer; its log may say why", .socket.display())]
    Silent { socket: PathBuf },
    /// The server's own text.
    #[error("{0}")]
    Refused(String),
}

/// The server's end of the socket. Drop deletes the socket file.
#[derive(Debug)]
pub struct Control {
    socket: UnixListener,
    path: PathBuf,
}

impl Control {
    /// Replaces the socket file of a server that has died.
    pub fn bind(path: &Path) -> Result<Self, BindError> {
        let unusable = |source| BindError::Unusable { path: path.to_owned(), source };
        if BlockingStream::connect(path).is_ok() {
            return Err(BindError::Taken { path: path.to_owned() });
        }
        match std::fs::symlink_metadata(path) {
            Ok(found) if std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()) => {
                std::fs::remove_file(path).map_err(unusable)?;
            }
            Ok(_) => return Err(BindError::InTheWay { path: path.to_owned() }),
            Err(_) => {}
        }
        let socket = UnixListener::bind(path).map_err(unusable)?;
        let own = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(path, own).map_err(unusable)?;
        Ok(Self { socket, path: path.to_owned() })
    }

    /// Answers one connection at a time, forever.
    pub async fn serve(self, commands: Arc<Commands>) {
        loop {
            let stream = match self.socket.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "can't accept at the control socket");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    continue;
                }
            };
            converse(stream, &commands).await;
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn converse(stream: UnixStream, commands: &Commands) {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    let mut reader = tokio::io::BufReader::new(reader.take(COMMAND_BYTES_MAX));
    let read = tokio::time::timeout(COMMAND_TIME_MAX, reader.read_line(&mut line)).await;
    if !matches!(read, Ok(Ok(_))) {
        tracing::debug!("a command did not arrive in time");
        return;
    }
    // Who can open the socket can also read the data directory, and `partita thaw` has.
    let outcome = match Command::parse(line.trim(), MigrationCheck::Done) {
        Some(command) => commands.perform(command).await,
        None => Err(CommandError::Unknown),
    };
    let answer = match outcome {
        Ok(done) => format!("ok {done}\n"),
        Err(error) => format!("error {error}\n"),
    };
    // Errors are ignored: the client may be gone, or may not read.
    let _ = tokio::time::timeout(COMMAND_TIME_MAX, writer.write_all(answer.as_bytes())).await;
}

/// Whether a server listens at this socket.
pub fn is_answered(path: &Path) -> bool {
    BlockingStream::connect(path).is_ok()
}

/// Asks the server that listens at this socket.
pub fn ask(socket: &Path, command: Command) -> Result<String, AskError> {
    let failed = |source| AskError::Broken { socket: socket.to_owned(), source };
    let mut stream = BlockingStream::connect(socket)
        .map_err(|source| AskError::NoServer { socket: socket.to_owned(), source })?;
    stream.set_read_timeout(Some(answer_time_max(command))).map_err(failed)?;
    writeln!(stream, "{}", command.name()).map_err(failed)?;
    let mut answer = String::new();
    BufReader::new(stream.take(COMMAND_BYTES_MAX)).read_line(&mut answer).map_err(failed)?;
    match answer.trim().split_once(' ') {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some(("error", text)) => Err(AskError::Refused(text.to_owned())),
        _ => Err(AskError::Silent { socket: socket.to_owned() }),
    }
}
