//! Judges the history of one queue, and names the promise that was broken.

use super::history::{MessageNumber, QueueOperation};
use super::message::{self, Contradiction, Step};
use super::search::{Found, Rules, search};
use crate::history::Time;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every message has an order that explains everything.
    Possible {
        messages: usize,
        /// The most places that a message took.
        places: usize,
    },
    /// The search of this message ended before it was known; no other has a violation.
    Undecided(MessageNumber),
    Violation(Violation),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub message: MessageNumber,
    /// The sentence has the message for its subject.
    pub why: String,
    /// The operations that contradict each other, as indexes of the history.
    pub core: Vec<usize>,
    /// The other operations that concern the message.
    pub context: Vec<usize>,
}

/// For explanations, which are only worth so much.
const EXPLAINING_PLACES: usize = 20_000;

type Relaxed = fn(&mut Rules);

/// What is said if there is an order without this rule.
const RULES: [(Relaxed, &str); 7] = [
    (|rules| rules.nothing_is_lost = false, "was lost: nobody deleted it, and it did not come again"),
    (|rules| rules.deleted_stays_deleted = false, "was there after its Delete was acknowledged"),
    (|rules| rules.hidden_is_hidden = false, "was shown while it was hidden"),
    (|rules| rules.counts_are_right = false, "has a wrong dequeue count"),
    (|rules| rules.receipts_become_stale = false, "was changed with a receipt that was stale"),
    (|rules| rules.good_receipts_are_taken = false, "was not found by its latest receipt"),
    (|rules| rules.texts_are_right = false, "has a text that is not its own"),
];

/// `history` is of one queue, and has everything that was ever sent to it, in the order of the starts.
pub fn judge(history: &[QueueOperation], places: usize) -> Verdict {
    let messages = match message::messages(history) {
        Ok(messages) => messages,
        Err(Contradiction { message, why, operations }) => {
            let (why, context) = (why.to_owned(), Vec::new());
            return Verdict::Violation(Violation { message, why, core: operations, context });
        }
    };
    let (mut undecided, mut most) = (None, 0);
    for (message, steps) in &messages {
        match search(steps, Rules::ALL, places) {
            Found::Order { places } => most = most.max(places),
            Found::Undecided => drop(undecided.get_or_insert(*message)),
            Found::None => return Verdict::Violation(explain(*message, steps)),
        }
    }
    match undecided {
        Some(message) => Verdict::Undecided(message),
        None => Verdict::Possible { messages: messages.len(), places: most },
    }
}

fn explain(message: MessageNumber, steps: &[Step]) -> Violation {
    let strong = shrink(steps);
    // If the whole of it takes more than two rules, the shortest part of it is a violation of its own.
    let why = broken(steps).or_else(|| broken(&weakened(steps, &strong)));
    let why = why.unwrap_or_else(|| "was treated in a way that no order explains".to_owned());
    let of = |wanted: bool| {
        let chosen = steps.iter().zip(&strong).filter(move |(step, strong)| {
            **strong == wanted && (step.required || !matches!(step.kind, message::Kind::Take { .. }))
        });
        let mut operations: Vec<usize> = chosen.map(|(step, _)| step.operation).collect();
        operations.sort_unstable();
        operations
    };
    Violation { message, why, core: of(true), context: of(false) }
}

/// The one or two rules without which these steps have an order.
fn broken(steps: &[Step]) -> Option<String> {
    let has_order = |relaxed: &[usize]| {
        let mut rules = Rules::ALL;
        relaxed.iter().for_each(|rule| RULES[*rule].0(&mut rules));
        matches!(search(steps, rules, EXPLAINING_PLACES), Found::Order { .. })
    };
    let numbers = 0..RULES.len();
    if let Some(rule) = numbers.clone().find(|rule| has_order(&[*rule])) {
        return Some(RULES[rule].1.to_owned());
    }
    let mut pairs = numbers.flat_map(|one| (one + 1..RULES.len()).map(move |other| [one, other]));
    let [one, other] = pairs.find(|pair| has_order(pair))?;
    Some(format!("{}, and {}", RULES[one].1, RULES[other].1))
}

/// Which steps can't be weakened: without any one of them, the others have an order.
///
/// A read or a refusal is weakened by dropping it. A change is never dropped, because others may have seen it: it becomes one
/// that was done at any time after its start, or never.
fn shrink(steps: &[Step]) -> Vec<bool> {
    let mut strong: Vec<bool> = steps.iter().map(|step| step.required).collect();
    for at in (0..steps.len()).rev().filter(|at| steps[*at].required) {
        strong[at] = false;
        if search(&weakened(steps, &strong), Rules::ALL, EXPLAINING_PLACES) != Found::None {
            strong[at] = true;
        }
    }
    strong
}

fn weakened(steps: &[Step], strong: &[bool]) -> Vec<Step> {
    let weaken =
        |(step, strong): (&Step, &bool)| match (*strong || !step.required, step.kind.changes_nothing()) {
            (true, _) => Some(step.clone()),
            (false, true) => None,
            (false, false) => Some(Step { required: false, end: Time::MAX, ..step.clone() }),
        };
    steps.iter().zip(strong).filter_map(weaken).collect()
}
