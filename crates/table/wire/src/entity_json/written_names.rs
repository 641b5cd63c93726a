//! The names of properties as they were written for the last entity of a page.
//!
//! The entities of a table mostly have the same properties in the same order. So a name, with the annotation before it, is
//! made once and then copied: escapes and annotations are most of the work on a small property.

use model::EdmType;

/// What is remembered at most, so that names take little memory: properties of an entity, and bytes of a name as written.
const PLACES_MAX: usize = 64;
const WRITTEN_MAX: usize = 512;

#[derive(Debug, Default)]
pub(super) struct WrittenNames {
    places: Vec<WrittenName>,
    /// For a single entity, remembering would be wasted.
    forgets: bool,
}

#[derive(Debug, Default)]
struct WrittenName {
    name: Vec<u8>,
    note: Option<EdmType>,
    /// With its annotation, if it has one, and the colon behind it.
    written: Vec<u8>,
}

impl WrittenNames {
    pub(super) fn forgetting() -> Self {
        Self { forgets: true, ..Self::default() }
    }

    /// What was written last at this place, if it was this name with this annotation.
    #[inline]
    pub(super) fn at(&self, place: usize, name: &[u8], note: Option<EdmType>) -> Option<&[u8]> {
        let known = self.places.get(place)?;
        (known.note == note && known.name == name).then_some(&known.written)
    }

    pub(super) fn remember(&mut self, place: usize, name: &[u8], note: Option<EdmType>, written: &[u8]) {
        if self.forgets || place >= PLACES_MAX || written.len() > WRITTEN_MAX {
            return;
        }
        if place >= self.places.len() {
            // An empty name is no name of a property, so nothing is found at the places in between.
            self.places.resize_with(place + 1, WrittenName::default);
        }
        let known = &mut self.places[place];
        known.name.clear();
        known.name.extend_from_slice(name);
        known.note = note;
        known.written.clear();
        known.written.extend_from_slice(written);
    }
}
