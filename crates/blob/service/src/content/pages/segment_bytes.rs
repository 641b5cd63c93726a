//! The stored bytes of a segment.
//!
//! The format, 01; the number of objects, and for each its name and the map's number when it was written; the number of runs,
//! and for each the pages between the run before and it, its pages, its object's place in the list, its first page in the
//! object, and the map's number when it was changed; the number of clearings, and for each the pages between the one before and
//! it, its pages, and the map's number when they were cleared. Objects are in the order in which runs name them first.

use std::collections::HashMap;

use store::{Fault, ObjectId};

use super::super::number;
use super::segment::Clearing;
use super::{Run, SEGMENT_PAGES, Segment};

const FORMAT: u8 = 1;

impl Segment {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut places = HashMap::new();
        let mut objects = Vec::new();
        let mut runs = Vec::new();
        let mut at = 0;
        for run in &self.runs {
            let next = places.len() as u64;
            let place = *places.entry(run.object).or_insert_with(|| {
                objects.extend_from_slice(run.object.as_bytes());
                number::put(&mut objects, u64::from(run.written));
                next
            });
            for value in [run.first - at, run.pages] {
                number::put(&mut runs, u64::from(value));
            }
            number::put(&mut runs, place);
            number::put(&mut runs, u64::from(run.start));
            number::put(&mut runs, u64::from(run.changed));
            at = run.end();
        }
        let mut out = vec![FORMAT];
        number::put(&mut out, places.len() as u64);
        out.append(&mut objects);
        number::put(&mut out, self.runs.len() as u64);
        out.append(&mut runs);
        number::put(&mut out, self.cleared.len() as u64);
        at = 0;
        for clearing in &self.cleared {
            for value in [clearing.first - at, clearing.pages, clearing.changed] {
                number::put(&mut out, u64::from(value));
            }
            at = clearing.end();
        }
        out
    }

    pub fn read(stored: &[u8]) -> Result<Self, Fault> {
        parse(stored).ok_or_else(|| {
            Fault::damaged(format!(
                "a stored part of a page blob's map, {} bytes, can't be read",
                stored.len()
            ))
        })
    }
}

fn parse(stored: &[u8]) -> Option<Segment> {
    let mut rest = stored.strip_prefix(&[FORMAT])?;
    let mut objects: Vec<(ObjectId, u32)> = Vec::new();
    for _ in 0..take_up_to(&mut rest, SEGMENT_PAGES)? {
        let object = ObjectId::from_bytes(number::take_array(&mut rest)?);
        objects.push((object, take_up_to(&mut rest, u32::MAX)?));
    }
    let mut runs = Vec::new();
    // Objects that runs have named so far: the next new one must be the next of the list.
    let mut named = 0;
    let mut at = 0;
    for _ in 0..take_up_to(&mut rest, SEGMENT_PAGES)? {
        let first = at + take_up_to(&mut rest, SEGMENT_PAGES - at)?;
        let pages = take_up_to(&mut rest, SEGMENT_PAGES - first)?;
        let place = take_up_to(&mut rest, SEGMENT_PAGES)? as usize;
        let start = take_up_to(&mut rest, SEGMENT_PAGES)?;
        let changed = take_up_to(&mut rest, u32::MAX)?;
        let (object, written) = *objects.get(place)?;
        if pages == 0 || start + pages > SEGMENT_PAGES || place > named || changed > written {
            return None;
        }
        named = named.max(place + 1);
        at = first + pages;
        runs.push(Run { first, pages, object, start, written, changed });
    }
    let mut cleared = Vec::new();
    at = 0;
    for _ in 0..take_up_to(&mut rest, SEGMENT_PAGES)? {
        let first = at + take_up_to(&mut rest, SEGMENT_PAGES - at)?;
        let pages = take_up_to(&mut rest, SEGMENT_PAGES - first)?;
        let changed = take_up_to(&mut rest, u32::MAX)?;
        if pages == 0 || changed == 0 {
            return None;
        }
        at = first + pages;
        cleared.push(Clearing { first, pages, changed });
    }
    let segment = Segment { runs, cleared };
    let is_whole =
        segment.cleared.iter().all(|clearing| segment.ranges(clearing.first..clearing.end()).is_empty());
    let mut names: Vec<ObjectId> = objects.iter().map(|(object, _)| *object).collect();
    names.sort_unstable();
    let are_distinct = names.windows(2).all(|pair| pair[0] != pair[1]);
    (rest.is_empty() && named == objects.len() && are_distinct && is_whole).then_some(segment)
}

fn take_up_to(rest: &mut &[u8], max: u32) -> Option<u32> {
    u32::try_from(number::take(rest)?).ok().filter(|value| *value <= max)
}
