//! Every way in which a disk is made to fail: which call, on which file, with which error, for how long.

use crate::faults::{Action, Call, Errno, Fault};

/// When calls begin to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before the server is started on a store that was in use.
    Start,
    /// Before it is started on an empty directory.
    FirstStart,
    /// Under load.
    Load,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub phase: Phase,
    pub fault: Fault,
    /// Nothing may be acknowledged after it, and the server has to end.
    pub is_final: bool,
}

const ONCE: u64 = 1;
const FOR_EVER: u64 = u64::MAX;

/// A call, what becomes of it, and how often.
type Failure = (Call, Action, Errno, u64);

const WRITES: [Failure; 4] = [
    (Call::Write, Action::Fail, Errno::Io, ONCE),
    (Call::Write, Action::Fail, Errno::Io, FOR_EVER),
    (Call::Write, Action::Fail, Errno::NoSpace, FOR_EVER),
    (Call::Write, Action::Short, Errno::NoSpace, FOR_EVER),
];
const SYNCS: [Failure; 3] = [
    (Call::Sync, Action::Fail, Errno::Io, ONCE),
    (Call::Sync, Action::Fail, Errno::Io, FOR_EVER),
    (Call::Sync, Action::Fail, Errno::NoSpace, ONCE),
];
const OPENS: [Failure; 2] =
    [(Call::Open, Action::Fail, Errno::Io, ONCE), (Call::Open, Action::Fail, Errno::NoSpace, FOR_EVER)];
const ALLOCATIONS: [Failure; 2] = [
    (Call::Allocate, Action::Fail, Errno::NoSpace, FOR_EVER),
    (Call::Truncate, Action::Fail, Errno::Io, FOR_EVER),
];
const NAMES: [Failure; 2] =
    [(Call::Rename, Action::Fail, Errno::Io, ONCE), (Call::Rename, Action::Fail, Errno::NoSpace, FOR_EVER)];
const ENDS: [Failure; 2] =
    [(Call::Unlink, Action::Fail, Errno::Io, FOR_EVER), (Call::Close, Action::Fail, Errno::Io, ONCE)];
const RANGES: [Failure; 1] = [(Call::SyncRange, Action::Fail, Errno::Io, FOR_EVER)];
const FOLDERS: [Failure; 1] = [(Call::Mkdir, Action::Fail, Errno::NoSpace, FOR_EVER)];

/// Files by what they are to the server, their pattern, and what can fail of them.
const FILES: [(&str, &str, &[&[Failure]]); 12] = [
    ("log", "db/*.log", &[&WRITES, &SYNCS, &OPENS, &ALLOCATIONS, &ENDS]),
    ("table file", "db/*.sst", &[&WRITES, &SYNCS, &OPENS, &ALLOCATIONS, &ENDS, &RANGES]),
    ("manifest", "db/MANIFEST-*", &[&WRITES, &SYNCS, &OPENS, &ALLOCATIONS, &ENDS]),
    ("pointer", "db/*.dbtmp", &[&WRITES, &SYNCS, &OPENS, &NAMES, &ENDS]),
    ("counter", "committed", &[&WRITES, &SYNCS, &OPENS]),
    ("format", "FORMAT*", &[&WRITES, &SYNCS, &OPENS, &NAMES]),
    ("database directory", "db", &[&SYNCS, &FOLDERS]),
    ("data directory", "", &[&SYNCS]),
    ("content", "content/*", &[&WRITES, &SYNCS, &OPENS, &NAMES, &ENDS]),
    ("content directory", "content", &[&SYNCS, &FOLDERS]),
    ("messages", "db/LOG*", &[&WRITES, &OPENS, &NAMES]),
    ("every file", "*", &[&WRITES, &SYNCS, &OPENS, &ENDS]),
];

/// Every combination there is.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for (file, pattern, groups) in FILES {
        for (call, action, error, times) in groups.iter().copied().flatten().copied() {
            for phase in [Phase::Load, Phase::Start, Phase::FirstStart] {
                if !happens(phase, file) {
                    continue;
                }
                for skip in [0, 1, 7] {
                    let often = if times == ONCE { "once" } else { "for ever" };
                    let name =
                        format!("{phase:?}: {call:?} of {file}, {action:?} {error:?} {often} after {skip}");
                    // A disk has no room for anything if it has none for data.
                    let calls = match (file, error) {
                        ("every file", Errno::NoSpace) => {
                            vec![Call::Write, Call::Open, Call::Allocate, Call::Mkdir]
                        }
                        _ => vec![call],
                    };
                    let is_final =
                        phase == Phase::Load && file == "log" && matches!(call, Call::Write | Call::Sync);
                    let fault = Fault { calls, pattern, action, error, skip, times };
                    cases.push(Case { name, phase, fault, is_final });
                }
            }
        }
    }
    cases
}

/// Whether anything is done to such a file then.
fn happens(phase: Phase, file: &str) -> bool {
    match file {
        "format" | "data directory" => phase != Phase::Load,
        "pointer" => phase != Phase::Load,
        "content" => phase == Phase::Load,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_failures_of_the_log_under_load_are_final() {
        let cases = all();
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len());
        let finals = cases.iter().filter(|case| case.is_final);
        assert!(finals.clone().all(|case| case.fault.pattern == "db/*.log"));
        assert_eq!(finals.count(), (WRITES.len() + SYNCS.len()) * 3);
    }
}
