//! `If-Match` and `If-None-Match`, read once per operation (spec: table-operations 4.2).
//!
//! Permissions, logs and the write itself use this one result: an update that was permitted because it has a condition
//! can't lose it later.

use http::HeaderName;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use model::{IfMatch, Refusal};
use wire::{TableVersion, Version};

use super::Operation;
use front::headers::Headers;

/// What must be true of the stored entity, by the request's headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// No condition: an update may insert.
    None,
    Match(IfMatch),
    /// The headers are not valid for this operation, which is refused.
    Refused(Refusal),
}

impl Precondition {
    pub fn read(operation: &Operation, headers: Headers<'_>, version: Version) -> Self {
        let read = match operation {
            Operation::PutEntity(..) => of_update(headers, version, "PUT"),
            Operation::MergeEntity(..) => of_update(headers, version, "MERGE"),
            Operation::DeleteEntity(..) => of_delete(headers),
            _ => return Self::None,
        };
        match read {
            Ok(None) => Self::None,
            Ok(Some(if_match)) => Self::Match(if_match),
            Err(refusal) => Self::Refused(refusal),
        }
    }

    /// Whether an update may insert.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// For an update: `None` is an upsert.
    pub fn if_any(&self) -> Result<Option<&IfMatch>, Refusal> {
        match self {
            Self::None => Ok(None),
            Self::Match(if_match) => Ok(Some(if_match)),
            Self::Refused(refusal) => Err(refusal.clone()),
        }
    }

    /// For a delete, which must have a condition.
    pub fn required(&self) -> Result<&IfMatch, Refusal> {
        self.if_any()?.ok_or(common::Refusal::InputNotValid.into())
    }
}

/// The service treats an empty `If-Match` like none.
fn of_update(headers: Headers<'_>, version: Version, verb: &'static str) -> Result<Option<IfMatch>, Refusal> {
    let condition = sent(headers, verb)?.filter(|text| !text.is_empty());
    if condition.is_none() && !version.has_upsert() {
        return Err(common::Refusal::InputNotValid.into());
    }
    condition.map(|text| IfMatch::parse(&text)).transpose()
}

/// An empty `If-Match` is refused like a missing one.
fn of_delete(headers: Headers<'_>) -> Result<Option<IfMatch>, Refusal> {
    let condition = sent(headers, "DELETE")?.ok_or(common::Refusal::InputNotValid)?;
    IfMatch::parse(&condition).map(Some)
}

/// The text of `If-Match`, which may be empty. Several headers count as one with a list.
fn sent(headers: Headers<'_>, verb: &'static str) -> Result<Option<String>, Refusal> {
    let if_match = joined(headers, &IF_MATCH)?;
    if headers.get(&IF_NONE_MATCH).is_sent() {
        let both = if_match.is_some();
        return Err(if both { Refusal::BothMatchHeaders } else { Refusal::IfNoneMatch { verb } });
    }
    Ok(if_match)
}

fn joined(headers: Headers<'_>, name: &HeaderName) -> Result<Option<String>, Refusal> {
    let mut joined: Option<String> = None;
    for value in headers.texts(name) {
        let value = value.required_readable(common::Refusal::InputNotValid)?.unwrap_or_default().trim();
        joined = Some(joined.map_or_else(|| value.to_owned(), |before| before + ", " + value));
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;
    use wire::url::Resource;

    fn check(method: &str, version: &str, sent: &[(&str, &str)], expected: &str) {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let resource = Resource::parse("/abc(PartitionKey='p',RowKey='r')").unwrap();
        let operation = crate::route::resolve(&method, resource, "acct").unwrap();
        let condition = Precondition::read(&operation, Headers::Part(sent), Version::parse(version).unwrap());
        let shown = match &condition {
            Precondition::None => "none".to_owned(),
            Precondition::Match(if_match) => format!("{if_match:?}"),
            Precondition::Refused(refusal) => refusal.to_string(),
        };
        assert_eq!(
            shown.split_whitespace().take(4).collect::<Vec<_>>().join(" "),
            expected,
            "{method} {sent:?}"
        );
    }

    #[test]
    fn absent_empty_and_unreadable_are_three_things() {
        let now = "2019-02-02";
        let one = |value| [("If-Match", value)];
        for method in ["PUT", "PATCH", "MERGE"] {
            check(method, now, &[], "none");
            check(method, now, &one(""), "none");
            check(method, now, &one("  "), "none");
            check(method, now, &one("é"), "One of the request");
            check(method, now, &one("*"), "Any");
            check(method, now, &one("W/\"x\""), "Foreign");
            check(method, now, &one("x"), "The etag value 'x'");
            check(method, now, &[("If-Match", "*"), ("if-match", "*")], "The etag value '*,");
            check(method, now, &[("If-Match", "*"), ("if-match", "é")], "One of the request");
            check(method, "2009-09-19", &[], "One of the request");
            check(method, now, &[("If-None-Match", "*")], "If-None-Match HTTP header cannot");
            check(method, now, &[("If-None-Match", "é")], "If-None-Match HTTP header cannot");
            check(
                method,
                now,
                &[("If-None-Match", "*"), ("If-Match", "*")],
                "Both If-Match and If-None-Match",
            );
        }
        check("DELETE", now, &[], "One of the request");
        check("DELETE", now, &one(""), "One of the request");
        check("DELETE", now, &one("é"), "One of the request");
        check("DELETE", now, &one("*"), "Any");
        check("GET", now, &one("é"), "none");
    }
}
