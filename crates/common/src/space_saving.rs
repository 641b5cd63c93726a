//! The heaviest keys of a stream, in bounded memory: the *space-saving* sketch of Metwally, Agrawal and El Abbadi.
//!
//! A sketch has a slot for each of a fixed number of keys. A key without a slot takes that of the lightest key, with its
//! weight, which becomes the error of the new one. So a shown weight is never below the true one, and above it by at most
//! the error; and every key that weighs more than the whole stream divided by the slots is in the sketch.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::keyed_hash::AlreadyHashed;

/// `T` is whatever else is counted for a key while it has a slot.
#[derive(Debug)]
pub struct SpaceSaving<K, T> {
    capacity: usize,
    slots: Vec<Slot<K, T>>,
    /// The heaviest first.
    ranks: Vec<Rank>,
    /// The slot of each hash. Two keys with one hash share no slot: the second is not counted.
    places: HashMap<u64, u32, BuildHasherDefault<AlreadyHashed>>,
}

#[derive(Debug)]
struct Slot<K, T> {
    hash: u64,
    key: K,
    error: u64,
    rank: u32,
    tally: T,
}

#[derive(Clone, Copy, Debug)]
struct Rank {
    weight: u64,
    slot: u32,
}

/// A key, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heavy<'a, K, T> {
    pub key: &'a K,
    /// Not below the true weight.
    pub weight: u64,
    /// By how much the weight can be above the true one.
    pub error: u64,
    /// Counted since the key got its slot.
    pub tally: &'a T,
}

/// What becomes of a key without a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It gets a new slot if there are fewer than the capacity.
    Free,
    /// It takes the slot of the lightest key. In an empty sketch it is not counted.
    Full,
}

impl<K: Default, T: Default> SpaceSaving<K, T> {
    /// Slots are made when they are needed.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, slots: Vec::new(), ranks: Vec::new(), places: HashMap::default() }
    }

    /// Adds to the weight of a key, and returns its tally; `None` if it is not counted.
    ///
    /// `hash` must be keyed, so that nobody can choose keys that collide. `write` overwrites the key of a slot; `room` is
    /// asked only for a key without one.
    pub fn add(
        &mut self,
        hash: u64,
        weight: u64,
        is_same: impl FnOnce(&K) -> bool,
        write: impl FnOnce(&mut K),
        room: impl FnOnce() -> Room,
    ) -> Option<&mut T> {
        let slot = match self.places.get(&hash) {
            Some(slot) if is_same(&self.slots[*slot as usize].key) => *slot,
            Some(_) => return None,
            None => {
                let slot = self.slot_for(hash, room)?;
                write(&mut self.slots[slot as usize].key);
                slot
            }
        };
        self.raise(slot, weight);
        Some(&mut self.slots[slot as usize].tally)
    }

    fn slot_for(&mut self, hash: u64, room: impl FnOnce() -> Room) -> Option<u32> {
        let slot = if self.slots.len() < self.capacity && room() == Room::Free {
            let slot = u32::try_from(self.slots.len()).ok()?;
            self.slots.push(Slot { hash, key: K::default(), error: 0, rank: slot, tally: T::default() });
            self.ranks.push(Rank { weight: 0, slot });
            slot
        } else {
            let Rank { weight, slot } = *self.ranks.last()?;
            let lightest = &mut self.slots[slot as usize];
            self.places.remove(&lightest.hash);
            (lightest.hash, lightest.error, lightest.tally) = (hash, weight, T::default());
            slot
        };
        self.places.insert(hash, slot);
        Some(slot)
    }

    /// Swaps the slot with the first of those that weighed as much as the one above it, until it is in its place. A
    /// weight of 1 takes at most one swap.
    fn raise(&mut self, slot: u32, by: u64) {
        let mut rank = self.slots[slot as usize].rank as usize;
        let weight = self.ranks[rank].weight.saturating_add(by);
        while rank > 0 && self.ranks[rank - 1].weight < weight {
            let above = self.ranks[rank - 1].weight;
            let first = self.ranks[..rank].partition_point(|other| other.weight > above);
            let moved = self.ranks[first];
            self.ranks[rank] = moved;
            self.slots[moved.slot as usize].rank = rank as u32;
            rank = first;
        }
        self.ranks[rank] = Rank { weight, slot };
        self.slots[slot as usize].rank = rank as u32;
    }

    /// All keys that have a slot, the heaviest first.
    pub fn heaviest(&self) -> impl Iterator<Item = Heavy<'_, K, T>> {
        self.ranks.iter().map(|Rank { weight, slot }| {
            let Slot { key, error, tally, .. } = &self.slots[*slot as usize];
            Heavy { key, weight: *weight, error: *error, tally }
        })
    }

    /// The slots in use.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Sketch = SpaceSaving<u64, u64>;

    /// Spreads numbers over all bits, and never gives two numbers the same.
    fn hash(key: u64) -> u64 {
        key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn add(sketch: &mut Sketch, key: u64, weight: u64) {
        let tally = sketch.add(hash(key), weight, |kept| *kept == key, |kept| *kept = key, || Room::Free);
        *tally.unwrap() += weight;
    }

    proptest! {
        #[test]
        fn weights_are_within_their_errors_and_heavy_keys_are_kept(
            stream in proptest::collection::vec((0..40_u64, 1..20_u64), 0..400),
            capacity in 1..20_usize,
        ) {
            let (mut sketch, mut exact) = (Sketch::new(capacity), BTreeMap::<u64, u64>::new());
            for (key, weight) in stream {
                add(&mut sketch, key, weight);
                *exact.entry(key).or_default() += weight;
            }
            let found: Vec<_> = sketch.heaviest().map(|heavy| (*heavy.key, heavy.weight, heavy.error, *heavy.tally)).collect();
            prop_assert!(found.len() == exact.len().min(capacity) && sketch.len() == found.len());
            prop_assert!(found.is_sorted_by_key(|(_, weight, ..)| std::cmp::Reverse(*weight)));
            for (key, weight, error, tally) in &found {
                let truth = exact[key];
                prop_assert!(truth <= *weight && weight - error <= truth, "{key}: {truth} in {weight}-{error}");
                prop_assert!(*tally == weight - error);
            }
            let total: u64 = exact.values().sum();
            for (key, truth) in &exact {
                let kept = found.iter().any(|(found, ..)| found == key);
                prop_assert!(kept || truth * capacity as u64 <= total, "{key} weighs {truth} of {total}");
            }
        }
    }

    #[test]
    fn a_sketch_without_room_replaces_its_lightest_key() {
        let mut sketch = Sketch::new(8);
        let mut full = |key: u64| {
            sketch.add(hash(key), 1, |kept| *kept == key, |kept| *kept = key, || Room::Full).is_some()
        };
        assert!(!full(1), "there is no slot to take");
        for key in [1, 1, 2] {
            add(&mut sketch, key, 1);
        }
        assert!(sketch.add(hash(3), 1, |_| false, |kept| *kept = 3, || Room::Full).is_some());
        let keys: Vec<_> = sketch.heaviest().map(|heavy| (*heavy.key, heavy.weight, heavy.error)).collect();
        assert_eq!(keys.len(), 2);
        assert!(keys.contains(&(1, 2, 0)) && keys.contains(&(3, 2, 1)), "{keys:?}");
    }

    #[test]
    fn a_key_with_the_hash_of_another_is_not_counted_for_it() {
        let mut sketch = Sketch::new(8);
        add(&mut sketch, 1, 5);
        let other = sketch.add(hash(1), 100, |kept| *kept == 2, |_| unreachable!(), || Room::Free);
        assert_eq!(other, None);
        assert_eq!(sketch.heaviest().next().map(|heavy| heavy.weight), Some(5));
    }
}
