//! What the system knows of this process, by the names that all of Prometheus' libraries use.

use std::fs;

/// The system's numbers of this process; `None` where the system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Process {
    pub cpu_seconds: Option<f64>,
    pub resident_bytes: Option<u64>,
    pub virtual_bytes: Option<u64>,
    /// Seconds since 1970.
    pub started: Option<f64>,
    pub threads: Option<u64>,
    pub open_files: Option<u64>,
    pub open_files_max: Option<u64>,
}

/// Linux counts times in these parts of a second, whatever its own clock does (`getconf CLK_TCK`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Reads files of the system, so do not call it for every request.
pub fn process() -> Process {
    let read = |path: &str| fs::read_to_string(path).ok();
    let mut process = read("/proc/self/stat").map(|stat| of_stat(&stat)).unwrap_or_default();
    let booted =
        read("/proc/stat").and_then(|stat| number_after(&stat, "btime ")).map(|seconds| seconds as f64);
    process.started = booted.zip(process.started).map(|(booted, since)| booted + since);
    if let Some(status) = read("/proc/self/status") {
        let kilobytes = |name| number_after(&status, name).map(|kilobytes| kilobytes * 1024);
        process.resident_bytes = kilobytes("VmRSS:");
        process.virtual_bytes = kilobytes("VmSize:");
        process.threads = number_after(&status, "Threads:");
    }
    process.open_files =
        fs::read_dir("/proc/self/fd").ok().map(|files| files.count().saturating_sub(1) as u64);
    process.open_files_max =
        read("/proc/self/limits").and_then(|limits| number_after(&limits, "Max open files"));
    process
}

/// Times, of which the start is counted from the boot of the machine.
fn of_stat(stat: &str) -> Process {
    // The name of the program is in parentheses and may contain any letter.
    let Some((_, rest)) = stat.rsplit_once(')') else { return Process::default() };
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let seconds = |place: usize| fields.get(place)?.parse::<f64>().ok().map(|ticks| ticks / TICKS_PER_SECOND);
    let cpu_seconds = seconds(11).zip(seconds(12)).map(|(user, system)| user + system);
    Process { cpu_seconds, started: seconds(19), ..Process::default() }
}

/// The first number behind a word at the start of a line.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 9 0 0 0 150 50 0 0 20 0 3 0 1234 1000 20";
        let process = of_stat(stat);
        assert_eq!((process.cpu_seconds, process.started), (Some(2.0), Some(12.34)));
        assert_eq!(of_stat("nonsense"), Process::default());
        assert_eq!(number_after("VmSize:\t 5 kB\nVmRSS:\t   12 kB\n", "VmRSS:"), Some(12));
        assert_eq!(
            number_after("Max open files            1024                 524288     files", "Max open files"),
            Some(1024)
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_known_to_the_system() {
        let process = process();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        assert!(process.resident_bytes.is_some_and(|bytes| bytes > 100_000), "{process:?}");
        assert!(
            process.started.is_some_and(|started| started > now - 86_400.0 && started < now + 60.0),
            "{process:?}"
        );
        assert!(process.open_files.is_some_and(|files| files > 0) && process.threads.is_some_and(|n| n > 0));
    }
}
