//! Who sent a request, and whether it may change something.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use http::header::{AUTHORIZATION, COOKIE};
use http::request::Parts;
use http::{HeaderMap, Method};

use crate::attempts::Attempts;
use crate::local_user;
use crate::refusal::Refusal;
use crate::secret::AdminToken;
use crate::sessions::{FoundSession, Member, Session, SessionHash, Sessions};

pub(crate) const SESSION_COOKIE: &str = "partita_session";
const CSRF: &str = "x-partita-csrf";
/// How many cookies of a session's name are tried: other programs of this host may have set some too.
const COOKIES_MAX: usize = 4;

/// What proves to be the administrator.
#[derive(Debug)]
pub(crate) struct AdminProof {
    pub token: Option<AdminToken>,
    /// The listener's address if it is a loopback address, so that every caller is on this machine.
    pub loopback: Option<SocketAddr>,
}

/// Who sent a request.
#[derive(Debug)]
pub(crate) struct Visitor {
    pub session: Option<FoundSession>,
    pub admin: bool,
    /// Nothing but this loopback address proves it, which other users of this machine have too.
    by_place_only: Option<SocketAddr>,
    /// The administration's token came with the request itself, which no page of another site can do.
    sent_token: bool,
}

impl AdminProof {
    pub fn visitor(
        &self,
        head: &Parts,
        peer: IpAddr,
        (sessions, attempts): (&Sessions, &Attempts),
        now: Instant,
    ) -> Result<Visitor, Refusal> {
        let sent_token = match bearer(&head.headers) {
            None => false,
            Some(text) => {
                if !attempts.allows(peer, now) {
                    return Err(Refusal::TooManyFailures);
                }
                if !self.token.as_ref().is_some_and(|token| token.is(text)) {
                    attempts.failed(peer, now);
                    return Err(Refusal::WrongToken);
                }
                true
            }
        };
        let session = ids(&head.headers).take(COOKIES_MAX).find_map(|id| sessions.find(id, now));
        let by_session = session.as_ref().is_some_and(|found| found.session.admin);
        let by_place = self.loopback.filter(|_| self.token.is_none());
        let by_token = sent_token || by_session;
        let (admin, by_place_only) = (by_token || by_place.is_some(), by_place.filter(|_| !by_token));
        Ok(Visitor { session, admin, by_place_only, sent_token })
    }
}

impl Visitor {
    pub fn require_admin(&self) -> Result<(), Refusal> {
        match (self.admin, &self.session) {
            (true, _) => Ok(()),
            (false, Some(_)) => Err(Refusal::NotAdmin),
            (false, None) => Err(Refusal::NoSession),
        }
    }

    /// For what harms or shows other people's data: the administrator's own user, if nothing but the place proves it.
    pub fn require_operator(&self, peer: SocketAddr) -> Result<(), Refusal> {
        self.require_admin()?;
        match self.by_place_only {
            Some(listener) if local_user::is_another(peer, listener) => Err(Refusal::OtherUser),
            _ => Ok(()),
        }
    }

    pub fn require_session(&self) -> Result<(SessionHash, &Session), Refusal> {
        self.session.as_ref().map(|found| (found.hash, &*found.session)).ok_or(Refusal::NoSession)
    }

    pub fn require_member(&self) -> Result<&Member, Refusal> {
        self.require_session()?.1.member.as_ref().ok_or(Refusal::NoAccount)
    }

    /// A request that may change something shows that no page of another site sent it: it has a header that such a page
    /// can't send. In a session, the value is the session's.
    pub fn require_csrf(&self, head: &Parts, sessions: &Sessions) -> Result<(), Refusal> {
        if self.sent_token || head.method == Method::GET || head.method == Method::HEAD {
            return Ok(());
        }
        let sent = head.headers.get(CSRF).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_right = match &self.session {
            Some(found) => sessions.is_csrf(found.hash, sent),
            None => !sent.is_empty(),
        };
        if is_right { Ok(()) } else { Err(Refusal::WrongCsrf) }
    }
}

/// The token of `Authorization: Bearer`. Another scheme, or an unreadable one, is a wrong token.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().unwrap_or_default();
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Some(token.trim()),
        _ => Some(""),
    }
}

fn ids(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == SESSION_COOKIE).map(|(_, id)| id)
}
