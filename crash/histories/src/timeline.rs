//! A violation as text: one operation on each line, with a bar that shows when it ran.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::history::{Action, Found, Operation, Outcome, Time, Verb, Version, Write};
use crate::judge::Violation;

const BAR_WIDTH_MAX: usize = 48;

/// Versions are named by their rank in the history; `v1` is the smallest.
pub fn render(history: &[Operation], violation: &Violation) -> String {
    let mut shown: Vec<usize> = violation.core.iter().chain(&violation.context).copied().collect();
    shown.sort_by_key(|index| history[*index].start);
    let names = Names::of(history);
    let bars = Bars::of(shown.iter().map(|index| (history[*index].start, history[*index].end)));
    let partition = shown.first().map_or("", |index| history[*index].partition.as_str());
    let mut out = format!("partition {partition}: {}\n", violation.why);
    for index in shown {
        let operation = &history[index];
        let mark = if violation.core.contains(&index) { '!' } else { ' ' };
        // Writing into a string can't fail.
        let _ = writeln!(
            out,
            "{mark} client {:<2} {}  {} -> {}",
            operation.client,
            bars.of_one(operation.start, operation.end, matches!(operation.outcome, Outcome::Unknown { .. })),
            names.action(&operation.action),
            names.outcome(operation, violation.row.as_deref())
        );
    }
    out.push_str(
        "(! = can't be left out; #7 = the write with number 7; v3 = the partition's third version; \
         time runs to the right)\n",
    );
    out
}

/// When operations ran, to be drawn.
#[derive(Debug)]
pub struct Bars(Vec<Time>);

impl Bars {
    /// Of starts and ends.
    pub fn of(operations: impl Iterator<Item = (Time, Time)>) -> Self {
        let mut times: Vec<Time> = operations.flat_map(|(start, end)| [start, end]).collect();
        times.sort_unstable();
        times.dedup();
        Self(times)
    }

    /// By the order of events, not by the time between them.
    pub fn of_one(&self, start: Time, end: Time, open: bool) -> String {
        let width = self.0.len().min(BAR_WIDTH_MAX);
        let place = |time: Time| self.0.partition_point(|other| *other < time) * width / self.0.len().max(1);
        let (start, end) = (place(start), place(end));
        let column = |at: usize| match at {
            at if at == start => '|',
            at if at == end => {
                if open {
                    '?'
                } else {
                    '|'
                }
            }
            at if at > start && at < end => '-',
            at if at > end && open => '.',
            _ => ' ',
        };
        (0..width).map(column).collect()
    }
}

struct Names(BTreeMap<Version, usize>);

impl Names {
    fn of(history: &[Operation]) -> Self {
        let mut versions = std::collections::BTreeSet::new();
        for operation in history {
            versions.extend(operation.writes().iter().filter_map(|write| write.if_match));
            match &operation.outcome {
                Outcome::Done(made) => versions.extend(made.iter().flatten()),
                Outcome::Found(found) => versions.extend(found.iter().map(|found| found.version)),
                Outcome::Refused { .. } | Outcome::TurnedAway | Outcome::Unknown { .. } => {}
            }
        }
        Self(versions.into_iter().enumerate().map(|(rank, version)| (version, rank + 1)).collect())
    }

    fn version(&self, version: Version) -> String {
        self.0.get(&version).map_or_else(|| version.to_string(), |rank| format!("v{rank}"))
    }

    fn action(&self, action: &Action) -> String {
        match action {
            Action::Write(write) => self.write(write),
            Action::Batch(writes) => {
                let writes: Vec<String> = writes.iter().map(|write| self.write(write)).collect();
                format!("batch [{}]", writes.join("; "))
            }
            Action::Get { row } => format!("get {row}"),
            Action::Query => "query".to_owned(),
        }
    }

    fn write(&self, write: &Write) -> String {
        let verb = match write.verb {
            Verb::Insert => "insert",
            Verb::InsertOrReplace => "insert-or-replace",
            Verb::InsertOrMerge => "insert-or-merge",
            Verb::Replace => "replace",
            Verb::Merge => "merge",
            Verb::Delete => "delete",
        };
        let mut text = format!("{verb} {}", write.row);
        if write.verb != Verb::Delete {
            let _ = write!(text, " #{}", write.number);
        }
        if matches!(write.verb, Verb::Merge | Verb::InsertOrMerge) {
            let _ = write!(text, " {{{}}}", write.extras.join(" "));
        }
        if let Some(version) = write.if_match {
            let _ = write!(text, " if {}", self.version(version));
        }
        text
    }

    fn outcome(&self, operation: &Operation, row: Option<&str>) -> String {
        match &operation.outcome {
            Outcome::Done(made) => {
                let made: Vec<String> = made.iter().flatten().map(|made| self.version(*made)).collect();
                format!("done {}", made.join(" ")).trim_end().to_owned()
            }
            Outcome::Refused { index, refusal } => match &operation.action {
                Action::Batch(_) => format!("refused at {index}: {refusal:?}"),
                _ => format!("refused: {refusal:?}"),
            },
            Outcome::Found(found) if found.is_empty() => "nothing".to_owned(),
            Outcome::Found(found) => {
                let shown = found.iter().filter(|found| row.is_none_or(|row| row == found.row));
                let mut rows: Vec<String> = shown.map(|found| self.found(found)).collect();
                if rows.len() < found.len() {
                    rows.push("other rows".to_owned());
                }
                rows.join("; ")
            }
            Outcome::TurnedAway => "turned away".to_owned(),
            Outcome::Unknown { until: None } => "no answer".to_owned(),
            Outcome::Unknown { until: Some(_) } => "no answer, the server was killed".to_owned(),
        }
    }

    fn found(&self, found: &Found) -> String {
        let values: Vec<String> =
            found.values.iter().map(|(name, number)| format!("{name}=#{number}")).collect();
        format!("{} {} {{{}}}", found.row, self.version(found.version), values.join(" "))
    }
}
