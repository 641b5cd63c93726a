//! Who reads which blob, and the objects whose removal waits for that.
//!
//! What was removed from one blob waits in the order in which it was removed. So a reader that ends looks at the first of what
//! waits for its blob, and not at all that waits, however many readers there are.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use store::ObjectId;

use super::BlobKey;

/// Objects whose removal waits. More are left to the sweep.
const WAITING_MAX: usize = 1 << 18;

#[derive(Debug, Default)]
pub struct Readers {
    /// By when they began; those without a key read everything.
    all: BTreeMap<u64, Option<BlobKey>>,
    of_blob: HashMap<BlobKey, BTreeSet<u64>>,
    of_everything: BTreeSet<u64>,
    /// By whose the objects were; those without a key may have been anybody's.
    waiting: HashMap<Option<BlobKey>, VecDeque<Waiting>>,
    waiting_objects: usize,
    /// Of the queues, for the test of the cost.
    #[cfg(test)]
    looks: usize,
}

/// Objects that are removed once nobody reads them who began before.
#[derive(Debug)]
struct Waiting {
    since: u64,
    objects: Vec<ObjectId>,
}

impl Readers {
    pub fn begin(&mut self, begin: u64, blob: Option<BlobKey>) {
        self.all.insert(begin, blob);
        match blob {
            Some(blob) => self.of_blob.entry(blob).or_default().insert(begin),
            None => self.of_everything.insert(begin),
        };
    }

    /// Returns the objects that waited for it and can go now.
    pub fn end(&mut self, begin: u64) -> Vec<ObjectId> {
        let mut ready = Vec::new();
        match self.all.remove(&begin) {
            Some(Some(blob)) => {
                if let Some(readers) = self.of_blob.get_mut(&blob) {
                    readers.remove(&begin);
                    if readers.is_empty() {
                        self.of_blob.remove(&blob);
                    }
                }
                self.take_ready(Some(blob), &mut ready);
                self.take_ready(None, &mut ready);
            }
            Some(None) => {
                self.of_everything.remove(&begin);
                let queues: Vec<Option<BlobKey>> = self.waiting.keys().copied().collect();
                queues.into_iter().for_each(|queue| self.take_ready(queue, &mut ready));
            }
            None => {}
        }
        ready
    }

    /// Puts objects behind their readers; returns them if they can go now.
    pub fn line_up(&mut self, since: u64, blob: Option<BlobKey>, objects: Vec<ObjectId>) -> Vec<ObjectId> {
        if objects.is_empty() || !self.has_reader_before(since, blob) {
            return objects;
        }
        if self.waiting_objects + objects.len() <= WAITING_MAX {
            self.waiting_objects += objects.len();
            self.waiting.entry(blob).or_default().push_back(Waiting { since, objects });
        }
        Vec::new()
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    pub fn waiting_objects(&self) -> usize {
        self.waiting_objects
    }

    /// Whether somebody who began before then may read what was this blob's, or anybody's.
    fn has_reader_before(&self, since: u64, blob: Option<BlobKey>) -> bool {
        let first = match blob {
            None => self.all.first_key_value().map(|(begin, _)| begin),
            Some(blob) => {
                let own = self.of_blob.get(&blob).and_then(BTreeSet::first);
                own.into_iter().chain(self.of_everything.first()).min()
            }
        };
        first.is_some_and(|begin| *begin < since)
    }

    /// Moves what need not wait any longer from a queue, which is in the order of `since`.
    fn take_ready(&mut self, queue: Option<BlobKey>, ready: &mut Vec<ObjectId>) {
        while let Some(since) = self.waiting.get(&queue).and_then(VecDeque::front).map(|first| first.since) {
            #[cfg(test)]
            {
                self.looks += 1;
            }
            if self.has_reader_before(since, queue) {
                return;
            }
            if let Some(first) = self.waiting.get_mut(&queue).and_then(VecDeque::pop_front) {
                self.waiting_objects -= first.objects.len();
                ready.extend(first.objects);
            }
        }
        self.waiting.remove(&queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blob_model::DateTime;

    fn object(number: u64) -> ObjectId {
        ObjectId::new(DateTime::MIN_STORED, number.to_be_bytes())
    }

    fn key(number: u64) -> Option<BlobKey> {
        Some(BlobKey::of(&number))
    }

    #[test]
    fn what_was_removed_waits_for_those_who_began_before() {
        let mut readers = Readers::default();
        readers.begin(1, key(1));
        readers.begin(2, key(2));
        readers.begin(3, None);
        assert_eq!(readers.line_up(4, key(3), vec![]), []);
        assert_eq!(readers.line_up(4, key(1), vec![object(1)]), []);
        readers.begin(5, key(1));
        assert_eq!(readers.line_up(6, key(1), vec![object(2)]), []);
        assert_eq!(readers.line_up(7, None, vec![object(3)]), []);
        assert_eq!((readers.count(), readers.waiting_objects()), (4, 3));
        assert_eq!(readers.end(1), []);
        assert_eq!(readers.end(3), [object(1)]);
        assert_eq!(readers.end(5), [object(2)]);
        assert_eq!(readers.end(2), [object(3)]);
        assert_eq!((readers.count(), readers.waiting_objects()), (0, 0));
        assert_eq!(readers.line_up(8, key(1), vec![object(4)]), [object(4)]);
        assert!(readers.of_blob.is_empty() && readers.waiting.is_empty());
    }

    #[test]
    fn a_reader_that_ends_does_not_look_at_what_waits_for_others() {
        let mut readers = Readers::default();
        // Many read other blobs and began before, and much waits for one who is slow.
        (1..=2000).for_each(|reader| readers.begin(reader, key(reader)));
        readers.begin(2001, key(0));
        (2002..52_002).for_each(|since| assert_eq!(readers.line_up(since, key(0), vec![object(since)]), []));
        (1..=2000).for_each(|reader| assert_eq!(readers.end(reader), []));
        assert!(readers.looks <= 4000, "{} looks", readers.looks);
        assert_eq!(readers.end(2001).len(), 50_000);
    }
}
