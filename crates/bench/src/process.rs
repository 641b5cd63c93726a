//! What a process has used: processor time of all its threads, and memory.

use std::fs;
use std::time::Duration;

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use crate::error::{BenchError, Result};

/// A process, by its id or as this one.
#[derive(Clone, Debug)]
pub struct Process(Pid);

/// Memory in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Memory {
    pub resident_kib: u64,
    pub peak_kib: u64,
}

impl Process {
    pub fn this() -> Self {
        Self(Pid::this())
    }

    /// Fails if there is no such process.
    pub fn with_id(id: u32) -> Result<Self> {
        let process = i32::try_from(id).map(|id| Self(Pid::from_raw(id)));
        let process = process.map_err(|_| BenchError::NotAProcess(id))?;
        process.cpu_time().map(|_| process)
    }

    /// User and system time of all threads, living and ended. By the process's own clock, since `/proc` counts in
    /// hundredths of a second, and a short measurement may see none pass.
    pub fn cpu_time(&self) -> Result<Duration> {
        clock_getcpuclockid(self.0)
            .and_then(clock_gettime)
            .map(Duration::from)
            .map_err(|source| BenchError::ProcessorTime { process: self.0.as_raw(), source })
    }

    pub fn memory(&self) -> Result<Memory> {
        let text = self.read("status")?;
        parse_memory(&text).ok_or(BenchError::NoMemory(self.0.as_raw()))
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.0);
        fs::read_to_string(&path).map_err(|source| BenchError::Unreadable { path, source })
    }
}

fn parse_memory(status: &str) -> Option<Memory> {
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some(Memory { resident_kib: kib("VmRSS:")?, peak_kib: kib("VmHWM:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read() {
        let status = "Name:\tx\nVmHWM:\t   2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(parse_memory(status), Some(Memory { resident_kib: 1024, peak_kib: 2048 }));
        assert_eq!(parse_memory("Name:\tkthreadd\n"), None);
        assert!(Process::this().memory().is_ok());
    }

    #[test]
    fn a_millisecond_of_work_is_seen() {
        let process = Process::this();
        let before = process.cpu_time().unwrap();
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(1) {
            std::hint::spin_loop();
        }
        assert!(process.cpu_time().unwrap() > before);
    }

    #[test]
    fn a_process_that_is_not_there_is_named() {
        // Linux has no ids above 2^22.
        for id in [u32::MAX, (1 << 22) + 1] {
            assert!(Process::with_id(id).unwrap_err().to_string().contains("is the server running?"), "{id}");
        }
    }
}
