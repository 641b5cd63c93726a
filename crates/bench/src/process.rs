//! The processor time and the memory of a process.

use std::fs;
use std::time::Duration;

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use crate::error::{BenchError, Result};

/// This process, or one with a given id.
#[derive(Clone, Debug)]
pub struct Process(Pid);

/// In KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MemoryUse {
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

    /// User and system time of all threads, running and ended. From the process's CPU clock, because `/proc` counts in
    /// hundredths of a second, which is too coarse for short measurements.
    pub fn cpu_time(&self) -> Result<Duration> {
        clock_getcpuclockid(self.0)
            .and_then(clock_gettime)
            .map(Duration::from)
            .map_err(|source| BenchError::ProcessorTime { process: self.0.as_raw(), source })
    }

    pub fn memory(&self) -> Result<MemoryUse> {
        let text = self.read("status")?;
        parse_memory(&text).ok_or(BenchError::NoMemory(self.0.as_raw()))
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.0);
        fs::read_to_string(&path).map_err(|source| BenchError::Unreadable { path, source })
    }
}

fn parse_memory(status: &str) -> Option<MemoryUse> {
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some(MemoryUse { resident_kib: kib("VmRSS:")?, peak_kib: kib("VmHWM:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read() {
        let status = "Name:\tx\nVmHWM:\t   2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(parse_memory(status), Some(MemoryUse { resident_kib: 1024, peak_kib: 2048 }));
        assert_eq!(parse_memory("Name:\tkthreadd\n"), None);
        assert!(Process::this().memory().is_ok());
    }

    #[test]
    fn a_millisecond_of_work_is_measured() {
        let process = Process::this();
        let before = process.cpu_time().unwrap();
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(1) {
            std::hint::spin_loop();
        }
        assert!(process.cpu_time().unwrap() > before);
    }

    #[test]
    fn an_error_names_a_missing_process() {
        // Linux has no ids above 2^22.
        for id in [u32::MAX, (1 << 22) + 1] {
            assert!(Process::with_id(id).unwrap_err().to_string().contains("is the server running?"), "{id}");
        }
    }
}
