//! The string that a request to queues and blobs signs: the method, eleven standard headers, all `x-ms-` headers, the path
//! and the whole query (spec: queue-operations 7.1, blob-operations 8.1).

use std::borrow::Cow;

use common::Version;
use percent_encoding::percent_decode_str;

use super::{Scheme, header_order};
use crate::names;

/// A request as it is sent.
#[derive(Clone, Copy, Debug)]
pub struct BlobQueueRequest<'a> {
    pub method: &'a str,
    /// Without `-secondary`.
    pub account: &'a str,
    /// Undecoded; in path style it begins with the account.
    pub path: &'a str,
    /// Undecoded, without `?`.
    pub query: &'a str,
    /// Every header, in any order, names in any case.
    pub headers: &'a [(&'a str, &'a str)],
}

/// The headers whose values are lines of the string, without their names.
const STANDARD: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];
/// Of these, `SharedKeyLite` has only some.
const LITE: [usize; 3] = [CONTENT_MD5, CONTENT_TYPE, DATE];
const CONTENT_LENGTH: usize = 2;
const CONTENT_MD5: usize = 3;
const CONTENT_TYPE: usize = 4;
const DATE: usize = 5;
const SIGNED_PREFIX: &str = "x-ms-";
/// The first version in which a length of zero is signed as empty.
const EMPTY_LENGTH: &str = "2015-02-21";
/// What most strings take beside path and query.
const STRING_BYTES: usize = 320;

impl<'a> BlobQueueRequest<'a> {
    /// The string as the service defines it.
    pub fn string_to_sign(&self, scheme: Scheme) -> String {
        let mut headers = CanonicalHeaders::of(self.headers);
        self.string(scheme, &mut headers, Order::OfWords, Plus::Stays)
    }

    /// All strings that a client may have signed, the service's first: some clients sort headers by bytes, and some read a
    /// `+` in the query as a space. Each is made when it is asked for.
    pub fn strings_to_sign(&self, scheme: Scheme) -> impl Iterator<Item = String> {
        let ways = [
            (Order::OfWords, Plus::Stays),
            (Order::OfBytes, Plus::Stays),
            (Order::OfWords, Plus::IsSpace),
            (Order::OfBytes, Plus::IsSpace),
        ];
        let mut headers = CanonicalHeaders::of(self.headers);
        // For nearly every request all of them are equal, so only the first is made.
        ways.into_iter().filter_map(move |(order, plus)| {
            let differs = (plus == Plus::Stays || self.query.contains('+'))
                && (order == Order::OfWords || !headers.have_one_order());
            differs.then(|| self.string(scheme, &mut headers, order, plus))
        })
    }

    fn string(&self, scheme: Scheme, headers: &mut CanonicalHeaders<'a>, order: Order, plus: Plus) -> String {
        let mut string = String::with_capacity(STRING_BYTES + self.path.len() + self.query.len());
        string.extend([self.method, "\n"]);
        for place in 0..STANDARD.len() {
            if scheme == Scheme::SharedKey || LITE.contains(&place) {
                string.extend([headers.standard(place), "\n"]);
            }
        }
        headers.push_signed(&mut string, order);
        let path = if self.path.is_empty() { "/" } else { self.path };
        string.extend(["/", self.account, path]);
        match scheme {
            Scheme::SharedKey => self.push_query(&mut string, plus),
            Scheme::SharedKeyLite => {
                if let Some((_, comp)) = options(self.query, plus).find(|(name, _)| name == names::COMP) {
                    string.extend(["?comp=", &comp]);
                }
            }
        }
        string
    }

    /// Sorted by name, the values of one name too.
    fn push_query(&self, string: &mut String, plus: Plus) {
        let mut options: Vec<_> = options(self.query, plus).collect();
        options.sort_unstable();
        for same in options.chunk_by(|(a, _), (b, _)| a == b) {
            string.extend(["\n", &*same[0].0, ":"]);
            push_joined(string, same.iter().map(|(_, value)| &**value));
        }
    }
}

/// The headers of a request, apart: looked through once for all strings.
#[derive(Debug)]
struct CanonicalHeaders<'a> {
    /// By their places in `STANDARD`.
    standard: [Option<&'a str>; STANDARD.len()],
    /// All `x-ms-` headers, names in lower case.
    signed: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> CanonicalHeaders<'a> {
    fn of(headers: &[(&'a str, &'a str)]) -> Self {
        let mut found = Self { standard: [None; STANDARD.len()], signed: Vec::with_capacity(headers.len()) };
        for (name, value) in headers {
            let start = name.as_bytes().get(..SIGNED_PREFIX.len()).unwrap_or_default();
            if start.eq_ignore_ascii_case(SIGNED_PREFIX.as_bytes()) {
                found.signed.push((lowercase(Cow::Borrowed(name)), value.trim()));
            } else if let Some(place) = STANDARD.iter().position(|known| known.eq_ignore_ascii_case(name)) {
                found.standard[place].get_or_insert(value.trim());
            }
        }
        found
    }

    /// The value of a standard header in the string.
    fn standard(&self, place: usize) -> &'a str {
        match (place, self.standard[place].unwrap_or_default()) {
            (DATE, _) if self.signed(names::X_MS_DATE).is_some() => "",
            (CONTENT_LENGTH, "0") if !self.signs_zero_length() => "",
            (_, value) => value,
        }
    }

    fn signs_zero_length(&self) -> bool {
        let version = self.signed(names::X_MS_VERSION).and_then(Version::parse);
        version.is_some_and(|version| version.as_str() < EMPTY_LENGTH)
    }

    fn signed(&self, name: &str) -> Option<&'a str> {
        self.signed.iter().find(|(found, _)| found == name).map(|(_, value)| *value)
    }

    /// Whether both orders of the names are the same.
    fn have_one_order(&mut self) -> bool {
        self.sort(Order::OfWords);
        self.signed.is_sorted_by(|(a, _), (b, _)| a <= b)
    }

    /// A stable sort: the values of a name keep the order in which they were sent.
    fn sort(&mut self, order: Order) {
        self.signed.sort_by(|(a, _), (b, _)| match order {
            Order::OfWords => header_order::compare(a, b),
            Order::OfBytes => a.cmp(b),
        });
    }

    /// The values of one name are joined.
    fn push_signed(&mut self, string: &mut String, order: Order) {
        self.sort(order);
        for same in self.signed.chunk_by(|(a, _), (b, _)| a == b) {
            string.extend([&*same[0].0, ":"]);
            push_joined(string, same.iter().map(|(_, value)| *value));
            string.push('\n');
        }
    }
}

fn push_joined<'t>(string: &mut String, values: impl Iterator<Item = &'t str>) {
    for (place, value) in values.enumerate() {
        string.extend([if place == 0 { "" } else { "," }, value]);
    }
}

fn lowercase(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii()) {
        true => Cow::Owned(text.to_lowercase()),
        false => text,
    }
}

/// The order of the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    OfWords,
    OfBytes,
}

/// What a `+` in the query means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plus {
    Stays,
    IsSpace,
}

/// Names (in lower case) and values, decoded. Bytes that are not UTF-8 are replaced: no client can sign them.
fn options(query: &str, plus: Plus) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    let decode = move |text| match plus {
        Plus::Stays => percent_decode_str(text).decode_utf8_lossy(),
        Plus::IsSpace => {
            Cow::Owned(percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned())
        }
    };
    query.split('&').filter(|pair| !pair.is_empty()).map(move |pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (lowercase(decode(name)), decode(value))
    })
}

#[cfg(test)]
mod tests;
