//! Bodies that are spelled like one that was read before.
//!
//! A client mostly sends the same members in the same order, and only their values differ. So what stands around the values
//! of the last bodies is remembered, together with what it means. If the same bytes stand around the values of the next
//! body, then its names and annotations are not read and not checked again: only its values are read. The result is always
//! that of reading the whole body, as a property test says. What differs in any other byte is read as a whole.
//!
//! Why this is right: what a reader does with the bytes between two values depends only on these bytes, on the bytes
//! before them, and not on the values.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use model::{EdmType, PropertyNames, Refusal, Value, ValueCow, ValueRef};

use super::decode::{self, Keys};
use super::members::MemberReader;
use crate::{EntityBody, names};

/// How many shapes a thread remembers. A body that has none of them is compared with each.
const SHAPES_MAX: usize = 4;
/// What is remembered of one at most, so that shapes take little memory.
const VALUES_MAX: usize = 64;
const AROUND_BYTES_MAX: usize = 4096;
/// In larger bodies the values are nearly all of the work, and comparing with each shape would read them several times.
const BODY_BYTES_MAX: usize = 64 * 1024;

thread_local! {
    /// The last one used is the first.
    static SHAPES: RefCell<Vec<Shape>> = const { RefCell::new(Vec::new()) };
}

/// Reads a body by a remembered shape if it has one, else as a whole.
pub(super) fn read(body: &str, keys: Keys) -> Result<EntityBody<'_>, Refusal> {
    if body.len() > BODY_BYTES_MAX {
        return decode::entity(body, keys, &mut ShapeDraft::none(body));
    }
    SHAPES.with_borrow_mut(|shapes| read_with(shapes, body, keys))
}

fn read_with<'a>(shapes: &mut Vec<Shape>, body: &'a str, keys: Keys) -> Result<EntityBody<'a>, Refusal> {
    for place in 0..shapes.len() {
        if let Some(entity) = shapes[place].read(body, keys) {
            shapes[..=place].rotate_right(1);
            return Ok(entity);
        }
    }
    let mut draft = ShapeDraft::new(body);
    let entity = decode::entity(body, keys, &mut draft)?;
    if let Some(shape) = draft.finish(keys, &entity) {
        shapes.truncate(SHAPES_MAX - 1);
        shapes.insert(0, shape);
    }
    Ok(entity)
}

/// What stands around the values of a body.
#[derive(Debug)]
struct Shape {
    keys: Keys,
    /// The bytes before the first value, between each value and the next, and behind the last one.
    around: Vec<u8>,
    values: Vec<Slot>,
    names: Arc<PropertyNames>,
}

/// The place of a value.
#[derive(Debug)]
struct Slot {
    /// Where the bytes before it end in `around`.
    end: usize,
    /// Its name, counted from the start of the bytes before it.
    name: Range<usize>,
    role: Role,
    /// By its annotation.
    kind: Option<EdmType>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    PartitionKey,
    RowKey,
    Timestamp,
    Property,
    Ignored,
}

impl Shape {
    /// `None` if the body has another shape, or a value that is null or can't be read.
    fn read<'a>(&self, body: &'a str, keys: Keys) -> Option<EntityBody<'a>> {
        if keys != self.keys {
            return None;
        }
        let mut entity =
            EntityBody { properties: Vec::with_capacity(self.names.len()), ..EntityBody::default() };
        let (mut at, mut from) = (0, 0);
        for slot in &self.values {
            let before = &self.around[from..slot.end];
            if !body.as_bytes()[at..].starts_with(before) {
                return None;
            }
            let name = at + slot.name.start..at + slot.name.end;
            let mut reader = MemberReader::before_value(body, at + before.len());
            let json = match slot.role {
                Role::Ignored => reader.skip().map(|()| None),
                _ => reader.value().map(Some),
            };
            let json = json.ok()?;
            (at, from) = (reader.at(), slot.end);
            let Some(json) = json.filter(|_| slot.role != Role::Timestamp) else { continue };
            if decode::has_offset(slot.kind, &json) {
                entity.offset_times.push(Cow::Borrowed(&body[name.clone()]));
            }
            let value = decode::value(slot.kind, json).ok()??;
            match slot.role {
                Role::PartitionKey => entity.partition_key = Some(text(value)?),
                Role::RowKey => entity.row_key = Some(text(value)?),
                _ => entity.properties.push((Cow::Borrowed(&body[name]), value)),
            }
        }
        entity.names = Some(self.names.clone());
        (body.as_bytes()[at..] == self.around[from..]).then_some(entity)
    }
}

fn text(value: ValueCow<'_>) -> Option<String> {
    match value {
        ValueCow::Owned(Value::String(text)) => Some(text),
        ValueCow::Borrowed(ValueRef::String(text)) => Some(text.to_owned()),
        _ => None,
    }
}

/// The shape of a body that is being read.
pub(super) struct ShapeDraft<'a> {
    body: &'a str,
    around: Vec<u8>,
    values: Vec<Slot>,
    /// Values whose annotation is known.
    kinds: usize,
    /// Where the last value ends in the body.
    at: usize,
    is_useless: bool,
}

impl<'a> ShapeDraft<'a> {
    fn new(body: &'a str) -> Self {
        let (around, values) = (Vec::with_capacity(512), Vec::with_capacity(16));
        Self { body, around, values, kinds: 0, at: 0, is_useless: false }
    }

    /// One that is not drafted.
    pub(super) fn none(body: &'a str) -> Self {
        Self { body, around: Vec::new(), values: Vec::new(), kinds: 0, at: 0, is_useless: true }
    }

    /// The next value of the body, and its name.
    pub(super) fn value(&mut self, name: &str, place: Range<usize>) {
        let role = match name {
            names::PARTITION_KEY => Role::PartitionKey,
            names::ROW_KEY => Role::RowKey,
            names::TIMESTAMP => Role::Timestamp,
            _ => Role::Property,
        };
        // A name with escapes is not in the body.
        match place_of(name, &self.body[self.at..place.start]) {
            Some(name) => self.slot(role, name, place),
            None => self.is_useless = true,
        }
    }

    /// The next value, of a member that does not count.
    pub(super) fn ignored(&mut self, place: Range<usize>) {
        self.slot(Role::Ignored, 0..0, place);
    }

    fn slot(&mut self, role: Role, name: Range<usize>, place: Range<usize>) {
        self.is_useless |= self.values.len() == VALUES_MAX;
        self.append(place.start);
        if !self.is_useless {
            self.values.push(Slot { end: self.around.len(), name, role, kind: None });
            self.at = place.end;
        }
    }

    fn append(&mut self, end: usize) {
        let around = &self.body.as_bytes()[self.at..end];
        self.is_useless |= self.around.len() + around.len() > AROUND_BYTES_MAX;
        if !self.is_useless {
            self.around.extend_from_slice(around);
        }
    }

    /// The annotation of the next value that counts, once all are read.
    pub(super) fn kind(&mut self, kind: Option<EdmType>) {
        let rest = &mut self.values[self.kinds..];
        if let Some(next) = rest.iter().position(|slot| slot.role != Role::Ignored) {
            rest[next].kind = kind;
            self.kinds += next + 1;
        }
    }

    /// The shape of the body, which was read as this entity. `None` if it can't be used: there is too much of it, a value is
    /// null, or its names are not valid.
    fn finish(mut self, keys: Keys, entity: &EntityBody<'_>) -> Option<Shape> {
        self.append(self.body.len());
        let properties = self.values.iter().filter(|slot| slot.role == Role::Property).count();
        if self.is_useless || properties != entity.properties.len() {
            return None;
        }
        let names = PropertyNames::check(entity.properties.iter().map(|(name, _)| &**name)).ok()?;
        Some(Shape { keys, around: self.around, values: self.values, names: Arc::new(names) })
    }
}

/// Where a part of a text stands in it; `None` for any other text, which has other addresses.
fn place_of(part: &str, whole: &str) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (start + part.len() <= whole.len()).then_some(start..start + part.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a reader without a memory makes of a body, and what it says to the entity in it.
    fn as_a_whole(body: &str, keys: Keys) -> String {
        shown(decode::entity(body, keys, &mut ShapeDraft::none(body)))
    }

    fn shown(read: Result<EntityBody<'_>, Refusal>) -> String {
        let Ok(mut entity) = read else { return format!("{read:?}") };
        entity.names.take_if(|names| names.len() != entity.properties.len());
        let known = EntityBody { names: None, ..entity.clone() };
        format!("{known:?} {:?}", entity.into_entity())
    }

    /// How many of the bodies were read by a shape, after a check that all were read as they should be.
    fn check(bodies: &[(&str, Keys)]) -> usize {
        let mut shapes = Vec::new();
        let mut known = 0;
        for (body, keys) in bodies {
            let read = read_with(&mut shapes, body, *keys);
            known += usize::from(read.as_ref().is_ok_and(|entity| entity.names.is_some()));
            assert_eq!(shown(read), as_a_whole(body, *keys), "{body}");
        }
        assert!(shapes.len() <= SHAPES_MAX);
        known
    }

    const BODY: &str = r#"{"PartitionKey":"p","RowKey":"1","A@odata.type":"Edm.Int64","A":"5","B":1.5,"C":true,"D":"x","T@odata.type":"Edm.DateTime","T":"2020-01-01T00:00:00Z"}"#;

    #[test]
    fn bodies_that_differ_in_values_have_one_shape() {
        let other = r#"{"PartitionKey":"q","RowKey":"\u0032","A@odata.type":"Edm.Int64","A":"-7","B":3,"C":false,"D":"a \"quote\"","T@odata.type":"Edm.DateTime","T":"2020-01-01T01:02:03+01:00"}"#;
        assert_eq!(check(&[(BODY, Keys::Count), (other, Keys::Count), (BODY, Keys::Count)]), 2);
    }

    #[test]
    fn bodies_that_differ_elsewhere_do_not() {
        let changes = [
            ("\"B\"", "\"b\""),
            ("Edm.Int64", "Edm.Int32"),
            ("\"B\":", "\"B\" :"),
            ("1.5,", "1.5 ,"),
            ("\"C\":true,", ""),
            ("}", ",\"E\":1}"),
            ("}", "} "),
            ("}", "}x"),
            ("}", ""),
            ("{", "[{"),
            (":1.5", ":null"),
            (":1.5", ":{}"),
            (":1.5", ":01"),
            (":true", ":True"),
            ("\"5\"", "\"five\""),
            ("\"5\"", "5"),
            ("\"p\"", "7"),
            ("\"p\"", "null"),
            ("\"C\"", "\"A\""),
        ];
        for (from, to) in changes {
            let other = BODY.replacen(from, to, 1);
            assert_ne!(other, BODY);
            assert_eq!(check(&[(BODY, Keys::Count), (&other, Keys::Count)]), 0, "{other}");
        }
    }

    #[test]
    fn keys_that_do_not_count_may_differ() {
        let bodies = ["\"1\"", "null", "{\"a\":[1]}", "\"\\u0031\""].map(|key| {
            format!(r#"{{"odata.etag":{key},"PartitionKey":"p","RowKey":{key},"Timestamp":"x","A":1}}"#)
        });
        let bodies: Vec<_> = bodies.iter().map(|body| (body.as_str(), Keys::Ignored)).collect();
        assert_eq!(check(&bodies), 3);
    }

    #[test]
    fn keys_count_or_do_not_whatever_was_read_before() {
        assert_eq!(check(&[(BODY, Keys::Ignored), (BODY, Keys::Count), (BODY, Keys::Ignored)]), 1);
    }

    #[test]
    fn what_would_take_much_memory_is_not_remembered() {
        let many = |count: usize| {
            let members: Vec<String> = (0..count).map(|n| format!("\"a{n}\":1")).collect();
            format!("{{{}}}", members.join(","))
        };
        let long = format!("{{{}\"A\":1}}", " ".repeat(AROUND_BYTES_MAX));
        for (body, remembered) in [(many(VALUES_MAX), 1), (many(VALUES_MAX + 1), 0), (long, 0)] {
            assert_eq!(check(&[(&body, Keys::Count), (&body, Keys::Count)]), remembered);
        }
    }

    fn body() -> impl Strategy<Value = String> {
        let name = prop_oneof![
            Just("A"),
            Just("B"),
            Just("\\u0041"),
            Just("é"),
            Just("PartitionKey"),
            Just("RowKey"),
            Just("Timestamp"),
            Just("A@odata.type"),
            Just("B@odata.type"),
            Just("odata.etag"),
            Just("a b"),
        ];
        let value = prop_oneof![
            Just("1"),
            Just("1.5"),
            Just("-0"),
            Just("true"),
            Just("null"),
            Just("{}"),
            Just("\"\""),
            Just("\"x\""),
            Just("\"7\""),
            Just("\"Edm.Int64\""),
            Just("\"Edm.DateTime\""),
            Just("\"Edm.Double\""),
            Just("\"2020-01-01T00:00:00+00:00\""),
            Just("\"\\n\""),
        ];
        let member = (name, value, 0..2_usize, 0..2_usize);
        proptest::collection::vec(member, 0..5).prop_map(|members| {
            let members = members.iter().map(|(name, value, before, behind)| {
                format!("\"{name}\":{}{value}{}", " ".repeat(*before), " ".repeat(*behind))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn what_is_remembered_does_not_show(
            bodies in proptest::collection::vec((body(), prop_oneof![Just(Keys::Count), Just(Keys::Ignored)]), 1..4),
            order in proptest::collection::vec(any::<prop::sample::Index>(), 1..8),
        ) {
            let bodies: Vec<_> = order.iter().map(|at| at.get(&bodies)).map(|(body, keys)| (body.as_str(), *keys)).collect();
            check(&bodies);
        }
    }
}
