//! Every history with an injected fault is rejected. The faults are such that no order explains them.

use histories::history::{Action, Operation, Outcome, Verb, Write};
use histories::judge::{PLACES_MAX, is_linearizable};
use histories::random::Random;
use proptest::prelude::*;

use crate::simulator::{Losses, Simulator};

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn a_stale_read_is_caught(seed: u64) {
        faulty(seed, |simulator| {
            let row = simulator.rows[0].clone();
            simulator.upsert(&row);
            let mut old = simulator.store.clone();
            simulator.upsert(&row);
            let stale = old.execute(&Action::Get { row: row.clone() });
            simulator.alone(Action::Get { row }, stale);
        });
    }

    #[test]
    fn a_stale_row_in_a_query_is_caught(seed: u64) {
        faulty(seed, |simulator| {
            let row = simulator.rows[0].clone();
            simulator.upsert(&row);
            let mut old = simulator.store.clone();
            simulator.upsert(&row);
            let Outcome::Found(mut rows) = simulator.store.execute(&Action::Query) else { unreachable!() };
            let Outcome::Found(stale) = old.execute(&Action::Get { row }) else { unreachable!() };
            rows[0] = stale[0].clone();
            simulator.alone(Action::Query, Outcome::Found(rows));
        });
    }

    #[test]
    fn half_a_batch_is_caught(seed: u64, answered: bool) {
        faulty(seed, |simulator| {
            let batch = simulator.batch();
            let half = batch.len() / 2;
            let made: Vec<_> = batch[..half].iter().map(|write| simulator.store.write(write)).collect();
            let rest = (0..batch.len() - half).map(|extra| Some(simulator.store.last_version + 1 + extra as i64));
            let outcome = match answered {
                true => Outcome::Done(made.into_iter().chain(rest).collect()),
                false => Outcome::Unknown { until: Some(simulator.clock + 10) },
            };
            simulator.store.last_version += 10;
            simulator.alone(Action::Batch(batch), outcome);
            simulator.alone_and_correct(Action::Query);
        });
    }

    #[test]
    fn a_query_in_the_middle_of_a_batch_is_caught(seed: u64) {
        faulty(seed, |simulator| {
            let batch = simulator.batch();
            let mut middle = simulator.store.clone();
            batch[..batch.len() / 2].iter().for_each(|write| { middle.write(write); });
            let seen = middle.execute(&Action::Query);
            let start = simulator.clock + 1;
            let outcome = simulator.store.execute(&Action::Batch(batch.clone()));
            simulator.record(start, start + 20, Action::Batch(batch), outcome);
            simulator.record(start + 5, start + 10, Action::Query, seen);
        });
    }

    #[test]
    fn a_lost_write_is_caught(seed: u64, deletes: bool) {
        faulty(seed, |simulator| {
            let row = simulator.rows[0].clone();
            if deletes {
                simulator.upsert(&row);
            }
            let before = simulator.store.clone();
            let verb = if deletes { Verb::Delete } else { Verb::InsertOrMerge };
            let write = simulator.write(verb, &row, None);
            simulator.alone_and_correct(Action::Write(write));
            simulator.store.rows = before.rows;
            simulator.alone_and_correct(Action::Get { row });
        });
    }

    #[test]
    fn a_write_lost_much_later_is_caught(seed: u64) {
        faulty(seed, |simulator| {
            let row = simulator.rows[0].clone();
            let before = simulator.store.rows.get(&row).cloned();
            simulator.upsert(&row);
            // No other write touches the row for a while.
            let others: Vec<String> = simulator.rows[1..].to_vec();
            for _ in 0..30 {
                let other = simulator.random.pick(&others);
                simulator.upsert(&other);
            }
            match before {
                Some(before) => simulator.store.rows.insert(row.clone(), before),
                None => simulator.store.rows.remove(&row),
            };
            simulator.alone_and_correct(Action::Query);
        });
    }

    #[test]
    fn two_inserts_of_one_key_are_caught(seed: u64) {
        faulty(seed, |simulator| {
            let row = simulator.rows[0].clone();
            if simulator.store.rows.contains_key(&row) {
                let delete = simulator.write(Verb::Delete, &row, None);
                simulator.alone_and_correct(Action::Write(delete));
            }
            let start = simulator.clock + 1;
            for offset in [0, 3] {
                let insert = simulator.write(Verb::Insert, &row, None);
                let version = simulator.store.write(&insert);
                let (action, outcome) = (Action::Write(insert), Outcome::Done(vec![version]));
                simulator.record(start + offset, start + 10 + offset, action, outcome);
            }
        });
    }

    #[test]
    fn an_ignored_condition_is_caught(seed: u64, deletes: bool) {
        faulty(seed, |simulator| {
            let row = simulator.rows[0].clone();
            simulator.upsert(&row);
            let old = simulator.store.rows[&row].0;
            simulator.upsert(&row);
            let verb = if deletes { Verb::Delete } else { Verb::Replace };
            let write = simulator.write(verb, &row, Some(old));
            let version = simulator.store.write(&write);
            simulator.alone(Action::Write(write), Outcome::Done(vec![version]));
        });
    }

    #[test]
    fn a_refused_write_that_was_done_is_caught(seed: u64) {
        faulty(seed, |simulator| {
            let row = simulator.rows[0].clone();
            simulator.upsert(&row);
            let write = simulator.write(Verb::Insert, &row, None);
            let refusal = simulator.store.refusal(&write).unwrap();
            simulator.store.write(&write);
            simulator.alone(Action::Write(write), Outcome::Refused { index: 0, refusal });
            simulator.alone_and_correct(Action::Get { row });
        });
    }

    #[test]
    fn a_merge_that_loses_a_property_is_caught(seed: u64) {
        faulty(seed, |simulator| {
            let row = simulator.rows[0].clone();
            simulator.upsert(&row);
            let merge = Write { extras: vec!["B".to_owned()], ..simulator.write(Verb::Merge, &row, None) };
            simulator.alone_and_correct(Action::Write(merge));
            let Outcome::Found(mut rows) = simulator.store.execute(&Action::Get { row: row.clone() }) else {
                unreachable!()
            };
            rows[0].values.remove("A");
            simulator.alone(Action::Get { row }, Outcome::Found(rows));
        });
    }

    #[test]
    fn a_version_used_again_is_caught(seed: u64) {
        faulty(seed, |simulator| {
            let row = simulator.rows[0].clone();
            simulator.upsert(&row);
            simulator.store.last_version -= 1;
            simulator.upsert(&row);
        });
    }

    #[test]
    fn a_write_that_appears_after_a_kill_is_caught(seed: u64) {
        faulty(seed, |simulator| {
            let row = simulator.rows[0].clone();
            let write = simulator.write(Verb::InsertOrReplace, &row, None);
            let until = Some(simulator.clock + 10);
            simulator.alone(Action::Write(write.clone()), Outcome::Unknown { until });
            simulator.alone_and_correct(Action::Query);
            simulator.store.write(&write);
            simulator.alone_and_correct(Action::Query);
        });
    }
}

/// A correct history, a fault while nothing else is in flight, and more history after it.
fn faulty(seed: u64, fault: impl Fn(&mut Simulator)) {
    let mut random = Random::new(seed);
    let (clients, rows) = (2 + random.below(5), 3 + random.below(3));
    let mut simulator = Simulator::new(seed, clients, rows);
    let (before, after) = (random.below(20), random.below(20));
    simulator.run(before, Losses::Bounded);
    assert!(judged_good(&simulator.history_so_far()), "no fault yet");
    fault(&mut simulator);
    assert!(!judged_good(&simulator.history_so_far()), "the fault alone was not caught");
    simulator.run(after, Losses::Bounded);
    assert!(!judged_good(&simulator.finish()), "the fault was not caught");
}

impl Simulator {
    fn upsert(&mut self, row: &str) {
        let write = self.write(Verb::InsertOrReplace, row, None);
        self.alone_and_correct(Action::Write(write));
    }

    /// Upserts of two rows or more.
    fn batch(&mut self) -> Vec<Write> {
        let rows = self.rows.clone();
        rows.iter().map(|row| self.write(Verb::InsertOrReplace, row, None)).collect()
    }

    fn history_so_far(&self) -> Vec<Operation> {
        let mut history = self.history.clone();
        history.sort_by_key(|operation| operation.start);
        history
    }
}

fn judged_good(history: &[Operation]) -> bool {
    is_linearizable(history, PLACES_MAX).unwrap_or_else(|| panic!("undecided: {} operations", history.len()))
}
