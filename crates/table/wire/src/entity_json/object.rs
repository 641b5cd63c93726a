//! JSON objects, member by member, and the values of properties in JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::{ETag, EdmType, UnreadName, UnreadValue, ValueRef, write_double};

use super::text::{is_plain_text, write_escaped, write_plain_string, write_string};
use super::written_names::{WrittenName, WrittenNames};
use crate::format::MetadataLevel;

/// An object being written. It knows whether the next member needs a comma.
pub(super) struct Object<'o> {
    pub out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> Object<'o> {
    pub(super) fn open(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    #[inline]
    fn comma(&mut self) {
        if !std::mem::replace(&mut self.first, false) {
            self.out.push(b',');
        }
    }

    /// The ETag of a timestamp with this text, with its quotes escaped.
    pub(super) fn etag(&mut self, time: &([u8; 28], usize)) {
        self.comma();
        self.out.extend_from_slice(b"\"odata.etag\":\"W/\\\"");
        ETag::write_opaque_of(self.out, time);
        self.out.extend_from_slice(b"\\\"\"");
    }

    pub(super) fn name(&mut self, name: &str) {
        self.comma();
        write_string(self.out, name);
        self.out.push(b':');
    }

    /// A name as it is written, with its quotes and the colon.
    pub(super) fn literal_name(&mut self, name: &[u8]) {
        self.comma();
        self.out.extend_from_slice(name);
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        write_string(self.out, value);
    }

    pub(super) fn null(&mut self, name: &str) {
        self.name(name);
        self.out.extend_from_slice(b"null");
    }

    pub(super) fn property(&mut self, level: MetadataLevel, name: &str, value: ValueRef<'_>) {
        if let Some(note) = note(level, value) {
            self.annotation(name, note);
        }
        self.name(name);
        write_value(self.out, value);
    }

    /// A property that is not read yet, at this place among the properties of its entity. Returns its value, unless that is a
    /// text that needed no reading. What can't be read is left out.
    #[inline]
    pub(super) fn unread<'n, 'a>(
        &mut self,
        level: MetadataLevel,
        names: &mut WrittenNames,
        place: usize,
        name: impl UnreadName<'n>,
        value: impl UnreadValue<'a>,
    ) -> Option<ValueRef<'a>> {
        if let Some(text) = value.text_bytes().filter(|text| is_plain_text(text)) {
            self.remembered(names, place, name, None)?;
            write_plain_string(self.out, text);
            return None;
        }
        let value = value.value()?;
        self.remembered(names, place, name, note(level, value))?;
        write_value(self.out, value);
        Some(value)
    }

    /// A property whose name and type are those of the entity before, at the same place. Not for the first member of an
    /// object. Returns its value as `unread` does.
    #[inline]
    pub(super) fn alike<'a>(
        &mut self,
        level: MetadataLevel,
        last: &WrittenName,
        value: impl UnreadValue<'a>,
    ) -> Option<ValueRef<'a>> {
        if let Some(text) = value.text_bytes().filter(|text| is_plain_text(text)) {
            self.out.push(b',');
            self.out.extend_from_slice(&last.written);
            write_plain_string(self.out, text);
            return None;
        }
        let value = value.value()?;
        let note = note(level, value);
        if note == last.note {
            self.out.push(b',');
            self.out.extend_from_slice(&last.written);
        } else {
            // A Double has an annotation or none, by its value.
            note.inspect(|note| self.annotation(&last.name, *note));
            self.name(&last.name);
        }
        write_value(self.out, value);
        Some(value)
    }

    /// Writes a name and its annotation, both as in the entity before if it had them at the same place.
    #[inline]
    fn remembered<'a>(
        &mut self,
        names: &mut WrittenNames,
        place: usize,
        name: impl UnreadName<'a>,
        note: Option<EdmType>,
    ) -> Option<()> {
        if let Some(written) = names.at(place, name.bytes(), note) {
            self.comma();
            self.out.extend_from_slice(written);
            return Some(());
        }
        let text = name.text()?;
        self.comma();
        let start = self.out.len();
        self.first = true;
        if let Some(note) = note {
            self.annotation(text, note);
        }
        self.name(text);
        names.remember(place, (text, name.spelled()), note, &self.out[start..]);
        Some(())
    }

    /// Replaces the `Z` of the time just written by an offset.
    pub(super) fn show_offset(&mut self) {
        if self.out.ends_with(b"Z\"") {
            self.out.truncate(self.out.len() - 2);
            self.out.extend_from_slice(b"+00:00\"");
        }
    }

    pub(super) fn annotation(&mut self, name: &str, note: EdmType) {
        self.comma();
        self.out.push(b'"');
        write_escaped(self.out, name);
        self.out.extend_from_slice(b"@odata.type\":\"");
        self.out.extend_from_slice(note.name().as_bytes());
        self.out.push(b'"');
    }

    pub(super) fn close(self) {
        self.out.push(b'}');
    }
}

/// The type to write beside a value: none if the JSON implies it.
fn note(level: MetadataLevel, value: ValueRef<'_>) -> Option<EdmType> {
    let is_implied = match value {
        ValueRef::Int64(_) | ValueRef::DateTime(_) | ValueRef::Guid(_) | ValueRef::Binary(_) => false,
        ValueRef::Double(number) => number.is_finite(),
        ValueRef::String(_) | ValueRef::Boolean(_) | ValueRef::Int32(_) => true,
    };
    (!is_implied && level != MetadataLevel::None).then(|| value.edm_type())
}

pub(super) fn write_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::String(text) => write_string(out, text),
        ValueRef::Boolean(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        ValueRef::Int32(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
        ValueRef::Int64(value) => write_plain_string(out, itoa::Buffer::new().format(value).as_bytes()),
        ValueRef::Double(value) if value.is_nan() => out.extend_from_slice(b"\"NaN\""),
        ValueRef::Double(f64::INFINITY) => out.extend_from_slice(b"\"Infinity\""),
        ValueRef::Double(f64::NEG_INFINITY) => out.extend_from_slice(b"\"-Infinity\""),
        ValueRef::Double(value) => write_double(out, value),
        ValueRef::DateTime(value) => quoted(out, |out| value.write(out)),
        ValueRef::Guid(value) => quoted(out, |out| value.write(out)),
        ValueRef::Binary(bytes) => quoted(out, |out| {
            let start = out.len();
            out.resize(start + bytes.len().div_ceil(3) * 4, 0);
            // Base64 takes four letters for each three bytes, so it fits.
            let _ = STANDARD.encode_slice(bytes, &mut out[start..]);
        }),
    }
}

/// For text without characters that need escaping.
fn quoted(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    write(out);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::DateTime;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn etags_are_those_of_the_header(ticks in 0..=DateTime::MAX.ticks()) {
            let time = DateTime::from_ticks(ticks).unwrap();
            let mut out = Vec::new();
            let mut object = Object::open(&mut out);
            object.etag(&time.text());
            object.close();
            let shown: serde_json::Value = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(shown["odata.etag"].as_str().unwrap(), ETag(time).to_string());
        }

        #[test]
        fn bytes_are_base64(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let mut out = Vec::new();
            write_value(&mut out, ValueRef::Binary(&bytes));
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), STANDARD.encode(&bytes));
        }
    }
}
