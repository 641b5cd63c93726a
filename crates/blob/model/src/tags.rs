//! Tags of a blob: pairs that its service indexes.

use percent_encoding::percent_decode_str;

use crate::limits;

/// At most ten pairs, sorted by their keys, which are distinct.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(Vec<(String, String)>);

/// Why pairs can't be a blob's tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagFault {
    #[error("a blob has at most {} tags", limits::TAGS_MAX)]
    TooMany,
    #[error("a tag's key has 1 to {} characters", limits::TAG_KEY_MAX)]
    KeyLength,
    #[error("a tag's value has at most {} characters", limits::TAG_VALUE_MAX)]
    ValueLength,
    #[error("a tag has letters, digits, spaces and + - . / : = _")]
    Character,
    #[error("a key is given twice")]
    Repeated,
    #[error("this is no list of tags")]
    Malformed,
}

impl Tags {
    pub fn new(mut pairs: Vec<(String, String)>) -> Result<Self, TagFault> {
        if pairs.len() > limits::TAGS_MAX {
            return Err(TagFault::TooMany);
        }
        for (key, value) in &pairs {
            if !(1..=limits::TAG_KEY_MAX).contains(&key.chars().count()) {
                return Err(TagFault::KeyLength);
            }
            if value.chars().count() > limits::TAG_VALUE_MAX {
                return Err(TagFault::ValueLength);
            }
            if !key.bytes().chain(value.bytes()).all(is_permitted) {
                return Err(TagFault::Character);
            }
        }
        pairs.sort();
        match pairs.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            true => Err(TagFault::Repeated),
            false => Ok(Self(pairs)),
        }
    }

    /// Of the header `x-ms-tags`: `key=value&key=value`, each percent-encoded, with `+` for a space.
    pub fn parse(header: &str) -> Result<Self, TagFault> {
        let decode = |text: &str| {
            let text = text.replace('+', " ");
            percent_decode_str(&text)
                .decode_utf8()
                .map(|text| text.into_owned())
                .map_err(|_| TagFault::Malformed)
        };
        let pairs = header.split('&').filter(|pair| !pair.is_empty());
        // One more than there may be says that there are too many.
        let pairs = pairs.take(limits::TAGS_MAX + 1).map(|pair| {
            let (key, value) = pair.split_once('=').ok_or(TagFault::Malformed)?;
            Ok((decode(key)?, decode(value)?))
        });
        Self::new(pairs.collect::<Result<_, TagFault>>()?)
    }

    /// Sorted by their keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(other, _)| other.as_str().cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn is_permitted(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" +-./:=_".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Result<Tags, TagFault> {
        Tags::new(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    /// Spec: blob-operations 1.4.
    #[test]
    fn tags_follow_the_rules() {
        let check = |pairs: &[(&str, &str)], expected: Option<TagFault>| {
            assert_eq!(tags(pairs).err(), expected, "{pairs:?}");
        };
        check(&[], None);
        check(&[("tag1", ""), ("Tag1", "a Z0+-./:=_")], None);
        check(&[("", "x")], Some(TagFault::KeyLength));
        check(&[(&"k".repeat(128), &"v".repeat(256))], None);
        check(&[(&"k".repeat(129), "")], Some(TagFault::KeyLength));
        check(&[("k", &"v".repeat(257))], Some(TagFault::ValueLength));
        for bad in ["a,b", "a'b", "é", "a\nb", "\u{ffff}"] {
            check(&[("k", bad)], Some(TagFault::Character));
            check(&[(bad, "v")], Some(TagFault::Character));
        }
        check(&[("k", "1"), ("k", "2")], Some(TagFault::Repeated));
        let eleven: Vec<String> = (0..11).map(|n| format!("k{n}")).collect();
        let eleven: Vec<(&str, &str)> = eleven.iter().map(|key| (key.as_str(), "")).collect();
        check(&eleven[..10], None);
        check(&eleven, Some(TagFault::TooMany));
    }

    #[test]
    fn tags_come_sorted_by_key() {
        let sorted = tags(&[("b", "1"), ("a", "2"), ("B", "3")]).unwrap();
        assert_eq!(sorted.iter().collect::<Vec<_>>(), [("B", "3"), ("a", "2"), ("b", "1")]);
        assert_eq!((sorted.get("a"), sorted.get("c")), (Some("2"), None));
    }

    #[test]
    fn a_header_is_form_encoded() {
        let check = |header: &str, expected: Result<&[(&str, &str)], TagFault>| {
            let read = Tags::parse(header);
            let read = read.as_ref().map(|tags| tags.iter().collect::<Vec<_>>()).map_err(|fault| *fault);
            assert_eq!(read, expected.map(<[_]>::to_vec), "{header}");
        };
        check("", Ok(&[]));
        check("tag1=firsttag&tag2=secondtag", Ok(&[("tag1", "firsttag"), ("tag2", "secondtag")]));
        check("a%20b=c%2Bd&e+f=", Ok(&[("a b", "c+d"), ("e f", "")]));
        check("a=b=c", Ok(&[("a", "b=c")]));
        check("a", Err(TagFault::Malformed));
        check("a=%ff", Err(TagFault::Malformed));
        check("=b", Err(TagFault::KeyLength));
        check(&"a=b&".repeat(100_000), Err(TagFault::TooMany));
    }
}
