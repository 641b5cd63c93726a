//! Who uses objects right now, so that nothing is removed under a reader, and nothing is named that is being removed.
//!
//! Rows say which objects are needed. Between reading a row and what follows from it, three things can go wrong, and each has
//! its rule:
//!
//! - *A reader* has read a row, and the row is replaced while it streams. So it says which blob it reads before it reads the
//!   row; what was removed from that blob since waits for it.
//! - *A change* names objects that it has found in another row: Put Block List those of blocks, a snapshot or a copy those of
//!   a blob. Before it commits, it holds them. If one was removed since the change began, it must begin again; and what is
//!   held, or was named by a change that ended after the remover began, is not removed.
//! - *The sweep* reads rows one after another, and a change may name an object in a row that was read already. So what
//!   changes hold while a sweep runs counts as named, and so does what is written and not committed yet.
//!
//! The sweep also removes rows of maps that no state names. A copy writes such rows before the one that names them, so the
//! sweep leaves the maps alone that changes say they write.
//!
//! All of it is in memory: after a crash there are no readers and no changes. What is not removed here is found by the next
//! sweep. Nothing here waits or does I/O.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use store::ObjectId;

use super::readers::Readers;

/// What is remembered of removals and namings while changes run. A change that began before what was forgotten begins again,
/// or removes nothing.
const HISTORY_MAX: usize = 1 << 18;

/// A blob, for readers. That two blobs have the same key only delays a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlobKey(u64);

impl BlobKey {
    pub fn of(blob: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        blob.hash(&mut hasher);
        Self(hasher.finish())
    }
}

#[derive(Debug, Default)]
pub struct InUse(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Of the next that begins: everything here is ordered by it.
    next: u64,
    readers: Readers,
    changes: BTreeSet<u64>,
    held: HashMap<ObjectId, u32>,
    /// Maps whose rows are written before the row that names them.
    new_maps: HashSet<[u8; 8]>,
    /// Objects that were named or removed while changes ran.
    named: History,
    removed: History,
    sweep: Option<Candidates>,
}

/// Objects, each with the time of the last that happened to it, as far as some change that runs may ask.
#[derive(Debug, Default)]
struct History {
    last: HashMap<ObjectId, u64>,
    order: VecDeque<(u64, ObjectId)>,
    /// What happened before this was forgotten.
    floor: u64,
}

/// Objects that the sweep may remove, in order, and which of them are named.
#[derive(Debug)]
struct Candidates {
    objects: Vec<ObjectId>,
    named: Vec<bool>,
    /// The next that is looked at for removal.
    at: usize,
}

impl History {
    fn record(&mut self, now: u64, object: ObjectId) {
        self.last.insert(object, now);
        self.order.push_back((now, object));
        while self.order.len() > HISTORY_MAX {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((at, object)) = self.order.pop_front() {
            self.floor = at + 1;
            if self.last.get(&object) == Some(&at) {
                self.last.remove(&object);
            }
        }
    }

    /// Whether it may have happened to this object since then.
    fn since(&self, begin: u64, object: &ObjectId) -> bool {
        begin < self.floor || self.last.get(object).is_some_and(|at| *at > begin)
    }

    /// Forgets what no change can ask for: the oldest that runs began then.
    fn prune(&mut self, oldest: Option<u64>) {
        while self.order.front().is_some_and(|(at, _)| oldest.is_none_or(|oldest| *at < oldest)) {
            self.forget_first();
        }
    }
}

impl Candidates {
    fn mark(&mut self, object: &ObjectId) {
        if let Ok(at) = self.objects.binary_search(object) {
            self.named[at] = true;
        }
    }

    fn is_marked(&self, object: &ObjectId) -> bool {
        self.objects.binary_search(object).is_ok_and(|at| self.named[at])
    }
}

impl State {
    fn tick(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Those of these objects that nobody holds or has named since `begin` are as good as removed; the others stay.
    fn condemn(&mut self, begin: Option<u64>, objects: Vec<ObjectId>) -> Vec<ObjectId> {
        let now = self.tick();
        let mut condemned = objects;
        condemned.retain(|object| {
            !self.held.contains_key(object) && !begin.is_some_and(|begin| self.named.since(begin, object))
        });
        if !self.changes.is_empty() {
            for object in &condemned {
                self.removed.record(now, *object);
            }
        }
        condemned
    }

    /// Puts them behind their readers; returns them if they can go now.
    fn line_up(&mut self, blob: Option<BlobKey>, objects: Vec<ObjectId>) -> Vec<ObjectId> {
        let since = self.tick();
        self.readers.line_up(since, blob, objects)
    }

    /// Nobody holds this object any longer who did; it may be named by a row now.
    fn release(&mut self, object: &ObjectId) {
        if let Some(holders) = self.held.get_mut(object) {
            *holders -= 1;
            if *holders == 0 {
                self.held.remove(object);
            }
        }
        // A sweep that runs may have read the row already. While it was held, that did not matter.
        if let Some(sweep) = &mut self.sweep {
            sweep.mark(object);
        }
    }
}

impl InUse {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every method leaves the state consistent at each statement that can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of this blob, or of whatever there is. To be called before the row is read.
    pub fn begin_reading(&self, blob: Option<BlobKey>) -> u64 {
        let mut state = self.state();
        let begin = state.tick();
        state.readers.begin(begin, blob);
        begin
    }

    /// Returns the objects that waited for it and can go now.
    pub fn end_reading(&self, begin: u64) -> Vec<ObjectId> {
        self.state().readers.end(begin)
    }

    /// To be called before the rows are read that the change goes by.
    pub fn begin_change(&self) -> u64 {
        let mut state = self.state();
        let begin = state.tick();
        state.changes.insert(begin);
        begin
    }

    /// Keeps these objects until the change ends; false if one of them may have been removed since it began. Whatever was
    /// held is held, also then.
    #[must_use]
    pub fn hold(&self, begin: u64, objects: &[ObjectId]) -> bool {
        let mut state = self.state();
        let state = &mut *state;
        for object in objects {
            *state.held.entry(*object).or_default() += 1;
        }
        !objects.iter().any(|object| state.removed.since(begin, object))
    }

    /// To be called before the first row of a new map is written.
    pub fn hold_map(&self, map: [u8; 8]) {
        self.state().new_maps.insert(map);
    }

    pub fn release_maps(&self, maps: &[[u8; 8]]) {
        let mut state = self.state();
        for map in maps {
            state.new_maps.remove(map);
        }
    }

    /// Whether a row that names this map may come yet. To be asked before the rows are read that might.
    pub fn is_new_map(&self, map: &[u8; 8]) -> bool {
        self.state().new_maps.contains(map)
    }

    pub fn end_change(&self, begin: u64, held: &[ObjectId]) {
        let mut state = self.state();
        let state = &mut *state;
        let now = state.tick();
        state.changes.remove(&begin);
        for object in held {
            state.release(object);
            if !state.changes.is_empty() {
                state.named.record(now, *object);
            }
        }
        let oldest = state.changes.first().copied();
        state.named.prune(oldest);
        state.removed.prune(oldest);
    }

    /// Keeps an object that was just named by its writer, until it is released: when its row is committed, or never will be.
    pub fn hold_fresh(&self, object: ObjectId) {
        *self.state().held.entry(object).or_default() += 1;
    }

    pub fn release_fresh(&self, objects: &[ObjectId]) {
        let mut state = self.state();
        objects.iter().for_each(|object| state.release(object));
    }

    /// For a change that began then and has removed these objects from this blob: returns how many
    /// are removed, and which of them can go now. The others wait for readers.
    pub fn remove(&self, begin: u64, blob: BlobKey, objects: Vec<ObjectId>) -> (usize, Vec<ObjectId>) {
        let mut state = self.state();
        let condemned = state.condemn(Some(begin), objects);
        (condemned.len(), state.line_up(Some(blob), condemned))
    }

    /// Begins a sweep over these objects, which are in order; false if there is one already.
    #[must_use]
    pub fn begin_sweep(&self, objects: Vec<ObjectId>) -> bool {
        debug_assert!(objects.is_sorted());
        let mut state = self.state();
        if state.sweep.is_some() {
            return false;
        }
        let named = vec![false; objects.len()];
        state.sweep = Some(Candidates { objects, named, at: 0 });
        true
    }

    /// A row names these.
    pub fn mark(&self, objects: &[ObjectId]) {
        if let Some(sweep) = &mut self.state().sweep {
            objects.iter().for_each(|object| sweep.mark(object));
        }
    }

    /// After all rows were read: the next objects that nobody names; none when there are no more.
    pub fn unnamed(&self, limit: usize) -> Vec<ObjectId> {
        let mut state = self.state();
        let Some(sweep) = &mut state.sweep else { return Vec::new() };
        let mut unnamed = Vec::new();
        while unnamed.len() < limit && sweep.at < sweep.objects.len() {
            if !sweep.named[sweep.at] {
                unnamed.push(sweep.objects[sweep.at]);
            }
            sweep.at += 1;
        }
        unnamed
    }

    /// Of these objects, which a sweep has found to be unnamed: how many are removed, and which of them can go now. The
    /// others wait for readers.
    pub fn remove_unnamed(&self, mut objects: Vec<ObjectId>) -> (usize, Vec<ObjectId>) {
        let mut state = self.state();
        // Somebody may have held one since.
        if let Some(sweep) = &state.sweep {
            objects.retain(|object| !sweep.is_marked(object));
        }
        let condemned = state.condemn(None, objects);
        (condemned.len(), state.line_up(None, condemned))
    }

    pub fn end_sweep(&self) {
        self.state().sweep = None;
    }

    pub fn waiting(&self) -> usize {
        self.state().readers.waiting_objects()
    }

    pub fn readers(&self) -> usize {
        self.state().readers.count()
    }
}
