//! Prints how far a long command is, to standard error: on a terminal one line that changes, elsewhere a new line every ten
//! seconds.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::{Duration, Instant};

const ON_TERMINAL: Duration = Duration::from_millis(200);
const ELSEWHERE: Duration = Duration::from_secs(10);
const BAR: usize = 30;

#[derive(Debug)]
pub struct ProgressLine {
    what: &'static str,
    is_terminal: bool,
    shown: Instant,
    has_line: bool,
}

impl ProgressLine {
    pub fn new(what: &'static str) -> Self {
        let is_terminal = stderr().is_terminal();
        Self { what, is_terminal, shown: Instant::now(), has_line: false }
    }

    /// May be called often; prints only now and then.
    pub fn show(&mut self, done: u64, total: u64, more: &str) {
        self.say(|| format!("{}{more}", bar(done, total)));
    }

    /// The same with any text, for work whose total is unknown.
    pub fn say(&mut self, words: impl FnOnce() -> String) {
        if self.shown.elapsed() < if self.is_terminal { ON_TERMINAL } else { ELSEWHERE } {
            return;
        }
        self.shown = Instant::now();
        let line = format!("{} {}", self.what, words());
        // Errors are ignored: standard error may be closed.
        let mut out = stderr().lock();
        if self.is_terminal {
            let _ = write!(out, "\r{line}\x1b[K");
            let _ = out.flush();
            self.has_line = true;
        } else {
            let _ = writeln!(out, "{line}");
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.has_line {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

fn bar(done: u64, total: u64) -> String {
    let share = if total == 0 { 1.0 } else { (done as f64 / total as f64).min(1.0) };
    let full = (share * BAR as f64) as usize;
    let (full, empty) = ("#".repeat(full), ".".repeat(BAR - full));
    format!("[{full}{empty}] {:3.0}% of {}", share * 100.0, size(total))
}

/// `1.5 MB`
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KB", "MB", "GB", "TB"];
    let (mut amount, mut unit) = (bytes as f64, 0);
    while amount >= 1000.0 && unit + 1 < UNITS.len() {
        amount /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{amount:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1500, "1.5 KB"),
            (64 << 20, "67.1 MB"),
            (u64::MAX, "18446744.1 TB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn a_bar_ends_at_100_percent() {
        assert!(bar(5, 10).contains("50%"));
        assert!(bar(20, 10).contains("100%"));
        assert!(bar(0, 0).contains("100%"));
    }
}
