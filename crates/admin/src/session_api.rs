//! `/api/session`: sign in, who am I, sign out.

use std::time::{Duration, Instant};

use common::DateTime;
use front::sas::Caller;
use front::{Arrival, RequestBody};
use http::header::{CONTENT_TYPE, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Map, Value, json};

use crate::door::Admin;
use crate::endpoint::ServiceEndpoint;
use crate::refusal::Refusal;
use crate::reply::{self, Reply};
use crate::sessions::{Credential, FoundSession};
use crate::sign_in::{Desk, SignIn, development_is_open};
use crate::who::{SESSION_COOKIE, Visitor};

pub(crate) async fn sign_in(
    admin: &Admin,
    arrival: &Arrival<'_>,
    host: &str,
    visitor: &Visitor,
    body: &mut RequestBody,
) -> Result<Reply, Refusal> {
    require_json(&arrival.head.headers)?;
    let body = admin.read_body(arrival, body).await?;
    let sign_in: SignIn = serde_json::from_slice(&body).map_err(|error| Refusal::NotJson(place(&error)))?;
    let (peer, now) = (arrival.peer.ip(), Instant::now());
    if !admin.attempts.allows(peer, now) {
        return Err(Refusal::TooManyFailures);
    }
    let accounts = admin.services.front().accounts.current();
    let caller = Caller { ip: peer, https: arrival.scheme == "https" };
    let session = match sign_in.check(Desk { accounts: &accounts, proof: &admin.proof, caller }) {
        Ok(session) => session,
        Err(refusal) => {
            if matches!(refusal, Refusal::WrongKey | Refusal::WrongSas(_) | Refusal::WrongToken) {
                admin.attempts.failed(peer, now);
                tracing::warn!(%peer, code = refusal.code(), "a sign-in to the console was refused");
            }
            return Err(refusal);
        }
    };
    // The session that a new one replaces.
    if let Some(old) = &visitor.session {
        admin.sessions.end(old.hash);
    }
    let (id, begun) = admin.sessions.begin(session, now);
    let mut reply = reply::ok(&shown(admin, &begun, arrival.scheme, host, visitor.admin));
    let secure = if arrival.scheme == "https" { "; Secure" } else { "" };
    set_cookie(
        reply.headers_mut(),
        &format!("{SESSION_COOKIE}={id}; HttpOnly; SameSite=Strict; Path=/{secure}"),
    );
    Ok(reply)
}

pub(crate) fn current(admin: &Admin, scheme: &str, host: &str, visitor: &Visitor) -> Reply {
    match &visitor.session {
        Some(found) => reply::ok(&shown(admin, found, scheme, host, visitor.admin)),
        None => {
            let accounts = admin.services.front().accounts.current();
            let development = development_is_open(&accounts, &admin.proof);
            reply::refused_with(
                &Refusal::NoSession,
                json!({ "development": development, "admin": visitor.admin }),
            )
        }
    }
}

pub(crate) fn sign_out(admin: &Admin, visitor: &Visitor) -> Result<Reply, Refusal> {
    let (hash, _) = visitor.require_session()?;
    admin.sessions.end(hash);
    let mut reply = reply::empty(StatusCode::NO_CONTENT);
    set_cookie(
        reply.headers_mut(),
        &format!("{SESSION_COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0"),
    );
    Ok(reply)
}

fn shown(admin: &Admin, found: &FoundSession, scheme: &str, host: &str, is_admin: bool) -> Value {
    let session = &found.session;
    let account = session.member.as_ref().map(|member| &member.account);
    let rights = match session.member.as_ref().map(|member| &member.credential) {
        Some(Credential::Owner(_)) => "owner",
        Some(Credential::Token(_)) => "sas",
        None => "admin",
    };
    let mut endpoints = Map::new();
    if let Some(account) = account {
        for service in admin.services.kinds() {
            if let Some(endpoint) = ServiceEndpoint::of(&admin.endpoints, *service, scheme) {
                endpoints.insert(service.name().to_owned(), endpoint.url(host, account).into());
            }
        }
    }
    json!({
        "account": account.map(|account| account.as_str()),
        "rights": rights,
        "endpoints": endpoints,
        "csrf": admin.sessions.csrf(found.hash),
        "expires": expires(found.left),
        "admin": is_admin || session.admin,
        "extensions": admin.extensions,
    })
}

fn expires(left: Duration) -> String {
    DateTime::now().plus(left).to_seconds_string()
}

/// A page of another site can't send this type without asking first.
pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let sent = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = sent.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(Refusal::NotJson("send it with content-type: application/json".to_owned()))
    }
}

/// What is wrong with a body, without showing it: it may hold a key.
pub(crate) fn place(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        serde_json::error::Category::Data => "a member is unknown or has the wrong type",
        _ => "it is not JSON",
    };
    format!("{kind}, at line {} column {}", error.line(), error.column())
}

fn set_cookie(headers: &mut HeaderMap, cookie: &str) {
    // Ids are letters and digits.
    let cookie = HeaderValue::try_from(cookie).unwrap_or_else(|error| unreachable!("{error}"));
    headers.insert(SET_COOKIE, cookie);
}
