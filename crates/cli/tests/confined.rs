//! The real binary without privileges, with only its data directory writable, as `deploy/` and the Dockerfile run it.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Partita, binary};

/// In its own mount namespace: makes everything read-only except the data directory, then starts the server in place of
/// this shell, as nobody and without capabilities.
const CONFINE: &str = r#"
    set -e
    mount --bind "$DATA" "$DATA"
    # Some of the kernel's own can't be remounted, and hold nothing that nobody could write to.
    cut -d ' ' -f 5 /proc/self/mountinfo | grep -vxF "$DATA" | while read -r place; do
        mount -o remount,bind,ro "$place" 2>/dev/null || true
    done
    drop='setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set -all --inh-caps -all'
    if $drop touch "$ELSEWHERE/probe" 2>/dev/null; then
        echo "$ELSEWHERE can still be written to" >&2
        exit 1
    fi
    exec $drop "$@"
"#;

struct Confinement {
    directory: tempfile::TempDir,
    binary: PathBuf,
}

impl Confinement {
    /// `None` if this machine does not allow it; prints why.
    fn new() -> Option<Self> {
        let can = Command::new("unshare").args(["--mount", "setpriv", "--reuid", "65534", "true"]).output();
        if !can.is_ok_and(|output| output.status.success()) {
            testing::not_run("running confined takes root, unshare and setpriv (util-linux)");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        open(directory.path(), 0o755);
        for (name, mode) in [("data", 0o700), ("elsewhere", 0o777)] {
            fs::create_dir(directory.path().join(name)).unwrap();
            open(&directory.path().join(name), mode);
        }
        std::os::unix::fs::chown(directory.path().join("data"), Some(65534), Some(65534)).unwrap();
        // The user nobody may not be able to read the build directory.
        let copy = directory.path().join("partita");
        fs::copy(binary().get_program(), &copy).unwrap();
        open(&copy, 0o755);
        Some(Self { directory, binary: copy })
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn start(&self) -> Partita {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", CONFINE, "sh"]).arg(&self.binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "error", "--data"]).arg(self.data());
        command.env("DATA", self.data()).env("ELSEWHERE", self.directory.path().join("elsewhere"));
        Partita::spawn(command)
    }
}

#[test]
fn the_server_runs_as_nobody_and_writes_only_to_its_data() {
    let Some(confinement) = Confinement::new() else { return };
    let server = confinement.start();
    let status = fs::read_to_string(format!("/proc/{}/status", server.process_id())).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(
        (field("Uid:"), field("Gid:"), field("NoNewPrivs:")),
        ("65534".into(), "65534".into(), "1".into())
    );
    assert_eq!((field("CapEff:"), field("CapBnd:")), ("0".repeat(16), "0".repeat(16)));

    let mut client = server.client();
    let json = [("Content-Type", "application/json"), ("Prefer", "return-no-content")];
    let mut post = |path, body: &str| client.send("POST", path, &json, body.as_bytes()).status;
    assert_eq!(post("/Tables", r#"{"TableName":"Books"}"#), 204);
    assert_eq!(post("/Books", r#"{"PartitionKey":"p","RowKey":"r","A":1}"#), 204);
    let reload =
        Command::new(&confinement.binary).arg("reload").arg("--data").arg(confinement.data()).output();
    assert!(reload.unwrap().status.success());
    assert!(server.stop().success());

    let server = confinement.start();
    let found = server.client().send("GET", "/Books(PartitionKey='p',RowKey='r')", &[], b"");
    assert_eq!(found.status, 200);
    assert!(server.stop().success());
    let left: Vec<_> = fs::read_dir(confinement.directory.path().join("elsewhere")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
