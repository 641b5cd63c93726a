//! Objects that wait to be removed, together: each removal is synced, and whoever has overwritten or deleted a blob need not wait
//! for it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use store::ObjectId;

/// Objects that wait while others are removed: so many are removed within a second or two.
const WAITING_MAX: usize = 1000;

#[derive(Debug, Default)]
pub struct Removals(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    objects: Vec<ObjectId>,
    /// Somebody takes them.
    is_taken: bool,
}

impl Removals {
    /// Whether the caller is to take them, until there is no next one.
    #[must_use = "nobody else takes them"]
    pub fn add(&self, objects: Vec<ObjectId>) -> bool {
        let mut waiting = self.waiting();
        waiting.objects.extend(objects);
        let begins = !waiting.objects.is_empty() && !waiting.is_taken;
        waiting.is_taken |= begins;
        begins
    }

    /// All that wait.
    pub fn next(&self) -> Option<Vec<ObjectId>> {
        let mut waiting = self.waiting();
        waiting.is_taken = !waiting.objects.is_empty();
        waiting.is_taken.then(|| std::mem::take(&mut waiting.objects))
    }

    pub fn is_idle(&self) -> bool {
        !self.waiting().is_taken
    }

    pub fn is_full(&self) -> bool {
        self.waiting().objects.len() >= WAITING_MAX
    }

    /// What is in this lock is whole after every statement.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(numbers: std::ops::Range<u8>) -> Vec<ObjectId> {
        numbers.map(|number| ObjectId::from_bytes([number; 16])).collect()
    }

    #[test]
    fn one_takes_what_all_have_added() {
        let removals = Removals::default();
        assert!(!removals.add(Vec::new()), "there is nothing to take");
        assert!(removals.add(objects(0..2)));
        assert_eq!(removals.next(), Some(objects(0..2)));
        assert!(!removals.add(objects(2..3)) && !removals.add(objects(3..5)), "the first takes them too");
        assert_eq!(removals.next(), Some(objects(2..5)));
        assert!(!removals.is_idle());
        assert_eq!(removals.next(), None);
        assert!(removals.is_idle());
        assert!(removals.add(objects(5..6)), "nobody takes them any more");
    }

    #[test]
    fn what_waits_has_a_bound() {
        let removals = Removals::default();
        for number in 0..WAITING_MAX {
            assert!(!removals.is_full(), "{number}");
            let _ = removals.add(objects(1..2));
        }
        assert!(removals.is_full());
        removals.next();
        assert!(!removals.is_full());
    }
}
