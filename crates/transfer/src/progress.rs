//! Prints how far a copy is: on a terminal one line that changes, elsewhere a new line every ten seconds.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const TERMINAL_INTERVAL: Duration = Duration::from_millis(200);
const LINE_INTERVAL: Duration = Duration::from_secs(10);
const BAR_CELLS: u64 = 20;

#[derive(Debug)]
pub struct ProgressPrinter {
    quiet: bool,
    terminal: bool,
    /// What is counted.
    noun: &'static str,
    task: Mutex<Task>,
}

/// What is being copied.
#[derive(Debug)]
struct Task {
    what: String,
    started: Instant,
    told: Instant,
    /// Entities that an earlier run copied. They don't count for the speed of this run.
    entities_before: u64,
    total_bytes: Option<u64>,
    /// The terminal shows the changing line.
    drawn: bool,
}

impl ProgressPrinter {
    pub fn of_entities(quiet: bool) -> Self {
        Self::new("entities", quiet)
    }

    pub fn of_messages(quiet: bool) -> Self {
        Self::new("messages", quiet)
    }

    pub fn of_blobs(quiet: bool) -> Self {
        Self::new("blobs", quiet)
    }

    /// Of more than one kind.
    pub fn of_items(quiet: bool) -> Self {
        Self::new("items", quiet)
    }

    fn new(noun: &'static str, quiet: bool) -> Self {
        let now = Instant::now();
        let task = Task {
            what: String::new(),
            started: now,
            told: now,
            entities_before: 0,
            total_bytes: None,
            drawn: false,
        };
        Self { quiet, terminal: std::io::stderr().is_terminal(), noun, task: Mutex::new(task) }
    }

    pub fn start(&self, what: String, entities_before: u64, total_bytes: Option<u64>) {
        let mut task = self.task();
        task.what = what;
        task.started = Instant::now();
        task.told = task.started;
        task.entities_before = entities_before;
        task.total_bytes = total_bytes;
    }

    /// Takes totals, including those of earlier runs.
    pub fn update(&self, entities: u64, bytes: u64) {
        let interval = if self.terminal { TERMINAL_INTERVAL } else { LINE_INTERVAL };
        let mut task = self.task();
        if self.quiet || task.told.elapsed() < interval {
            return;
        }
        task.told = Instant::now();
        let line = task.line(self.noun, entities, bytes, self.terminal);
        if self.terminal {
            // Errors are ignored: standard error may be closed.
            let _ = write!(std::io::stderr(), "\r{line}\x1b[K");
            task.drawn = true;
        } else {
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }

    /// Prints a line, unless --quiet is set.
    pub fn notice(&self, text: &str) {
        if !self.quiet {
            self.say(text);
        }
    }

    /// Prints a line, even with --quiet.
    pub fn say(&self, text: &str) {
        let mut task = self.task();
        let clear = if std::mem::take(&mut task.drawn) { "\r\x1b[K" } else { "" };
        let _ = writeln!(std::io::stderr(), "{clear}{text}");
    }

    /// Clears the changing line, before other output.
    pub fn clear(&self) {
        if std::mem::take(&mut self.task().drawn) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    fn task(&self) -> MutexGuard<'_, Task> {
        // A panic can't leave it inconsistent: it is only used for printing.
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Task {
    fn line(&self, noun: &str, entities: u64, bytes: u64, bar: bool) -> String {
        let seconds = self.started.elapsed().as_secs_f64().max(0.001);
        let rate = (entities.saturating_sub(self.entities_before)) as f64 / seconds;
        let share = match self.total_bytes {
            Some(total) if total > 0 => {
                let cells = (bytes.min(total) * BAR_CELLS / total) as usize;
                let percent = bytes.min(total) * 100 / total;
                let bar = if bar { format!("[{:<20}] ", "#".repeat(cells)) } else { String::new() };
                format!("{bar}{percent} %, ")
            }
            _ => String::new(),
        };
        let (what, entities, bytes) = (&self.what, grouped(entities), size(bytes));
        format!("{what}: {share}{entities} {noun}, {bytes}, {} {noun}/s", grouped(rate as u64))
    }
}

/// `1,234,567`
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1.5 MiB`
pub fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "bytes" { format!("{bytes} bytes") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_sizes_are_formatted() {
        for (number, expected) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), expected);
        }
        for (bytes, expected) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (5 << 20, "5.0 MiB"),
            (1 << 50, "1024.0 TiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn a_known_total_gives_a_percentage() {
        let progress = ProgressPrinter::of_entities(true);
        progress.start("Books".to_owned(), 0, Some(200));
        let line = progress.task().line("entities", 5, 50, true);
        assert!(line.starts_with("Books: [#####               ] 25 %, 5 entities, 50 bytes, "), "{line}");
        progress.start("Books".to_owned(), 0, None);
        let line = progress.task().line("messages", 5, 50, true);
        assert!(line.starts_with("Books: 5 messages, 50 bytes, "), "{line}");
    }
}
