//! `partita doctor`: says what is wrong with this set-up. It changes nothing.

use std::fmt;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;
use rustix::fs::Access;
use serde_json::json;
use store::private_directory;

use super::health;
use crate::config::{self, StoreAddress};
use crate::control;

/// How long to wait for a server or a node.
const PATIENCE: Duration = Duration::from_secs(3);
/// A signed request may be 15 minutes off; an attentive operator wants to know earlier.
const SKEW_WARNED: Duration = Duration::from_secs(10);
const SKEW_REFUSED: Duration = Duration::from_secs(15 * 60);
/// A store needs room for its log and for compactions.
const FREE_BYTES_MIN: u64 = 256 << 20;
const FREE_BYTES_WARNED: u64 = 2 << 30;
/// Ten thousand connections, and the files of a store.
const FILES_WANTED: u64 = 11_024;
/// No correct clock is earlier.
const EARLIEST: Duration = Duration::from_secs(1_735_689_600);

#[derive(Args, Debug)]
pub struct DoctorFlags {
    /// The data directory of the server
    #[arg(long, value_name = "DIRECTORY", env = "PARTITA_DATA", default_value = config::DATA)]
    data: PathBuf,
    /// Where the server listens, or will listen
    #[arg(long, value_name = "HOST:PORT", env = "PARTITA_LISTEN", default_value = config::LISTEN)]
    listen: String,
    /// Where the server serves queues, or off
    #[arg(long, value_name = "HOST:PORT", env = "PARTITA_QUEUE_LISTEN", default_value = config::QUEUE_LISTEN)]
    queue_listen: String,
    /// Where the server serves blobs, or off
    #[arg(long, value_name = "HOST:PORT", env = "PARTITA_BLOB_LISTEN", default_value = config::BLOB_LISTEN)]
    blob_listen: String,
    /// The Cassandra cluster of the server, instead of a data directory
    #[arg(long, value_name = "ADDRESS", env = "PARTITA_STORE", hide_env_values = true)]
    store: Option<StoreAddress>,
    /// Also ask this endpoint for its tables
    #[arg(long, value_name = "TEXT", env = "AZURE_STORAGE_CONNECTION_STRING", hide_env_values = true)]
    connection_string: Option<String>,
    /// A certificate authority to trust besides the system's, in PEM
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

pub const HELP: &str = "\
Exit status: 0 nothing is wrong, though there may be warnings; 1 something is wrong; 2 wrong flags.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Fine,
    Warning,
    Wrong,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fine => "ok",
            Self::Warning => "warning",
            Self::Wrong => "wrong",
        })
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    subject: &'static str,
    verdict: Verdict,
    text: String,
}

impl Finding {
    fn new(subject: &'static str, verdict: Verdict, text: impl Into<String>) -> Self {
        Self { subject, verdict, text: text.into() }
    }

    fn fine(subject: &'static str, text: impl Into<String>) -> Self {
        Self::new(subject, Verdict::Fine, text)
    }

    fn wrong(subject: &'static str, text: impl Into<String>) -> Self {
        Self::new(subject, Verdict::Wrong, text)
    }
}

/// Prints what it finds, and returns the exit status.
pub fn run(flags: &DoctorFlags) -> ExitCode {
    let mut findings = vec![Finding::fine("version", crate::version())];
    findings.push(port("port", &flags.listen, "--listen"));
    if flags.queue_listen != config::OFF {
        findings.push(port("queue port", &flags.queue_listen, "--queue-listen"));
    }
    if flags.blob_listen != config::OFF {
        findings.push(port("blob port", &flags.blob_listen, "--blob-listen"));
    }
    findings.extend(clock(&flags.listen));
    match &flags.store {
        Some(address) => findings.extend(nodes(address)),
        None => findings.extend(directory(&flags.data)),
    }
    findings.push(file_limit());
    if let Some(text) = &flags.connection_string {
        findings.extend(endpoint(text, flags.ca.as_deref()));
    }
    for finding in &findings {
        println!("{}", if flags.json { as_json(finding) } else { as_line(finding) });
    }
    let worst = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Fine);
    if worst == Verdict::Wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn as_json(finding: &Finding) -> String {
    let Finding { subject, verdict, text } = finding;
    json!({ "subject": subject, "verdict": verdict.to_string(), "text": text }).to_string()
}

fn as_line(finding: &Finding) -> String {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colour = match finding.verdict {
        _ if refused || !io::stdout().is_terminal() => None,
        Verdict::Fine => Some("32"),
        Verdict::Warning => Some("33"),
        Verdict::Wrong => Some("31"),
    };
    let verdict = format!("{:<8}", finding.verdict);
    let verdict = colour.map_or_else(|| verdict.clone(), |code| format!("\x1b[{code}m{verdict}\x1b[0m"));
    format!("{verdict}{:<12}{}", finding.subject, finding.text)
}

/// Free, or served by Partita.
fn port(subject: &'static str, listen: &str, flag: &str) -> Finding {
    let address = match health::reachable(listen) {
        Ok(address) => address,
        Err(error) => return Finding::wrong(subject, error.to_string()),
    };
    if TcpStream::connect_timeout(&address, PATIENCE).is_ok() {
        return match health::ask(address, PATIENCE) {
            Ok((200, text)) => Finding::fine(subject, format!("{address} is served: {text}")),
            Ok((503, text)) => {
                Finding::wrong(subject, format!("the server on {address} is not ready: {text}"))
            }
            Ok(_) | Err(_) => Finding::wrong(
                subject,
                format!("{address} is taken by another program; stop it, or choose another port with {flag}"),
            ),
        };
    }
    match TcpListener::bind(listen) {
        Ok(_) => Finding::fine(subject, format!("{listen} is free")),
        Err(error) => {
            Finding::wrong(subject, format!("can't listen on {listen}: {error}; choose another with {flag}"))
        }
    }
}

/// By itself, and compared with the server's.
fn clock(listen: &str) -> Vec<Finding> {
    let now = SystemTime::now();
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let shown = httpdate::fmt_http_date(now);
    if since < EARLIEST {
        return vec![Finding::wrong("clock", format!("it says {shown}; set it, signatures depend on it"))];
    }
    let theirs = health::reachable(listen).ok().and_then(|address| health::date(address, PATIENCE));
    vec![match theirs {
        Some(theirs) => skew(now, theirs),
        None => Finding::fine("clock", shown),
    }]
}

fn skew(ours: SystemTime, theirs: SystemTime) -> Finding {
    let apart = ours.duration_since(theirs).unwrap_or_else(|error| error.duration());
    let text = format!("{} s apart from the server's", apart.as_secs());
    match apart {
        apart if apart > SKEW_REFUSED => Finding::wrong(
            "clock",
            format!("{text}; it refuses signatures that are more than 15 minutes off"),
        ),
        apart if apart > SKEW_WARNED => Finding::new("clock", Verdict::Warning, text),
        _ => Finding::fine("clock", format!("{}, as the server's", httpdate::fmt_http_date(ours))),
    }
}

fn directory(data: &Path) -> Vec<Finding> {
    let shown = data.display();
    let Ok(facts) = fs::metadata(data) else {
        let parent = data.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let finding = match rustix::fs::access(parent, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => Finding::fine("data", format!("{shown} does not exist yet, and can be created")),
            Err(error) => {
                Finding::wrong("data", format!("{shown} does not exist and can't be created: {error}"))
            }
        };
        return [vec![finding], disk(parent)].concat();
    };
    if !facts.is_dir() {
        return vec![Finding::wrong(
            "data",
            format!("{shown} is not a directory; choose another with --data"),
        )];
    }
    let mut findings = Vec::new();
    match rustix::fs::access(data, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK) {
        Err(error) => findings.push(Finding::wrong(
            "data",
            format!("this user may not use {shown}: {error}; run as its owner, or change its permissions"),
        )),
        Ok(()) => match private_directory::is_open_to_others(data) {
            Ok(true) => findings.push(Finding::new(
                "data",
                Verdict::Warning,
                format!(
                    "{shown}{}; other users of this machine can read it, chmod 700 prevents this",
                    in_use(data)
                ),
            )),
            _ => findings.push(Finding::fine("data", format!("{shown}{}", in_use(data)))),
        },
    }
    findings.extend(format(data));
    findings.extend(disk(data));
    findings
}

fn in_use(data: &Path) -> &'static str {
    if control::is_answered(&data.join(control::SOCKET)) { ", a server runs on it" } else { "" }
}

fn format(data: &Path) -> Option<Finding> {
    let ours = engine_embedded::FORMAT_VERSION;
    match engine_embedded::stored_format(data) {
        Ok(Some(found)) if found > ours => Some(Finding::wrong(
            "format",
            format!("the store has format {found}, and this program knows up to {ours}; use a newer one"),
        )),
        Ok(Some(found)) => Some(Finding::fine("format", format!("{found}, this program writes {ours}"))),
        Ok(None) => Some(Finding::wrong("format", "the file FORMAT is damaged; `partita check` says more")),
        // A directory that is not a store yet.
        Err(_) => None,
    }
}

fn disk(path: &Path) -> Vec<Finding> {
    let Ok(facts) = rustix::fs::statvfs(path) else { return Vec::new() };
    vec![room(facts.f_bavail.saturating_mul(facts.f_frsize))]
}

fn room(free: u64) -> Finding {
    let text = format!("{:.1} GiB free", free as f64 / f64::from(1 << 30));
    match free {
        free if free < FREE_BYTES_MIN => {
            Finding::wrong("disk", format!("{text}; a store that can't write stops; make room"))
        }
        free if free < FREE_BYTES_WARNED => Finding::new("disk", Verdict::Warning, text),
        _ => Finding::fine("disk", text),
    }
}

fn file_limit() -> Finding {
    match rlimit::Resource::NOFILE.get() {
        Ok((_, most)) => files(most),
        Err(error) => Finding::new("files", Verdict::Warning, format!("the limit is unknown: {error}")),
    }
}

fn files(most: u64) -> Finding {
    if most >= FILES_WANTED {
        return Finding::fine("files", format!("up to {most} open files"));
    }
    let text =
        format!("{most} open files are too few for 10000 connections; raise it (ulimit -Hn, LimitNOFILE)");
    Finding::new("files", Verdict::Warning, text)
}

/// Whether each node can be connected to. Neither user nor password is shown or used.
fn nodes(address: &StoreAddress) -> Vec<Finding> {
    const CASSANDRA_PORT: u16 = 9042;
    let options = match engine_cassandra::Options::from_address(address.as_str()) {
        Ok(options) => options,
        Err(error) => return vec![Finding::wrong("store", error.to_string())],
    };
    let reached = |node: &String| {
        let addresses = node.to_socket_addrs().or_else(|_| (node.as_str(), CASSANDRA_PORT).to_socket_addrs());
        let tried = addresses.and_then(|mut addresses| {
            let address = addresses.next().ok_or_else(|| io::Error::other("the name has no address"))?;
            TcpStream::connect_timeout(&address, PATIENCE)
        });
        match tried {
            Ok(_) => Finding::fine("node", format!("{node} answers")),
            Err(error) => Finding::wrong("node", format!("{node} is unreachable: {error}")),
        }
    };
    options.nodes.iter().map(reached).collect()
}

fn endpoint(connection_string: &str, ca: Option<&Path>) -> Vec<Finding> {
    let probe = match transfer::probe(connection_string, ca) {
        Ok(probe) => probe,
        Err(error) => return vec![Finding::wrong("endpoint", error.to_string())],
    };
    let listed = Finding::fine("endpoint", format!("{} lists its tables", probe.url));
    std::iter::once(listed).chain(version(probe.version.as_deref())).collect()
}

/// That of the server compared with ours; `None` if they are the same.
fn version(theirs: Option<&str>) -> Option<Finding> {
    let ours = env!("CARGO_PKG_VERSION");
    match theirs {
        Some(theirs) if theirs == ours => None,
        Some(theirs) => {
            let text = format!("it is Partita {theirs}, and this program is {ours}");
            Some(Finding::new("endpoint", Verdict::Warning, text))
        }
        None => Some(Finding::fine("endpoint", "it is not Partita, or its extensions are off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_clock_that_is_far_off_is_found() {
        let now = SystemTime::now();
        let verdict = |seconds| skew(now, now + Duration::from_secs(seconds)).verdict;
        assert_eq!(verdict(0), Verdict::Fine);
        assert_eq!(verdict(60), Verdict::Warning);
        assert_eq!(verdict(3600), Verdict::Wrong);
        assert_eq!(skew(now, now - Duration::from_secs(3600)).verdict, Verdict::Wrong);
    }

    #[test]
    fn a_disk_that_is_nearly_full_is_found() {
        for (free, expected) in [
            (0, Verdict::Wrong),
            (FREE_BYTES_MIN - 1, Verdict::Wrong),
            (FREE_BYTES_MIN, Verdict::Warning),
            (FREE_BYTES_WARNED - 1, Verdict::Warning),
            (FREE_BYTES_WARNED, Verdict::Fine),
        ] {
            assert_eq!(room(free).verdict, expected, "{free}");
        }
        let [found] = disk(&std::env::temp_dir()).try_into().unwrap();
        assert!(found.subject == "disk" && found.text.contains("GiB free"), "{found:?}");
    }

    #[test]
    fn too_few_files_and_another_version_are_warned_of() {
        assert_eq!(files(FILES_WANTED - 1).verdict, Verdict::Warning);
        assert_eq!(files(FILES_WANTED).verdict, Verdict::Fine);
        assert_eq!(version(Some("99.0.0")).map(|finding| finding.verdict), Some(Verdict::Warning));
        assert_eq!(version(Some(env!("CARGO_PKG_VERSION"))), None);
        assert_eq!(version(None).map(|finding| finding.verdict), Some(Verdict::Fine));
    }

    #[test]
    fn a_server_that_is_not_ready_is_found() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = server.accept() {
                // The first connection only looks whether somebody listens.
                if matches!(io::Read::read(&mut stream, &mut [0; 1024]), Ok(1..)) {
                    let answer = b"HTTP/1.0 503 Not ready\r\n\r\nthe disk is full\n";
                    io::Write::write_all(&mut stream, answer).unwrap();
                }
            }
        });
        let found = port("port", &address, "--listen");
        assert!(found.verdict == Verdict::Wrong && found.text.contains("the disk is full"), "{found:?}");
    }

    #[test]
    fn a_directory_that_others_can_read_and_a_newer_format_are_found() {
        let data = tempfile::tempdir().unwrap();
        let verdicts = |findings: Vec<Finding>| -> Vec<(&str, Verdict)> {
            findings.iter().filter(|f| f.subject != "disk").map(|f| (f.subject, f.verdict)).collect()
        };
        fs::set_permissions(data.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(verdicts(directory(data.path())), [("data", Verdict::Fine)]);
        fs::set_permissions(data.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(data.path().join("FORMAT"), "partita-store 99\n").unwrap();
        assert_eq!(
            verdicts(directory(data.path())),
            [("data", Verdict::Warning), ("format", Verdict::Wrong)]
        );
        let ours = format!("partita-store {}\n", engine_embedded::FORMAT_VERSION);
        fs::write(data.path().join("FORMAT"), ours).unwrap();
        assert_eq!(verdicts(directory(data.path())), [("data", Verdict::Warning), ("format", Verdict::Fine)]);
        let file = data.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(verdicts(directory(&file)), [("data", Verdict::Wrong)]);
        assert_eq!(verdicts(directory(&data.path().join("new"))), [("data", Verdict::Fine)]);
    }

    #[test]
    fn a_port_of_another_program_and_an_unreachable_node_are_found() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = other.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = other.accept() {
                drop(stream);
            }
        });
        let found = port("port", &taken, "--listen");
        assert!(found.verdict == Verdict::Wrong && found.text.contains("another program"), "{found:?}");
        assert_eq!(port("port", "127.0.0.1:0", "--listen").verdict, Verdict::Fine);
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let store = StoreAddress::from(format!("cassandra://user:secret@{closed}/partita"));
        let found = nodes(&store);
        assert!(matches!(found.as_slice(), [only] if only.verdict == Verdict::Wrong), "{found:?}");
        assert!(!format!("{found:?}").contains("secret"));
        assert_eq!(nodes(&StoreAddress::from("x".to_owned()))[0].verdict, Verdict::Wrong);
    }
}
