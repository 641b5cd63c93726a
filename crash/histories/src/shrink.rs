//! Makes a violation as small as possible: weakens operations as long as the rest still has no order.
//!
//! A read or a refusal is weakened by dropping it. A write is never dropped, because other clients may have seen it: it
//! becomes one that was done at any time after its start, or never. Both only allow more orders, so the rest is a
//! violation for a reason that the whole history has too.

use crate::history::{Operation, Outcome, Time};
use crate::search::{Found, Limits, search};
use crate::step::Step;

/// A weaker history may have very many orders to try. Then the operation is not weakened.
const LIMITS: Limits = Limits { places: 5_000, growing: true };
/// The limit of the whole work: a longer explanation now is better than the shortest one after hours.
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
    // First all unanswered operations, which rarely matter.
    attempt(&mut strong, &|index| matches!(history[steps[index].operation].outcome, Outcome::Unknown { .. }));
    // Then everything after the first contradiction.
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
    // Each one again: it may no longer be needed now that later ones are weakened.
    for only in 0..steps.len() {
        attempt(&mut strong, &|index| index == only);
    }
    let mut core: Vec<usize> =
        steps.iter().zip(&strong).filter(|(_, strong)| **strong).map(|(step, _)| step.operation).collect();
    core.sort_unstable();
    core
}

/// Steps in which an unanswered write is not required even if it was seen, so that the read becomes part of the
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
