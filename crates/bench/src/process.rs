//! What a process has used, by `/proc`: processor time of all its threads, and memory.

use std::fs;
use std::time::Duration;

/// `USER_HZ`: what the kernel counts in towards programs, on every Linux there is.
const TICKS_PER_SECOND: u64 = 100;

/// A process, by its id or as this one.
#[derive(Clone, Debug)]
pub struct Process(String);

/// Memory in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Memory {
    pub resident_kib: u64,
    pub peak_kib: u64,
}

impl Process {
    pub fn this() -> Self {
        Self("self".to_owned())
    }

    /// Fails if there is no such process, or no `/proc`.
    pub fn with_id(id: u32) -> Result<Self, String> {
        let process = Self(id.to_string());
        process.cpu_time().map(|_| process)
    }

    /// User and system time of all threads, living and ended.
    pub fn cpu_time(&self) -> Result<Duration, String> {
        let text = self.read("stat")?;
        let ticks = parse_ticks(&text).ok_or_else(|| format!("/proc/{}/stat reads {text:?}", self.0))?;
        Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
    }

    pub fn memory(&self) -> Result<Memory, String> {
        let text = self.read("status")?;
        parse_memory(&text).ok_or_else(|| format!("/proc/{}/status has no VmRSS and VmHWM", self.0))
    }

    fn read(&self, file: &str) -> Result<String, String> {
        let path = format!("/proc/{}/{file}", self.0);
        fs::read_to_string(&path)
            .map_err(|error| format!("can't read {path}: {error}; is the server running?"))
    }
}

fn parse_ticks(stat: &str) -> Option<u64> {
    // The name may hold spaces and parentheses; the last one closes it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
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
    fn proc_is_read() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 321 45 0 0 20 0 9 0 100 1 2";
        assert_eq!(parse_ticks(stat), Some(366));
        assert_eq!(parse_ticks("42 (a"), None);
        let status = "Name:\tx\nVmHWM:\t   2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(parse_memory(status), Some(Memory { resident_kib: 1024, peak_kib: 2048 }));
        assert_eq!(parse_memory("Name:\tkthreadd\n"), None);
        assert!(Process::this().memory().is_ok() && Process::this().cpu_time().is_ok());
        assert!(Process::with_id(u32::MAX).unwrap_err().contains("is the server running?"));
    }
}
