//! The preloaded library: compiles it, tells it which calls to fail, reads how many failed, and moves the server's clocks.
//!
//! The rule is a small file that one side maps and the other has open; its layout is `struct rule` in `faults.c`.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const SOURCE: &str = include_str!("../../faults/faults.c");

const RULE_BYTES: usize = 112;
const DYING: u32 = 2;
const CALLS_AT: usize = 4;
const PATTERN_AT: usize = 32;
const PATTERN_BYTES: usize = 64;
const SEEN_AT: u64 = 96;
const INJECTED_AT: u64 = 104;

/// Compiles the library into a directory, with the machine's C compiler.
pub fn compile(directory: &Path) -> Result<PathBuf, String> {
    let library = directory.join("faults.so");
    let failed = |error: &dyn std::fmt::Display| {
        format!("can't compile the fault library: {error}; a C compiler called cc is needed")
    };
    let mut compiler = Command::new("cc")
        .args(["-O2", "-Wall", "-shared", "-fPIC", "-x", "c", "-", "-o"])
        .arg(&library)
        .args(["-ldl", "-lpthread"])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;
    if let Some(mut stdin) = compiler.stdin.take() {
        stdin.write_all(SOURCE.as_bytes()).map_err(|error| failed(&error))?;
    }
    let status = compiler.wait().map_err(|error| failed(&error))?;
    if status.success() { Ok(library) } else { Err(failed(&status)) }
}

/// Calls that can be made to fail; the numbers are those of `enum call`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Write = 0,
    Sync = 1,
    Open = 2,
    Rename = 3,
    Unlink = 4,
    Truncate = 5,
    Allocate = 6,
    Mkdir = 8,
    Close = 9,
    SyncRange = 10,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Fail = 0,
    /// The first matching write writes half of its data; later ones fail.
    Short = 1,
}

/// Linux's numbers, the same on every architecture Partita is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    Io = 5,
    NoSpace = 28,
}

/// What to fail.
#[derive(Clone, Debug)]
pub struct Fault {
    pub calls: Vec<Call>,
    /// A shell pattern for paths within the data directory.
    pub pattern: &'static str,
    pub action: Action,
    pub error: Errno,
    /// Matching calls that still succeed.
    pub skip: u64,
    /// How many calls fail after these.
    pub times: u64,
}

impl Fault {
    /// Nothing fails.
    pub const NONE: Self =
        Self { calls: Vec::new(), pattern: "", action: Action::Fail, error: Errno::Io, skip: 0, times: 0 };
}

#[derive(Debug)]
pub struct Rule {
    file: File,
    pub path: PathBuf,
}

impl Rule {
    /// Nothing fails until it is armed.
    pub fn create(path: PathBuf, fault: &Fault) -> Result<Self, String> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(|error| format!("can't write {}: {error}", path.display()))?;
        let mut bytes = [0; RULE_BYTES];
        let calls = fault.calls.iter().fold(0_u32, |bits, call| bits | 1 << (*call as u32));
        let numbers = [calls, fault.action as u32, fault.error as u32];
        for (index, number) in numbers.into_iter().enumerate() {
            let at = CALLS_AT + index * 4;
            bytes[at..at + 4].copy_from_slice(&number.to_ne_bytes());
        }
        bytes[16..24].copy_from_slice(&fault.skip.to_ne_bytes());
        bytes[24..32].copy_from_slice(&fault.times.to_ne_bytes());
        // One byte is left for the zero at the end.
        let pattern = fault.pattern.as_bytes();
        bytes[PATTERN_AT..PATTERN_AT + pattern.len().min(PATTERN_BYTES - 1)].copy_from_slice(pattern);
        file.write_all_at(&bytes, 0).map_err(|error| format!("can't write {}: {error}", path.display()))?;
        Ok(Self { file, path })
    }

    pub fn arm(&self, armed: bool) -> Result<(), String> {
        self.set(u32::from(armed))
    }

    /// Makes the server end at its next call, as if it were killed, but between two records.
    pub fn die(&self) -> Result<(), String> {
        self.set(DYING)
    }

    fn set(&self, armed: u32) -> Result<(), String> {
        let written = self.file.write_all_at(&armed.to_ne_bytes(), 0);
        written.map_err(|error| format!("can't write {}: {error}", self.path.display()))
    }

    /// Calls that matched, whether they failed or not.
    pub fn seen(&self) -> u64 {
        self.number(SEEN_AT)
    }

    pub fn injected(&self) -> u64 {
        self.number(INJECTED_AT)
    }

    fn number(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        // `create` has written the whole file. If it is gone, nothing was injected by it either.
        match self.file.read_exact_at(&mut bytes, at) {
            Ok(()) => u64::from_ne_bytes(bytes),
            Err(_) => 0,
        }
    }
}

/// How far a server's clocks are ahead, in seconds: a file that it maps.
#[derive(Debug)]
pub struct Clock {
    file: File,
    pub path: PathBuf,
    ahead: u64,
}

impl Clock {
    pub fn create(path: PathBuf) -> Result<Self, String> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(|error| format!("can't write {}: {error}", path.display()))?;
        let mut clock = Self { file, path, ahead: 0 };
        clock.advance(Duration::ZERO)?;
        Ok(clock)
    }

    /// Clocks only go forward. Servers that run notice it at once.
    pub fn advance(&mut self, by: Duration) -> Result<(), String> {
        self.ahead += by.as_secs();
        let written = self.file.write_all_at(&self.ahead.to_ne_bytes(), 0);
        written.map_err(|error| format!("can't write {}: {error}", self.path.display()))
    }
}
