//! Looks for an order of the steps of one message that respects their times and explains every answer.
//!
//! Depth first, one step after the other, each at the earliest moment that is possible: after its request was sent, after the
//! step before it and, if it shows the message, when the message is visible. An earlier moment never excludes anything that
//! a later one allows, so that one moment for each order is enough. The same place is not visited twice.

use std::collections::HashSet;

use super::message::{Kind, Look, Receipt, Step};
use crate::history::Time;

/// The promises. A violation is named by those without which there is an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// After the queue was emptied, the message is not there.
    pub nothing_is_lost: bool,
    /// A message that was deleted does not come again.
    pub deleted_stays_deleted: bool,
    /// A message that is hidden is not shown.
    pub hidden_is_hidden: bool,
    /// The dequeue count is the number of Gets that returned the message.
    pub counts_are_right: bool,
    /// An Update or Delete is done only with the receipt of the last change.
    pub receipts_become_stale: bool,
    /// An Update or Delete with the receipt of the last change is done.
    pub good_receipts_are_taken: bool,
    /// The text is that of the Put or the last Update that gave one.
    pub texts_are_right: bool,
}

impl Rules {
    pub const ALL: Self = Self {
        nothing_is_lost: true,
        deleted_stays_deleted: true,
        hidden_is_hidden: true,
        counts_are_right: true,
        receipts_become_stale: true,
        good_receipts_are_taken: true,
        texts_are_right: true,
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There is an order; this many places were visited.
    Order {
        places: usize,
    },
    None,
    /// The limit was reached before either was known.
    Undecided,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    now: Time,
    message: Option<Stored>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stored {
    receipt: Receipt,
    dequeue_count: u32,
    text: u32,
    visible_from: Time,
}

struct Search<'a> {
    steps: &'a [Step],
    rules: Rules,
    places: usize,
    known: HashSet<(Vec<bool>, State)>,
    /// Which steps were taken.
    taken: Vec<bool>,
    is_over: bool,
}

/// `steps` are those of one message.
pub fn search(steps: &[Step], rules: Rules, places: usize) -> Found {
    let taken = vec![false; steps.len()];
    let mut search = Search { steps, rules, places, known: HashSet::new(), taken, is_over: false };
    let has_order = search.go_on(State { now: 0, message: None });
    match (has_order, search.is_over) {
        (true, _) => Found::Order { places: search.known.len() },
        (false, true) => Found::Undecided,
        (false, false) => Found::None,
    }
}

impl Search<'_> {
    fn go_on(&mut self, state: State) -> bool {
        let open = |at: &usize| !self.taken[*at];
        let required: Vec<usize> =
            (0..self.steps.len()).filter(open).filter(|at| self.steps[*at].required).collect();
        let Some(first_end) = required.iter().map(|at| self.steps[*at].end).min() else { return true };
        if self.known.len() >= self.places {
            self.is_over = true;
            return false;
        }
        if !self.known.insert((self.taken.clone(), state)) {
            return false;
        }
        let optional = (0..self.steps.len()).filter(open).filter(|at| !self.steps[*at].required);
        let helps = |at: &usize| self.helps(&self.steps[*at].kind, &state, &required);
        let optional: Vec<usize> = optional.filter(helps).collect();
        let mut tries = required;
        tries.sort_by_key(|at| self.steps[*at].end);
        tries.extend(optional);
        for at in tries {
            let step = &self.steps[at];
            let Some(next) = self.after(&step.kind, step.start, &state) else { continue };
            if next.now > step.end || next.now > first_end {
                continue;
            }
            self.taken[at] = true;
            if self.go_on(next) {
                return true;
            }
            self.taken[at] = false;
            if self.is_over {
                return false;
            }
        }
        false
    }

    /// Whether a step that need not have been done could explain one that was. A Get without an answer may have returned any
    /// message, so there are many of them: one helps if somebody saw a higher count, or was refused with the receipt.
    fn helps(&self, kind: &Kind, state: &State, required: &[usize]) -> bool {
        let (Kind::Take { .. }, Some(message)) = (kind, &state.message) else { return true };
        required.iter().any(|at| match &self.steps[*at].kind {
            Kind::Take { shows: Some(look), .. } => look.dequeue_count > message.dequeue_count + 1,
            Kind::Peek(look) => look.dequeue_count > message.dequeue_count,
            Kind::NotFound { needs } => *needs == message.receipt,
            _ => false,
        })
    }

    /// The state after a step that began at `start`; `None` if the step contradicts the state.
    ///
    /// A server looks at its clock when it begins: that is when a message begins to be hidden, and it may be any time before
    /// others notice it.
    fn after(&self, kind: &Kind, start: Time, state: &State) -> Option<State> {
        let now = state.now.max(start);
        let rules = &self.rules;
        if let Kind::Put { makes, text, hides } = *kind {
            let stored = Stored { receipt: makes, dequeue_count: 0, text, visible_from: start + hides };
            return state.message.is_none().then_some(State { now, message: Some(stored) });
        }
        let seen = |look: &Look, message: &Stored, taken: u32| {
            (!rules.counts_are_right || look.dequeue_count == message.dequeue_count + taken)
                && (!rules.texts_are_right || look.text == message.text)
        };
        let visible = |message: &Stored| match rules.hidden_is_hidden {
            true => now.max(message.visible_from),
            false => now,
        };
        let is_good = |needs: Receipt, message: &Stored| needs == message.receipt;
        match (*kind, state.message) {
            (Kind::Take { makes, shows, hides }, Some(message)) => {
                if shows.is_some_and(|look| !seen(&look, &message, 1)) {
                    return None;
                }
                let now = visible(&message);
                let dequeue_count = shows.map_or(message.dequeue_count + 1, |look| look.dequeue_count);
                let looked = if rules.hidden_is_hidden { start.max(message.visible_from) } else { start };
                let taken = Stored { receipt: makes, dequeue_count, visible_from: looked + hides, ..message };
                Some(State { now, message: Some(taken) })
            }
            (Kind::Peek(look), Some(message)) => {
                seen(&look, &message, 0).then_some(State { now: visible(&message), ..*state })
            }
            (Kind::Update { needs, makes, text, hides }, Some(message)) => {
                if rules.receipts_become_stale && !is_good(needs, &message) {
                    return None;
                }
                let text = text.unwrap_or(message.text);
                let updated = Stored { receipt: makes, text, visible_from: start + hides, ..message };
                Some(State { now, message: Some(updated) })
            }
            (Kind::Delete { needs }, Some(message)) => {
                if rules.receipts_become_stale && !is_good(needs, &message) {
                    return None;
                }
                let left = (!rules.deleted_stays_deleted).then_some(Stored { visible_from: now, ..message });
                Some(State { now, message: left })
            }
            (Kind::NotFound { needs }, message) => {
                let refused = message.is_none_or(|message| !is_good(needs, &message));
                (refused || !rules.good_receipts_are_taken).then_some(State { now, ..*state })
            }
            (Kind::Drain, message) => {
                let lost = message.is_some() && rules.nothing_is_lost && rules.deleted_stays_deleted;
                (!lost).then_some(State { now, ..*state })
            }
            (Kind::Put { .. }, _) => None,
            (Kind::Take { .. } | Kind::Peek(_) | Kind::Update { .. } | Kind::Delete { .. }, None) => None,
        }
    }
}
