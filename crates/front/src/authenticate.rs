//! Verifies who signed a request. The client gets the service's refusal; the operator's log gets the exact reason.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use common::Version;
use common::{Refusal, ServiceKind, limits};
use http::header::{AUTHORIZATION, CONTENT_TYPE, DATE};
use http::{HeaderMap, HeaderName, Method, Uri};
use protocol::QueryString;
use protocol::names;
use protocol::signing::sas::{Sas, SasFormatError};
use protocol::signing::shared_key::{Authorization, BlobQueueRequest, Scheme, SignedRequest};

use crate::access::{Denial, Roles};
use crate::account::Account;
use crate::address::Site;
use crate::bearer::{self, Bearer, Identity};
use crate::delegation::{self, Rights};
use crate::headers::{CONTENT_MD5, Header, X_MS_DATE, header};

/// What queues and blobs tell a caller whose request has no date.
const NO_DATE: &str = "Request date header not specified";

/// The parts of a request that authentication reads.
#[derive(Debug)]
pub struct Evidence<'a> {
    pub method: &'a Method,
    /// As received: percent-encoded, with the account.
    pub target: &'a Uri,
    pub query: &'a QueryString,
    pub headers: &'a HeaderMap,
    pub site: &'a Site,
    pub version: Version,
    pub https: bool,
}

/// The time, and whether the date of a signed request is compared with it.
#[derive(Clone, Copy, Debug)]
pub struct ClockCheck {
    pub now: SystemTime,
    pub is_checked: bool,
}

/// The credential of a request whose signature is right.
#[derive(Debug, PartialEq, Eq)]
pub enum VerifiedCredential {
    /// The owner of the account signed this request.
    Owner,
    /// The owner of the account signed this token, or a user with a delegation key. `sas::admit` decides whether it is
    /// valid now.
    Token(Box<Sas>, Option<Rights>),
    /// A bearer token of the trusted issuer, with these roles.
    Roles(Roles, Box<Identity>),
}

/// Checks the signature with each of the account's keys, then the date of the request. With an Authorization header, a
/// token in the query is ignored.
pub fn verify(
    evidence: &Evidence<'_>,
    account: &Account,
    bearer: &Bearer,
    clock: ClockCheck,
    token: impl FnOnce() -> Result<Option<(Sas, String)>, SasFormatError>,
) -> Result<VerifiedCredential, Denial> {
    let sent = header(evidence.headers, AUTHORIZATION);
    if matches!(sent, Header::Absent | Header::Text("")) {
        let (sas, signature) =
            token().map_err(|error| refuse_format(&error))?.ok_or_else(|| anonymous(evidence))?;
        return verify_token(account, bearer, sas, &signature);
    }
    // Every scheme is ASCII, so a header that is not has none.
    let value = sent.if_readable().unwrap_or_default();
    let Some(authorization) = Authorization::parse(value) else {
        let scheme = value.split_whitespace().next().unwrap_or_default();
        if scheme.eq_ignore_ascii_case("bearer") {
            return verify_bearer(evidence, value, account, bearer, clock.now);
        }
        let why = "the Authorization header is not of the form 'SharedKey account:signature'".to_owned();
        return Err(Denial::new(Refusal::AuthenticationInfoMalformed, why));
    };
    if authorization.account != account.name.as_str() {
        let why =
            format!("signed for account {:?}, but addressed to {}", authorization.account, account.name);
        return Err(Denial::failed(why));
    }
    let date = match signed(evidence.headers, &X_MS_DATE)? {
        Some(date) => Some(date),
        None => signed(evidence.headers, &DATE)?,
    };
    let no_date = || Denial::failed("neither x-ms-date nor Date was sent").telling(NO_DATE);
    let date = date.ok_or_else(no_date)?;

    let signature = authorization.signature;
    let is_right = |string: &str| account.keys.iter().any(|key| key.verifies(string, signature));
    if let Some(string) = unlike_all_strings(evidence, authorization.scheme, date, is_right)? {
        let why = format!("the signature is not that of {string:?} with any of the account's keys");
        return Err(Denial::failed(why).telling(format!(
            "The MAC signature found in the HTTP request '{signature}' is not the same as any computed signature. Server used following string to sign: '{string}'."
        )));
    }
    if clock.is_checked {
        check_date(date, clock.now)?;
    }
    Ok(VerifiedCredential::Owner)
}

fn verify_bearer(
    evidence: &Evidence<'_>,
    value: &str,
    account: &Account,
    bearer: &Bearer,
    now: SystemTime,
) -> Result<VerifiedCredential, Denial> {
    let mut words = value.split_whitespace().skip(1);
    let (Some(token), None) = (words.next(), words.next()) else {
        let why = "the Authorization header is not of the form 'Bearer token'".to_owned();
        return Err(Denial::new(Refusal::AuthenticationInfoMalformed, why));
    };
    let Some(trust) = &bearer.trust else {
        return Err(bearer::not_accepted_here(evidence.site.service, evidence.version, evidence.https));
    };
    trust
        .admit(token, (evidence.site.service, &account.name), evidence.version, evidence.https, now)
        .map(|(roles, identity)| VerifiedCredential::Roles(roles, Box::new(identity)))
}

/// A token in a query: of the request itself, or of the source that it copies from.
pub fn verify_token(
    account: &Account,
    bearer: &Bearer,
    sas: Sas,
    signature: &str,
) -> Result<VerifiedCredential, Denial> {
    let string = sas.string_to_sign(account.name.as_str());
    let delegated = match sas.delegation() {
        None if account.keys.iter().any(|key| key.verifies(&string, signature)) => None,
        None => return Err(unlike(&string, "any of the account's keys")),
        // The service's own tokens alone are known to be right, and only where users can sign in.
        Some(_) if bearer.trust.is_none() || !matches!(sas, Sas::Blob(_)) => {
            return Err(Denial::failed(
                "the token is signed with a user delegation key; this server gives out none for it",
            ));
        }
        Some(user) => {
            let rights = delegation::verify(account, user, &string, signature)?;
            Some(rights.ok_or_else(|| unlike(&string, "the user delegation key that it names"))?)
        }
    };
    Ok(VerifiedCredential::Token(Box::new(sas), delegated))
}

fn unlike(string: &str, keys: &str) -> Denial {
    let why = format!("sig is not the signature of {string:?} with {keys}");
    let detail = format!("Signature did not match. String to sign used was {string}");
    Denial::failed(why).telling(detail)
}

/// What a token for another kind of resource is told. The slip is the service's.
pub const WRONG_LEVEL: &str = "The specified signed resource is not allowed for the this resource level";

/// What is no token. A token for another kind of resource is told so.
pub fn refuse_format(error: &SasFormatError) -> Denial {
    let denial = Denial::failed(error.to_string());
    match error {
        SasFormatError::Level(_) => denial.telling(WRONG_LEVEL),
        _ => denial,
    }
}

fn anonymous(evidence: &Evidence<'_>) -> Denial {
    let why = "no Authorization header was sent, nor a shared access signature".to_owned();
    let refusal = match evidence.site.service {
        service if service.sends_challenge(evidence.version) => Refusal::NoAuthenticationInformation,
        ServiceKind::Table => Refusal::AuthenticationFailed,
        // Spec: queue-operations 7.1, blob-operations 8.1.
        ServiceKind::Blob | ServiceKind::Queue => Refusal::ResourceNotFound,
    };
    Denial::new(refusal, why)
}

/// `None` if the signature is right for one of the strings that a client may have signed; otherwise the first of them, which is
/// the service's own. At a path-style secondary, some clients sign the path with its suffix, and some without. Almost every
/// client has signed the first, so the others are made only if that is not right.
fn unlike_all_strings(
    evidence: &Evidence<'_>,
    scheme: Scheme,
    date: &str,
    is_right: impl Fn(&str) -> bool,
) -> Result<Option<String>, Denial> {
    let path = evidence.target.path();
    let Some(first) = unlike_strings_of_path(evidence, scheme, date, path, &is_right)? else {
        return Ok(None);
    };
    let account = &evidence.site.account;
    let behind = |prefix: String| path.strip_prefix(&prefix);
    if evidence.site.secondary
        && let Some(rest) = behind(format!("/{account}{}", names::SECONDARY_SUFFIX))
        && unlike_strings_of_path(evidence, scheme, date, &format!("/{account}{rest}"), is_right)?.is_none()
    {
        return Ok(None);
    }
    Ok(Some(first))
}

/// The same for one path, in the form of the service.
fn unlike_strings_of_path(
    evidence: &Evidence<'_>,
    scheme: Scheme,
    date: &str,
    path: &str,
    is_right: impl Fn(&str) -> bool,
) -> Result<Option<String>, Denial> {
    let (method, account) = (evidence.method.as_str(), evidence.site.account.as_str());
    match evidence.site.service {
        ServiceKind::Table => {
            let request = SignedRequest {
                method,
                content_md5: signed(evidence.headers, &CONTENT_MD5)?.unwrap_or_default(),
                content_type: signed(evidence.headers, &CONTENT_TYPE)?.unwrap_or_default(),
                date,
                account,
                path,
                comp: evidence.query.get_ignoring_case(names::COMP),
            };
            Ok(Some(request.string_to_sign(scheme)).filter(|string| !is_right(string)))
        }
        ServiceKind::Blob | ServiceKind::Queue => {
            // Any header may be signed, and every value of one that is repeated, so all must be readable.
            let mut headers = Vec::with_capacity(evidence.headers.len());
            for (name, value) in evidence.headers {
                headers.push((name.as_str(), value.to_str().map_err(|_| unreadable(name))?));
            }
            let query = evidence.target.query().unwrap_or_default();
            let request = BlobQueueRequest { method, account, path, query, headers: &headers };
            let mut first = None;
            for string in request.strings_to_sign(scheme) {
                if is_right(&string) {
                    return Ok(None);
                }
                first.get_or_insert(string);
            }
            Ok(first)
        }
    }
}

/// A header that the signature covers. An unreadable one is refused: it must not count as absent.
fn signed<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Denial> {
    header(headers, name).required_readable(()).map_err(|()| unreadable(name))
}

fn unreadable(name: &HeaderName) -> Denial {
    Denial::failed(format!("the header {name} is not ASCII text"))
}

/// How long a date is in the form that all clients send.
const DATE_BYTES: usize = 29;

thread_local! {
    /// The last date that this thread read. All requests of a second have the same.
    static LAST_DATE: Cell<Option<([u8; DATE_BYTES], SystemTime)>> = const { Cell::new(None) };
}

fn parse_date(text: &str) -> Option<SystemTime> {
    let bytes: Option<[u8; DATE_BYTES]> = text.as_bytes().try_into().ok();
    match LAST_DATE.get() {
        Some((last, time)) if bytes == Some(last) => Some(time),
        _ => {
            let time = httpdate::parse_http_date(text).ok()?;
            LAST_DATE.set(bytes.map(|bytes| (bytes, time)));
            Some(time)
        }
    }
}

fn check_date(date: &str, now: SystemTime) -> Result<(), Denial> {
    let signed =
        parse_date(date).ok_or_else(|| Denial::failed(format!("the date {date:?} is not an HTTP date")))?;
    let (skew, side) = match now.duration_since(signed) {
        Ok(age) => (age, "behind"),
        Err(ahead) => (ahead.duration(), "ahead of"),
    };
    if skew > limits::CLOCK_SKEW_MAX + Duration::from_secs(1) {
        let why = format!(
            "the request's date {date:?} is {} s {side} this server's clock; at most {} s are allowed",
            skew.as_secs(),
            limits::CLOCK_SKEW_MAX.as_secs()
        );
        return Err(Denial::failed(why).telling(format!("Request date header too old: '{date}'")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Accounts, DEVELOPMENT_KEY};
    use crate::address::Address;
    use protocol::signing::AccountKey;

    const DATE: &str = "Fri, 15 Nov 2024 12:00:00 GMT";
    const SECOND_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    /// Signs a GET of the account's tables, changes the headers, and compares the outcome.
    fn check(key: &str, path: &str, at_seconds: i64, change: impl Fn(&mut HeaderMap), expected: &str) {
        let account = Account::parse(&format!("devstoreaccount1:{DEVELOPMENT_KEY}:{SECOND_KEY}")).unwrap();
        let accounts = Accounts::new([account.clone()]);
        let string = format!("{DATE}\n/devstoreaccount1{path}");
        let signature = AccountKey::parse(key).unwrap().sign(&string);
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-date", DATE.parse().unwrap());
        headers
            .insert("authorization", format!("SharedKeyLite devstoreaccount1:{signature}").parse().unwrap());
        change(&mut headers);
        let site =
            Address::find("http", "127.0.0.1", path, &accounts, (ServiceKind::Table, &[ServiceKind::Table]))
                .unwrap()
                .site;
        let query = QueryString::default();
        let bearer = Bearer { tenant: "common".to_owned(), trust: None };
        let evidence = Evidence {
            method: &Method::GET,
            target: &path.parse().unwrap(),
            query: &query,
            headers: &headers,
            site: &site,
            version: Version::DEFAULT,
            https: false,
        };
        let sent = httpdate::parse_http_date(DATE).unwrap();
        let now = if at_seconds >= 0 {
            sent + Duration::from_secs(at_seconds.unsigned_abs())
        } else {
            sent - Duration::from_secs(at_seconds.unsigned_abs())
        };
        let clock = ClockCheck { now, is_checked: true };
        let shown = match verify(&evidence, &account, &bearer, clock, || Sas::read(&query)) {
            Ok(_) => "verified".to_owned(),
            Err(denied) => format!("{}: {}", denied.refusal.code(ServiceKind::Table), denied.why),
        };
        assert!(!shown.contains(key), "a key must never be shown");
        assert!(shown.starts_with(expected), "{shown}");
    }

    const TABLES: &str = "/devstoreaccount1/Tables";

    #[test]
    fn either_key_signs() {
        check(DEVELOPMENT_KEY, TABLES, 0, |_| (), "verified");
        check(SECOND_KEY, TABLES, 0, |_| (), "verified");
        check(
            "AAAA",
            TABLES,
            0,
            |_| (),
            "AuthenticationFailed: the signature is not that of \"Fri, 15 Nov 2024 12:00:00 GMT\\n/devstoreaccount1/devstoreaccount1/Tables\"",
        );
        check(DEVELOPMENT_KEY, "/devstoreaccount1-secondary/Tables", 0, |_| (), "verified");
    }

    /// Signs a GET in the form of queues and blobs, and compares what the service makes of it.
    fn check_form(service: ServiceKind, expected: &str) {
        let account = Account::development();
        let accounts = Accounts::new([account.clone()]);
        let path = "/devstoreaccount1/toys";
        let string =
            format!("GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{DATE}\n/devstoreaccount1{path}\ncomp:list");
        let signature = account.keys[0].sign(&string);
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-date", DATE.parse().unwrap());
        headers.insert("authorization", format!("SharedKey devstoreaccount1:{signature}").parse().unwrap());
        let site = Address::find("http", "127.0.0.1", path, &accounts, (service, &[service])).unwrap().site;
        let query = QueryString::parse("comp=list").unwrap();
        let bearer = Bearer { tenant: "common".to_owned(), trust: None };
        let evidence = Evidence {
            method: &Method::GET,
            target: &format!("{path}?comp=list").parse().unwrap(),
            query: &query,
            headers: &headers,
            site: &site,
            version: Version::DEFAULT,
            https: false,
        };
        let clock = ClockCheck { now: httpdate::parse_http_date(DATE).unwrap(), is_checked: true };
        let verified = verify(&evidence, &account, &bearer, clock, || Ok(None));
        let shown = verified.map_or_else(|denied| denied.why, |_| "verified".to_owned());
        assert!(shown.starts_with(expected), "{service}: {shown}");
    }

    #[test]
    fn each_service_has_its_form_of_signature() {
        check_form(ServiceKind::Queue, "verified");
        check_form(ServiceKind::Blob, "verified");
        check_form(ServiceKind::Table, "the signature is not that of");
    }

    #[test]
    fn other_strings_are_made_only_if_the_first_is_not_right() {
        let check = |path: &str, right: &str, expected: (Option<&str>, usize)| {
            let accounts = Accounts::new([Account::development()]);
            let service = (ServiceKind::Queue, &[ServiceKind::Queue][..]);
            let target: Uri = path.parse().unwrap();
            let site = Address::find("http", "127.0.0.1", target.path(), &accounts, service).unwrap().site;
            let evidence = Evidence {
                method: &Method::GET,
                target: &target,
                query: &QueryString::default(),
                headers: &HeaderMap::new(),
                site: &site,
                version: Version::DEFAULT,
                https: false,
            };
            let asked = Cell::new(0);
            let is_right = |string: &str| {
                asked.set(asked.get() + 1);
                string.ends_with(right)
            };
            let first = unlike_all_strings(&evidence, Scheme::SharedKey, DATE, is_right).unwrap();
            let last_line = first.as_deref().and_then(|string| string.lines().last());
            assert_eq!((last_line, asked.get()), expected, "{path} {right}");
        };
        let plus = "/devstoreaccount1/q/messages?popreceipt=a+b";
        check(plus, "popreceipt:a+b", (None, 1));
        check(plus, "popreceipt:a b", (None, 2));
        check(plus, "popreceipt:c", (Some("popreceipt:a+b"), 2));
        let secondary = "/devstoreaccount1-secondary/q/messages";
        check(secondary, "/devstoreaccount1-secondary/q/messages", (None, 1));
        check(secondary, "/devstoreaccount1/q/messages", (None, 2));
        check(secondary, "/other", (Some("/devstoreaccount1/devstoreaccount1-secondary/q/messages"), 2));
    }

    #[test]
    fn old_and_future_requests_are_refused() {
        check(DEVELOPMENT_KEY, TABLES, 15 * 60, |_| (), "verified");
        check(DEVELOPMENT_KEY, TABLES, -15 * 60, |_| (), "verified");
        check(
            DEVELOPMENT_KEY,
            TABLES,
            1000,
            |_| (),
            "AuthenticationFailed: the request's date \"Fri, 15 Nov 2024 12:00:00 GMT\" is 1000 s behind",
        );
        check(
            DEVELOPMENT_KEY,
            TABLES,
            -1000,
            |_| (),
            "AuthenticationFailed: the request's date \"Fri, 15 Nov 2024 12:00:00 GMT\" is 1000 s ahead of",
        );
    }

    #[test]
    fn each_defect_is_named() {
        let without = |name: &'static str| move |headers: &mut HeaderMap| drop(headers.remove(name));
        let with = |name: &'static str, value: &'static str| {
            move |headers: &mut HeaderMap| drop(headers.insert(name, HeaderValue::from_static(value)))
        };
        check(
            DEVELOPMENT_KEY,
            TABLES,
            0,
            without("authorization"),
            "AuthenticationFailed: no Authorization header",
        );
        check(
            DEVELOPMENT_KEY,
            TABLES,
            0,
            without("x-ms-date"),
            "AuthenticationFailed: neither x-ms-date nor Date",
        );
        check(DEVELOPMENT_KEY, TABLES, 0, with("authorization", "SharedKey"), "InvalidAuthenticationInfo");
        let foreign = |headers: &mut HeaderMap| {
            headers.insert("authorization", HeaderValue::from_bytes("Schlüssel".as_bytes()).unwrap());
        };
        check(DEVELOPMENT_KEY, TABLES, 0, foreign, "InvalidAuthenticationInfo");
        check(
            DEVELOPMENT_KEY,
            TABLES,
            0,
            with("authorization", "SharedKey a:b"),
            "AuthenticationFailed: signed for account \"a\"",
        );
        check(
            DEVELOPMENT_KEY,
            TABLES,
            0,
            with("authorization", "Bearer a.b.c"),
            "AuthenticationFailed: bearer tokens",
        );
        check(
            DEVELOPMENT_KEY,
            TABLES,
            0,
            with("x-ms-date", "Fri, 15 Nov 2024 12:00:01 GMT"),
            "AuthenticationFailed: the signature",
        );
    }

    use http::HeaderValue;
}
