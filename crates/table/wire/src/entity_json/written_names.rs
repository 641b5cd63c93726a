//! The names of properties as they were written for the entity before: of the same page, or of the same table.
//!
//! The entities of a table mostly have the same properties in the same order. So a name, with the annotation before it, is
//! made once and then copied: escapes and annotations are most of the work on a small property.

use std::cell::RefCell;

use model::EdmType;

use super::encode::EntityContext;
use crate::format::MetadataLevel;

/// What is remembered at most, so that names take little memory: properties of an entity, and bytes of a name as written.
const PLACES_MAX: usize = 64;
const WRITTEN_MAX: usize = 512;

/// Tables whose names a thread remembers at each of two kinds of levels. Those with the same hash take turns.
const TABLES: usize = 8;

thread_local! {
    static OF_TABLES: RefCell<[WrittenNames; 2 * TABLES]> = RefCell::default();
}

/// The names of the last single entity of this table that this thread wrote.
pub(super) fn take(context: &EntityContext<'_>) -> WrittenNames {
    OF_TABLES.with_borrow_mut(|tables| std::mem::take(&mut tables[place_of(context)]))
}

pub(super) fn keep(context: &EntityContext<'_>, names: WrittenNames) {
    OF_TABLES.with_borrow_mut(|tables| tables[place_of(context)] = names);
}

fn place_of(context: &EntityContext<'_>) -> usize {
    let hash = context.table.bytes().fold(0_usize, |hash, byte| hash.wrapping_mul(31) ^ usize::from(byte));
    // Without metadata there are no annotations.
    2 * (hash % TABLES) + usize::from(context.level == MetadataLevel::None)
}

#[derive(Debug, Default)]
pub(super) struct WrittenNames {
    places: Vec<WrittenName>,
    /// Remembering would be wasted.
    forgets: bool,
}

#[derive(Debug, Default)]
pub(super) struct WrittenName {
    pub name: String,
    /// The stored bytes of the name and of its value's type; none if it was not stored.
    pub spelled: Vec<u8>,
    pub note: Option<EdmType>,
    /// With its annotation, if it has one, and the colon behind it.
    pub written: Vec<u8>,
}

impl WrittenNames {
    pub(super) fn forgetting() -> Self {
        Self { forgets: true, ..Self::default() }
    }

    /// What was written last at this place, if it was this name with this annotation.
    #[inline]
    pub(super) fn at(&self, place: usize, name: &[u8], note: Option<EdmType>) -> Option<&[u8]> {
        let known = self.places.get(place)?;
        (known.note == note && known.name.as_bytes() == name).then_some(&known.written)
    }

    /// What was written last at this place.
    #[inline]
    pub(super) fn last_at(&self, place: usize) -> Option<&WrittenName> {
        self.places.get(place)
    }

    pub(super) fn remember(
        &mut self,
        place: usize,
        (name, spelled): (&str, &[u8]),
        note: Option<EdmType>,
        written: &[u8],
    ) {
        if self.forgets || place >= PLACES_MAX || written.len() > WRITTEN_MAX {
            return;
        }
        if place >= self.places.len() {
            // An empty name is no name of a property, so nothing is found at the places in between.
            self.places.resize_with(place + 1, WrittenName::default);
        }
        let known = &mut self.places[place];
        known.name.clear();
        known.name.push_str(name);
        known.spelled.clear();
        known.spelled.extend_from_slice(spelled);
        known.note = note;
        known.written.clear();
        known.written.extend_from_slice(written);
    }
}
