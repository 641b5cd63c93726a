//! Requests of a session to a service of this server: signed with what the session signed in with, and given to the front's
//! ordinary pipeline. The services check, limit, throttle and log them like any other request.

use common::ServiceKind;
use front::{Arrival, LocalServices, RequestBody};
use http::header::{
    ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, HeaderName, IF_MATCH, IF_NONE_MATCH,
    TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Uri};
use protocol::names;

use crate::endpoint::ServiceEndpoint;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::sessions::{Credential, Member};
use crate::signer;
use crate::stored_content;

/// The version of the protocol, if the request names none.
const VERSION: &str = "2019-02-02";
const SERVICE_PATH: &str = "/api/forward/";

/// Passed on, beside those that begin with `PREFIXES`.
const PASSED: [HeaderName; 8] = [
    ACCEPT,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    EXPECT,
    IF_MATCH,
    IF_NONE_MATCH,
    TRANSFER_ENCODING,
    HeaderName::from_static("prefer"),
];
const PASSED_TOO: [&str; 4] = ["dataserviceversion", "maxdataserviceversion", "x-http-method", "content-md5"];
const PREFIXES: [&str; 2] = ["x-ms-", "x-partita-"];
/// Ours, not the service's.
const OWN: [&str; 2] = [names::X_MS_DATE, "x-partita-csrf"];

/// What a path under `/api/forward/` asks for: a service, and the path after the account, with its slash.
pub(crate) fn target(path: &str) -> Option<(ServiceKind, &str)> {
    let rest = path.strip_prefix(SERVICE_PATH)?;
    let (service, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let service = ServiceKind::ALL.into_iter().find(|kind| kind.name() == service)?;
    Some((service, if path.is_empty() { "/" } else { path }))
}

/// A request to a service of this server.
#[derive(Debug)]
pub(crate) struct ServiceCall<'a> {
    pub service: ServiceKind,
    pub method: Method,
    /// Follows the account and begins with a slash.
    pub path: &'a str,
    pub query: Option<&'a str>,
    pub headers: HeaderMap,
}

/// The headers of a session's request that its service gets to see.
pub(crate) fn passed_headers(sent: &HeaderMap, method: &Method) -> HeaderMap {
    let mut passed = HeaderMap::with_capacity(sent.len());
    for (name, value) in sent {
        let text = name.as_str();
        let is_passed = PASSED.contains(name)
            || PASSED_TOO.contains(&text)
            || PREFIXES.iter().any(|prefix| text.starts_with(prefix));
        // Only a POST may stand for another method; anything else changed something without saying so.
        let is_tunnel = text == "x-http-method" && *method != Method::POST;
        if is_passed && !is_tunnel && !OWN.contains(&text) {
            passed.append(name.clone(), value.clone());
        }
    }
    passed
}

/// Has the service answer. `arrival` says where from; its head and body are replaced. A body that the service does not get
/// stays.
pub(crate) async fn call(
    services: &LocalServices,
    endpoints: &[ServiceEndpoint],
    member: &Member,
    call: ServiceCall<'_>,
    mut arrival: Arrival<'_>,
    body: &mut RequestBody,
) -> Result<Reply, Refusal> {
    let service = call.service;
    let endpoint =
        ServiceEndpoint::of(endpoints, service, arrival.scheme).ok_or(Refusal::NotServed(service))?;
    let mut head = service_head(call, member, endpoint)?;
    // They know how headers were spelled, which the names of metadata are read from.
    head.extensions = std::mem::take(&mut arrival.head.extensions);
    let body = std::mem::replace(body, RequestBody::none());
    let arrival = Arrival { scheme: endpoint.scheme, head, body, ..arrival };
    let mut reply = services.answer(service, arrival).await.ok_or(Refusal::NotServed(service))?;
    for name in [CONNECTION, TRANSFER_ENCODING, UPGRADE] {
        reply.headers_mut().remove(name);
    }
    if service == ServiceKind::Blob {
        stored_content::disarm(reply.headers_mut());
    }
    Ok(reply)
}

/// As a client of the service would send it.
fn service_head(call: ServiceCall<'_>, member: &Member, endpoint: ServiceEndpoint) -> Result<Parts, Refusal> {
    let ServiceCall { service, method, path, query, headers } = call;
    let token = match &member.credential {
        Credential::Owner(_) => None,
        Credential::Token(token) => Some(token.as_str()),
    };
    // An address literal, so that the account is always the first segment of the path.
    let mut target = format!("/{}{path}", member.account);
    let options = [query.filter(|query| !query.is_empty()), token];
    for (place, options) in options.into_iter().flatten().enumerate() {
        target.push(if place == 0 { '?' } else { '&' });
        target.push_str(options);
    }
    let target = Uri::try_from(target).map_err(|_| Refusal::BadTarget)?;
    let (mut head, ()) = http::Request::new(()).into_parts();
    head.method = method;
    head.uri = target;
    head.headers = headers;
    let host = HeaderValue::try_from(endpoint.address.to_string()).map_err(|_| Refusal::BadTarget)?;
    head.headers.insert(HOST, host);
    // A token has a version of its own.
    if let Credential::Owner(key) = &member.credential {
        head.headers.entry(names::X_MS_VERSION).or_insert(HeaderValue::from_static(VERSION));
        signer::sign(&mut head, service, &member.account, key)?;
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::AccountName;
    use protocol::signing::AccountKey;

    #[test]
    fn a_path_names_a_service_and_what_follows_the_account() {
        for (path, expected) in [
            ("/api/forward/table/Books()", Some((ServiceKind::Table, "/Books()"))),
            ("/api/forward/queue/jobs/messages", Some((ServiceKind::Queue, "/jobs/messages"))),
            ("/api/forward/table", Some((ServiceKind::Table, "/"))),
            ("/api/forward/table/", Some((ServiceKind::Table, "/"))),
            ("/api/forward/table//", Some((ServiceKind::Table, "//"))),
            ("/api/forward/health/live", None),
            ("/api/forward/", None),
            ("/api/forward/Table/Books", None),
            ("/api/forward/tables/Books", None),
        ] {
            assert_eq!(target(path), expected, "{path}");
        }
    }

    #[test]
    fn only_headers_that_the_services_know_are_passed_on() {
        let mut sent = HeaderMap::new();
        for (name, value) in [
            ("accept", "a"),
            ("content-length", "1"),
            ("x-ms-client-request-id", "b"),
            ("x-partita-explain", "1"),
            ("x-http-method", "MERGE"),
            ("cookie", "partita_session=secret"),
            ("authorization", "Bearer secret"),
            ("host", "evil.example"),
            ("origin", "http://evil.example"),
            ("x-ms-date", "yesterday"),
            ("x-partita-csrf", "secret"),
            ("x-forwarded-for", "1.2.3.4"),
            ("date", "yesterday"),
        ] {
            sent.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let names = |method| {
            let passed = passed_headers(&sent, &method);
            let mut names: Vec<String> = passed.keys().map(|name| name.as_str().to_owned()).collect();
            names.sort_unstable();
            names.join(" ")
        };
        let common = "accept content-length x-ms-client-request-id x-partita-explain";
        assert_eq!(names(Method::GET), common);
        assert_eq!(names(Method::POST), format!("accept content-length x-http-method {}", &common[22..]));
    }

    #[test]
    fn the_account_is_always_that_of_the_session() {
        let key = AccountKey::parse("AAAAAAAAAAAAAAAAAAAAAA==").unwrap();
        let endpoint = ServiceEndpoint {
            service: ServiceKind::Table,
            scheme: "http",
            address: "127.0.0.1:10002".parse().unwrap(),
        };
        let target = |credential, path: &str, query| {
            let member = Member { account: AccountName::parse("shop").unwrap(), credential };
            let headers = HeaderMap::new();
            let call = ServiceCall { service: ServiceKind::Table, method: Method::GET, path, query, headers };
            let head = service_head(call, &member, endpoint).unwrap();
            assert_eq!(head.headers[HOST], "127.0.0.1:10002");
            head.uri.to_string()
        };
        let owner = || Credential::Owner(key.clone());
        assert_eq!(target(owner(), "/Books()", Some("$top=1")), "/shop/Books()?$top=1");
        assert_eq!(target(owner(), "/../other/Books", None), "/shop/../other/Books");
        assert_eq!(target(owner(), "//other/Books", None), "/shop//other/Books");
        let token = || Credential::Token("sv=1&sig=2".to_owned());
        assert_eq!(target(token(), "/Books()", None), "/shop/Books()?sv=1&sig=2");
        assert_eq!(target(token(), "/Books()", Some("a=b")), "/shop/Books()?a=b&sv=1&sig=2");
        assert_eq!(target(token(), "/Books()", Some("")), "/shop/Books()?sv=1&sig=2");
    }
}
