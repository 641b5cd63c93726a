//! Compares the judge with a search that tries every order one by one: slow, but simple enough to be trusted.

use std::collections::BTreeMap;

use histories::history::{Action, Found, Operation, Outcome, Time, Verb, WRITER};
use histories::judge::{PLACES_MAX, is_linearizable};
use proptest::prelude::*;

use crate::simulator::{Losses, Simulator, Store};

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, max_shrink_iters: 0, ..ProptestConfig::default() })]

    /// Times are changed afterwards, so that about half of the histories have no order.
    #[test]
    fn the_judge_agrees_with_trying_every_order(seed: u64, clients in 2..4_usize, rows in 1..3_usize) {
        let mut simulator = Simulator::new(seed, clients, rows);
        simulator.run(6 / clients, Losses::Any);
        let mut random = simulator.random.clone();
        let mut history = simulator.finish();
        for operation in &mut history {
            if random.chance(40) {
                operation.start = random.below(200) as Time;
                operation.end = operation.start + random.below(80) as Time;
                if let Outcome::Unknown { until: Some(until) } = &mut operation.outcome {
                    *until = operation.end;
                }
            }
        }
        history.sort_by_key(|operation| operation.start);
        prop_assert_eq!(is_linearizable(&history, PLACES_MAX), Some(has_an_order(&history)), "{:#?}", history);
    }
}

fn has_an_order(history: &[Operation]) -> bool {
    let mut latest = BTreeMap::new();
    try_all(history, &mut vec![false; history.len()], &Store::default(), &mut latest)
}

fn try_all(
    history: &[Operation],
    taken: &mut Vec<bool>,
    store: &Store,
    latest: &mut BTreeMap<String, i64>,
) -> bool {
    let lost =
        |operation: &Operation| matches!(operation.outcome, Outcome::Unknown { .. } | Outcome::TurnedAway);
    let end = |operation: &Operation| match operation.outcome {
        Outcome::Unknown { until } => until.unwrap_or(Time::MAX),
        _ => operation.end,
    };
    let left = |taken: &[bool], index: usize| !taken[index] && !lost(&history[index]);
    if !(0..history.len()).any(|index| left(taken, index)) {
        return true;
    }
    for index in 0..history.len() {
        let operation = &history[index];
        let too_early =
            (0..history.len()).any(|other| left(taken, other) && end(&history[other]) < operation.start);
        let too_late = (0..history.len()).any(|other| taken[other] && end(operation) < history[other].start);
        if taken[index] || too_early || too_late {
            continue;
        }
        let (mut after, mut versions) = (store.clone(), latest.clone());
        if !happens(history, operation, &mut after, &mut versions) {
            continue;
        }
        taken[index] = true;
        if try_all(history, taken, &after, &mut versions) {
            return true;
        }
        taken[index] = false;
    }
    false
}

fn happens(
    history: &[Operation],
    operation: &Operation,
    store: &mut Store,
    latest: &mut BTreeMap<String, i64>,
) -> bool {
    let writes = match &operation.action {
        Action::Write(write) => std::slice::from_ref(write),
        Action::Batch(writes) => writes,
        Action::Get { .. } | Action::Query => &[],
    };
    let given = match &operation.outcome {
        Outcome::TurnedAway => return false,
        Outcome::Found(_) | Outcome::Refused { .. } => {
            return store.clone().execute(&operation.action) == operation.outcome;
        }
        Outcome::Done(given) => given.clone(),
        Outcome::Unknown { .. } => writes.iter().map(|write| shown(history, write.number)).collect(),
    };
    if writes.iter().any(|write| store.refusal(write).is_some()) {
        return false;
    }
    for (write, version) in writes.iter().zip(given) {
        store.write(write);
        if write.verb == Verb::Delete {
            continue;
        }
        // A version that is not known equals no other.
        store.rows.get_mut(&write.row).unwrap().0 = version.unwrap_or(-i64::from(write.number));
        if let Some(version) = version
            && latest.insert(write.row.clone(), version).is_some_and(|before| before >= version)
        {
            return false;
        }
    }
    true
}

fn shown(history: &[Operation], number: u32) -> Option<i64> {
    let found = |operation: &Operation| match &operation.outcome {
        Outcome::Found(found) => found.clone(),
        _ => Vec::new(),
    };
    let mut found = history.iter().flat_map(found);
    found.find(|found: &Found| found.values[WRITER] == number).map(|found| found.version)
}
