//! A request as one line of Storage Analytics' log.
//!
//! Format 1.0, or 2.0 for a request with a bearer token, because only that format has fields for its identity.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use common::Version;
use common::{DateTime, limits};
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use percent_encoding::percent_decode_str;
use protocol::names;

use super::outcome::{AuthenticationType, Status};
use crate::bearer::Identity;
use crate::service::RefusalFacts;
use common::ServiceKind;

/// What a line is made of, except the two latencies.
#[derive(Debug)]
pub struct RequestFacts<'a> {
    pub started: DateTime,
    pub operation: &'static str,
    pub status: Status,
    pub refusal: Option<RefusalFacts>,
    pub authentication: AuthenticationType,
    pub identity: Option<&'a Identity>,
    pub account: &'a str,
    pub service: ServiceKind,
    pub scheme: &'a str,
    pub host: &'a str,
    /// The path after the account.
    pub path: &'a str,
    pub request_id: &'a str,
    pub peer: SocketAddr,
    pub version: Option<Version>,
    pub head: &'a Parts,
    pub request_head_bytes: u64,
    pub request_body_bytes: u64,
    pub response_status: u16,
    pub response_headers: &'a HeaderMap,
    pub response_head_bytes: u64,
    pub response_body_bytes: u64,
}

/// A line without its two latencies.
#[derive(Debug)]
pub struct Line {
    before: String,
    status: String,
    response_status: u16,
    after: Vec<String>,
}

/// The place among the fields after the latencies.
const RESPONSE_BODY_BYTES: usize = 13;

impl Line {
    pub fn new(facts: &RequestFacts<'_>) -> Self {
        let text = |headers: &HeaderMap, name: &str| {
            let value = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
            value.map(|value| quoted(&value)).unwrap_or_default()
        };
        let sent = |name: &str| text(&facts.head.headers, name);
        let version = if facts.identity.is_some() { "2.0" } else { "1.0" };
        let before = format!("{version};{};{}", facts.started.to_fixed_string(), facts.operation,);
        let requester =
            if facts.authentication == AuthenticationType::Authenticated { facts.account } else { "" };
        let query = facts.head.uri.query().map(|query| format!("?{}", without_signature(query)));
        let query = query.unwrap_or_default();
        let url = format!("{}://{}{}{query}", facts.scheme, facts.host, facts.head.uri.path());
        let object = format!("/{}/{}", facts.account, facts.path.trim_start_matches('/'));
        let client_id = facts.head.headers.get(names::X_MS_CLIENT_REQUEST_ID);
        let client_id = client_id.filter(|id| id.len() <= limits::CLIENT_REQUEST_ID_BYTES_MAX);
        let client_id = client_id.map(|id| quoted(&String::from_utf8_lossy(id.as_bytes())));
        let referer = facts.head.headers.get(http::header::REFERER);
        let referer = referer.map(|value| String::from_utf8_lossy(value.as_bytes()));
        let mut fields = vec![
            facts.authentication.log_name().to_owned(),
            requester.to_owned(),
            facts.account.to_owned(),
            facts.service.name().to_owned(),
            quoted(&url),
            quoted(&object),
            facts.request_id.to_owned(),
            "0".to_owned(),
            facts.peer.to_string(),
            facts.version.map(|version| version.to_string()).unwrap_or_default(),
            facts.request_head_bytes.to_string(),
            facts.request_body_bytes.to_string(),
            facts.response_head_bytes.to_string(),
            facts.response_body_bytes.to_string(),
            facts.request_body_bytes.to_string(),
            sent(names::CONTENT_MD5),
            String::new(),
            text(facts.response_headers, "etag"),
            String::new(),
            conditions(&facts.head.headers),
            sent("user-agent"),
            referer.map(|text| quoted(&without_signature(&text))).unwrap_or_default(),
            client_id.unwrap_or_default(),
        ];
        if let Some(identity) = facts.identity {
            fields.extend(
                [
                    &identity.object_id,
                    &identity.tenant_id,
                    &identity.application_id,
                    &identity.audience,
                    &identity.issuer,
                    &identity.user_principal_name,
                ]
                .map(|claim| quoted(claim)),
            );
            // A reserved field, and the details of role assignments, which this server does not have.
            fields.extend([String::new(), String::new()]);
        }
        Self { before, status: status(facts), response_status: facts.response_status, after: fields }
    }

    /// The client did not get the whole answer, but only so many bytes of its body.
    pub fn break_off(&mut self, authentication: AuthenticationType, body_bytes: u64) {
        self.status = format!("{}{}", authentication.prefix(), Status::NetworkError.name());
        self.after[RESPONSE_BODY_BYTES] = body_bytes.to_string();
    }

    pub fn finish(self, end_to_end: Duration, server: Duration) -> String {
        let Self { before: mut line, status, response_status, after } = self;
        // Writing to a String can't fail.
        let _ = write!(
            line,
            ";{status};{response_status};{};{};{}",
            end_to_end.as_millis(),
            server.as_millis(),
            after.join(";")
        );
        line
    }
}

/// The name of the status. Since 2017-04-17, an error of the client is named by its error code.
fn status(facts: &RequestFacts<'_>) -> String {
    let concrete = facts.version.is_some_and(Version::logs_error_codes);
    match (facts.status, facts.refusal) {
        (Status::ClientOtherError, Some(refusal)) if concrete => refusal.code.to_owned(),
        (status, _) => format!("{}{}", facts.authentication.prefix(), status.name()),
    }
}

fn conditions(headers: &HeaderMap) -> String {
    let names: [(&str, HeaderName); 4] = [
        ("If-Match", http::header::IF_MATCH),
        ("If-None-Match", http::header::IF_NONE_MATCH),
        ("If-Modified-Since", http::header::IF_MODIFIED_SINCE),
        ("If-Unmodified-Since", http::header::IF_UNMODIFIED_SINCE),
    ];
    let used: Vec<String> = names
        .iter()
        .filter_map(|(shown, name)| {
            let value = headers.get(name)?;
            Some(format!("{shown}={}", String::from_utf8_lossy(value.as_bytes())))
        })
        .collect();
    if used.is_empty() { String::new() } else { quoted(&used.join(",")) }
}

/// Replaces the signatures in a URL or a query: more people read a log than may use a token. Names are decoded first,
/// because `%73ig` is `sig` too.
///
/// A parameter begins after `?`, `&`, `;` or `#` and ends before `&` or `#`.
fn without_signature(text: &str) -> String {
    let is_signature = |name: &str| {
        let decoded = percent_decode_str(name).decode_utf8();
        decoded.is_ok_and(|name| name.eq_ignore_ascii_case("sig"))
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(['?', '&', ';', '#']).unwrap_or(rest.len());
        match rest[..end].split_once('=') {
            Some((name, _)) if is_signature(name) => {
                out.push_str(name);
                out.push_str("=XXXXX");
                rest = &rest[rest.find(['&', '#']).unwrap_or(rest.len())..];
            }
            _ => {
                out.push_str(&rest[..end]);
                rest = &rest[end..];
            }
        }
        // The separator before the next parameter is one byte.
        if !rest.is_empty() {
            out.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    out
}

/// In quotes. Characters that could end the field or the line are encoded.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            ';' => out.push_str("&#59;"),
            c if c.is_control() => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    #[test]
    fn signatures_are_struck_out_however_their_name_is_written() {
        let check = |query, expected| assert_eq!(without_signature(query), expected);
        check("sv=1&sig=secret%3D&timeout=5", "sv=1&sig=XXXXX&timeout=5");
        check("https://h/t?sv=1&sig=secret#sig=more", "https://h/t?sv=1&sig=XXXXX#sig=XXXXX");
        check("https://h/t;sig=a;b?c&d=e?sig=f", "https://h/t;sig=XXXXX&d=e?sig=XXXXX");
        check("SIG=secret&%73ig=secret&s%69%67=a=b", "SIG=XXXXX&%73ig=XXXXX&s%69%67=XXXXX");
        check("signed=1&sig&%ff=1", "signed=1&sig&%ff=1");
    }

    fn line(change: impl FnOnce(&mut RequestFacts<'_>)) -> Vec<String> {
        let (head, ()) = Request::builder()
            .method("PUT")
            .uri("/acct/Books(PartitionKey='a;b',RowKey='r')?sv=2019-02-02&sig=secret%3D&timeout=5")
            .header("if-match", "W/\"datetime'x'\"")
            .header("user-agent", "tester; \"quoted\"\u{1}".replace('\u{1}', ""))
            .header("x-ms-client-request-id", "mine")
            .body(())
            .unwrap()
            .into_parts();
        let mut response_headers = HeaderMap::new();
        response_headers.insert("etag", "W/\"1\"".parse().unwrap());
        let mut facts = RequestFacts {
            started: DateTime::parse("2026-01-02T03:04:05.6789012Z").unwrap(),
            operation: "UpdateEntity",
            status: Status::Success,
            refusal: None,
            authentication: AuthenticationType::Sas,
            identity: None,
            account: "acct",
            service: ServiceKind::Table,
            scheme: "http",
            host: "127.0.0.1:10002",
            path: "/Books(PartitionKey='a;b',RowKey='r')",
            request_id: "id",
            peer: "127.0.0.1:5".parse().unwrap(),
            version: Version::parse("2019-02-02"),
            head: &head,
            request_head_bytes: 1,
            request_body_bytes: 2,
            response_status: 204,
            response_headers: &response_headers,
            response_head_bytes: 3,
            response_body_bytes: 4,
        };
        change(&mut facts);
        let line = Line::new(&facts).finish(Duration::from_millis(9), Duration::from_millis(8));
        assert!(!line.contains('\n') && !line.contains("secret"), "{line}");
        split(&line)
    }

    /// Splits at semicolons outside of quotes, as readers of such logs do.
    fn split(line: &str) -> Vec<String> {
        let (mut fields, mut inside) = (vec![String::new()], false);
        for c in line.chars() {
            inside ^= c == '"';
            match c {
                ';' if !inside => fields.push(String::new()),
                c => fields.last_mut().unwrap().push(c),
            }
        }
        fields
    }

    #[test]
    fn a_line_has_the_thirty_fields_of_format_1() {
        let expected = [
            "1.0",
            "2026-01-02T03:04:05.6789012Z",
            "UpdateEntity",
            "SASSuccess",
            "204",
            "9",
            "8",
            "SAS",
            "",
            "acct",
            "table",
            "\"http://127.0.0.1:10002/acct/Books(PartitionKey='a&#59;b',RowKey='r')?sv=2019-02-02&amp;sig=XXXXX&amp;timeout=5\"",
            "\"/acct/Books(PartitionKey='a&#59;b',RowKey='r')\"",
            "id",
            "0",
            "127.0.0.1:5",
            "2019-02-02",
            "1",
            "2",
            "3",
            "4",
            "2",
            "",
            "",
            "\"W/&quot;1&quot;\"",
            "",
            "\"If-Match=W/&quot;datetime'x'&quot;\"",
            "\"tester&#59; &quot;quoted&quot;\"",
            "",
            "\"mine\"",
        ];
        assert_eq!(line(|_| {}), expected);
    }

    #[test]
    fn who_asked_and_how_it_ended() {
        let owner = line(|facts| facts.authentication = AuthenticationType::Authenticated);
        assert_eq!(
            (owner[3].as_str(), owner[7].as_str(), owner[8].as_str()),
            ("Success", "authenticated", "acct")
        );
        let failed = |version: &'static str| {
            line(move |facts| {
                facts.status = Status::ClientOtherError;
                facts.refusal =
                    Some(RefusalFacts { status: 404, code: "ResourceNotFound", timed_out: false });
                facts.version = Version::parse(version);
            })
        };
        assert_eq!(failed("2019-02-02")[3], "ResourceNotFound");
        assert_eq!(failed("2015-12-11")[3], "SASClientOtherError");
    }

    #[test]
    fn a_bearer_is_named_in_format_2() {
        let identity: &'static Identity = Box::leak(Box::new(Identity {
            object_id: "o".into(),
            tenant_id: "t".into(),
            application_id: "a".into(),
            audience: "aud".into(),
            issuer: "iss".into(),
            user_principal_name: "u;p".into(),
        }));
        let fields = line(|facts| facts.identity = Some(identity));
        assert_eq!((fields[0].as_str(), fields.len()), ("2.0", 38));
        assert_eq!(fields[30..], ["\"o\"", "\"t\"", "\"a\"", "\"aud\"", "\"iss\"", "\"u&#59;p\"", "", ""]);
    }
}
