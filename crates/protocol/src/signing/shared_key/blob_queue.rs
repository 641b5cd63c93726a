//! The string that a request to queues and blobs signs: the method, eleven standard headers, all `x-ms-` headers, the path
//! and the whole query (spec: queue-operations 7.1, blob-operations 8.1).

use std::borrow::Cow;
use std::collections::BTreeMap;

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
const LITE: [&str; 3] = ["content-md5", "content-type", "date"];
const SIGNED_PREFIX: &str = "x-ms-";
/// The first version in which a length of zero is signed as empty.
const EMPTY_LENGTH: &str = "2015-02-21";

impl BlobQueueRequest<'_> {
    /// The string as the service defines it.
    pub fn string_to_sign(&self, scheme: Scheme) -> String {
        self.string(scheme, Order::OfWords, Plus::Stays)
    }

    /// All strings that a client may have signed, the service's first: some clients sort headers by bytes, and some read a
    /// `+` in the query as a space.
    pub fn strings_to_sign(&self, scheme: Scheme) -> impl Iterator<Item = String> {
        let ways = [
            (Order::OfWords, Plus::Stays),
            (Order::OfBytes, Plus::Stays),
            (Order::OfWords, Plus::IsSpace),
            (Order::OfBytes, Plus::IsSpace),
        ];
        // For nearly every request all of them are equal, so only the first is made.
        let differs = |(order, plus): &(Order, Plus)| {
            (*plus == Plus::Stays || self.query.contains('+'))
                && (*order == Order::OfWords || !self.signed_headers(Order::OfWords).is_sorted())
        };
        ways.into_iter().filter(differs).map(move |(order, plus)| self.string(scheme, order, plus))
    }

    fn string(&self, scheme: Scheme, order: Order, plus: Plus) -> String {
        let standard: &[&str] = match scheme {
            Scheme::SharedKey => &STANDARD,
            Scheme::SharedKeyLite => &LITE,
        };
        let mut string = format!("{}\n", self.method);
        for name in standard {
            string.push_str(self.standard(name));
            string.push('\n');
        }
        for (name, value) in self.signed_headers(order) {
            string.extend([name.as_str(), ":", &value, "\n"]);
        }
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

    /// The value of a standard header in the string.
    fn standard(&self, name: &str) -> &str {
        match (name, self.header(name).unwrap_or_default()) {
            ("date", _) if self.header(names::X_MS_DATE).is_some() => "",
            ("content-length", "0") if !self.signs_zero_length() => "",
            (_, value) => value,
        }
    }

    fn signs_zero_length(&self) -> bool {
        let version = self.header(names::X_MS_VERSION).and_then(Version::parse);
        version.is_some_and(|version| version.as_str() < EMPTY_LENGTH)
    }

    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    }

    /// All `x-ms-` headers, names in lower case. The values of one name are joined.
    fn signed_headers(&self, order: Order) -> Vec<(String, String)> {
        let named = self.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.trim()));
        let mut signed: Vec<(String, &str)> =
            named.filter(|(name, _)| name.starts_with(SIGNED_PREFIX)).collect();
        // A stable sort: the values of a name keep the order in which they were sent.
        signed.sort_by(|(a, _), (b, _)| match order {
            Order::OfWords => header_order::compare(a, b),
            Order::OfBytes => a.cmp(b),
        });
        let joined = signed.chunk_by(|(a, _), (b, _)| a == b).map(|same| {
            let values: Vec<&str> = same.iter().map(|(_, value)| *value).collect();
            (same[0].0.clone(), values.join(","))
        });
        joined.collect()
    }

    fn push_query(&self, string: &mut String, plus: Plus) {
        let mut by_name: BTreeMap<String, Vec<Cow<'_, str>>> = BTreeMap::new();
        for (name, value) in options(self.query, plus) {
            by_name.entry(name).or_default().push(value);
        }
        for (name, mut values) in by_name {
            values.sort();
            string.extend(["\n", &name, ":", &values.join(",")]);
        }
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
fn options(query: &str, plus: Plus) -> impl Iterator<Item = (String, Cow<'_, str>)> {
    let decode = move |text| match plus {
        Plus::Stays => percent_decode_str(text).decode_utf8_lossy(),
        Plus::IsSpace => {
            Cow::Owned(percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned())
        }
    };
    query.split('&').filter(|pair| !pair.is_empty()).map(move |pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name).to_lowercase(), decode(value))
    })
}

#[cfg(test)]
mod tests;
