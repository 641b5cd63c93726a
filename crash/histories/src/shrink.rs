//! Makes a contradiction as small as it can: weakens operations as long as what is left still has no order.
//!
//! To weaken a read or a refusal is to forget it. A write is never forgotten, since others may have seen it: it
//! becomes one that may have been done at any time after its start, or never. Both only allow more orders, so what
//! is left contradicts itself for a reason that is in the whole history too.

use crate::history::{Operation, Outcome, Time};
use crate::search::{Found, Limits, search};
use crate::step::Step;

/// A weaker history may have very many orders that don't work; it is then left as it was.
const LIMITS: Limits = Limits { places: 5_000, growing: true };
/// An explanation that could be shorter is better than one that comes tomorrow.
const PLACES_IN_ALL_MAX: usize = 1_000_000;

/// The operations that could not be weakened.
pub fn shrink(history: &[Operation], steps: &[Step], rows: usize) -> Vec<usize> {
    let unproven = unproven(history, steps);
    let steps = match search(&unproven, rows, LIMITS) {
        Found::None { .. } => &unproven,
        _ => steps,
    };
    let mut strong = vec![true; steps.len()];
    let mut left = PLACES_IN_ALL_MAX;
    let mut attempt = |strong: &mut Vec<bool>, weak: &dyn Fn(usize) -> bool| {
        let weaker: Vec<bool> = strong.iter().enumerate().map(|(index, s)| *s && !weak(index)).collect();
        if weaker == *strong || left == 0 {
            return false;
        }
        let found = search(&weakened(steps, &weaker), rows, LIMITS);
        let (places, contradicts) = match found {
            Found::None { places } => (places, true),
            Found::Order { places } => (places, false),
            Found::Undecided => (LIMITS.places, false),
        };
        left = left.saturating_sub(places + 1);
        if contradicts {
            *strong = weaker;
        }
        contradicts
    };
    // What was never acknowledged says little by itself.
    attempt(&mut strong, &|index| matches!(history[steps[index].operation].outcome, Outcome::Unknown { .. }));
    // What came after the first trouble.
    let mut ends: Vec<Time> = steps.iter().map(|step| step.end).collect();
    ends.sort_unstable();
    let (mut low, mut high) = (0, ends.len());
    while low < high {
        let middle = (low + high) / 2;
        let last = ends[middle];
        if attempt(&mut strong, &|index| steps[index].end > last) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let mut length = steps.len().div_ceil(2);
    while length > 0 {
        for start in (0..steps.len()).step_by(length) {
            attempt(&mut strong, &|index| (start..start + length).contains(&index));
        }
        length /= 2;
    }
    // A second look at each: later ones may have been what made an earlier one needed.
    for only in 0..steps.len() {
        attempt(&mut strong, &|index| index == only);
    }
    let mut core: Vec<usize> =
        steps.iter().zip(&strong).filter(|(_, strong)| **strong).map(|(step, _)| step.operation).collect();
    core.sort_unstable();
    core
}

/// Without the knowledge that a write without an answer was done because it was seen: the sight shall be part of the
/// explanation.
fn unproven(history: &[Operation], steps: &[Step]) -> Vec<Step> {
    let forget = |step: &Step| match history[step.operation].outcome {
        Outcome::Unknown { until } => {
            Step { required: false, end: until.unwrap_or(Time::MAX), ..step.clone() }
        }
        _ => step.clone(),
    };
    steps.iter().map(forget).collect()
}

fn weakened(steps: &[Step], strong: &[bool]) -> Vec<Step> {
    let weaken = |(step, strong): (&Step, &bool)| match (strong, step.changes_nothing()) {
        (true, _) => Some(step.clone()),
        (false, true) => None,
        (false, false) => Some(Step { required: false, end: Time::MAX, ..step.clone() }),
    };
    steps.iter().zip(strong).filter_map(weaken).collect()
}
