//! Looks for one order of steps that respects their times and explains every answer.
//!
//! This is Wing and Gong's search with Lowe's memoization: depth first, one step at a time out of those that no
//! unfinished step precedes, and never twice from the same place. A place consists of the open steps and the state: of
//! the steps that began before the first end among the open ones, each is open, taken, or no longer possible; no later
//! step is taken. Two things keep the search short: a step that changes nothing and agrees is taken at once, and
//! versions of a row only grow, so most wrong choices are noticed at once.

use std::collections::HashSet;

use crate::history::Time;
use crate::state::{State, UNSEEN};
use crate::step::Step;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There is an order; this many places were visited.
    Order {
        places: usize,
    },
    None {
        places: usize,
    },
    /// The limit was reached before either was known.
    Undecided,
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Places to visit.
    pub places: usize,
    /// Whether the versions of a row must grow with its writes.
    pub growing: bool,
}

/// A place in the search, and the steps that are still to be tried from it.
struct Place {
    state: State,
    /// Steps that may be next, in the order of their starts.
    open: Vec<usize>,
    /// The first step that is not open yet.
    next: usize,
    /// The latest start among the steps taken. A step that ended before it can't be taken any more.
    floor: Time,
    /// Positions in `open`, the most promising last.
    tries: Vec<usize>,
}

/// `steps` are sorted by their starts, and name rows below `rows`.
pub fn search(steps: &[Step], rows: usize, limits: Limits) -> Found {
    let search = Search { steps, limits };
    let mut known = HashSet::new();
    let first = Place {
        state: vec![Default::default(); rows],
        open: Vec::new(),
        next: 0,
        floor: 0,
        tries: Vec::new(),
    };
    let mut path = Vec::new();
    let mut arrived = search.settle(first);
    loop {
        if let Some(place) = arrived {
            if place.next == steps.len() && !place.open.iter().any(|open| steps[*open].required) {
                return Found::Order { places: known.len() + 1 };
            }
            if known.len() >= limits.places {
                return Found::Undecided;
            }
            if known.insert((place.open.clone(), place.state.clone())) {
                path.push(place);
            }
        }
        arrived = loop {
            let Some(place) = path.last_mut() else { return Found::None { places: known.len() } };
            match place.tries.pop() {
                Some(position) => break search.take(place, position),
                None => path.pop(),
            };
        };
    }
}

struct Search<'a> {
    steps: &'a [Step],
    limits: Limits,
}

impl Search<'_> {
    /// The place after one of the open steps.
    fn take(&self, from: &Place, position: usize) -> Option<Place> {
        let mut open = from.open.clone();
        let step = &self.steps[open.remove(position)];
        let mut state = from.state.clone();
        for part in step.parts() {
            state[part.row].apply(part);
        }
        let floor = from.floor.max(step.start);
        self.settle(Place { state, open, next: from.next, floor, tries: Vec::new() })
    }

    /// Opens the steps that may be next, takes those that need no choice, and lists the choices. `None` if no order can
    /// be found from here.
    fn settle(&self, mut place: Place) -> Option<Place> {
        loop {
            let required = place.open.iter().map(|open| &self.steps[*open]).filter(|step| step.required);
            let mut first_end = required.map(|step| step.end).min().unwrap_or(Time::MAX);
            while let Some(step) = self.steps.get(place.next).filter(|step| step.start <= first_end) {
                place.open.push(place.next);
                place.next += 1;
                if step.required {
                    first_end = first_end.min(step.end);
                }
            }
            let Place { state, open, floor, .. } = &mut place;
            open.retain(|open| {
                let step = &self.steps[*open];
                step.required || (step.end >= *floor && (!self.limits.growing || step.may_come(state)))
            });
            if self.limits.growing && !open.iter().all(|open| self.steps[*open].may_come(state)) {
                return None;
            }
            let free = open.iter().position(|candidate| {
                let step = &self.steps[*candidate];
                step.changes_nothing() && !self.shuts_out(open, step) && step.agrees_with(state)
            });
            let Some(free) = free else { break };
            let step = &self.steps[open.remove(free)];
            *floor = step.start.max(*floor);
        }
        place.tries = self.tries(&place);
        Some(place)
    }

    /// Whether taking this step would exclude an open step that is not required.
    fn shuts_out(&self, open: &[usize], step: &Step) -> bool {
        open.iter().any(|other| !self.steps[*other].required && self.steps[*other].end < step.start)
    }

    fn tries(&self, place: &Place) -> Vec<usize> {
        let step = |position: &usize| &self.steps[place.open[*position]];
        let mut tries: Vec<usize> = (0..place.open.len())
            .filter(|position| step(position).agrees_with(&place.state))
            .filter(|position| !self.limits.growing || !self.overtakes(&place.open, step(position)))
            .collect();
        // Required steps are tried first, those with the earliest end before others; steps that were never seen are
        // last.
        tries.sort_by_key(|position| std::cmp::Reverse((!step(position).required, step(position).end)));
        tries
    }

    /// Whether an open required step has a smaller version of one of its rows, and would have to come after it.
    fn overtakes(&self, open: &[usize], step: &Step) -> bool {
        let required = open.iter().map(|open| &self.steps[*open]).filter(|other| other.required);
        required.flat_map(Step::parts).filter(|other| other.version != UNSEEN).any(|other| {
            step.parts().iter().any(|part| part.row == other.row && part.version > other.version)
        })
    }
}
