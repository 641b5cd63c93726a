//! Sessions of the console: who signed in, until when.
//!
//! A session's id is 32 random bytes in a cookie that scripts can't read. Sessions are kept by the hash of their id, in
//! memory only. There are at most so many; a further one ends the one that has been unused for longest, of the account
//! that has the most, so that no account ends another's.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::AccountName;
use parking_lot::Mutex;
use protocol::signing::AccountKey;
use ring::{digest, hmac};

use crate::secret::{bytes_of, random_key, random_text, text_of};

pub(crate) const SESSIONS_MAX: usize = 1024;
/// Of one account.
pub(crate) const SESSIONS_OF_ACCOUNT_MAX: usize = 128;
const TIME_MAX: Duration = Duration::from_secs(12 * 3600);
const IDLE_MAX: Duration = Duration::from_secs(3600);

/// Who signed in.
#[derive(Debug)]
pub(crate) struct Session {
    /// `None` for the administrator, who may sign in without an account.
    pub member: Option<Member>,
    /// Signed in with the administration's token.
    pub admin: bool,
}

/// An account, and what proves that a session may use it. The services check it again with every request.
#[derive(Debug)]
pub(crate) struct Member {
    pub account: AccountName,
    pub credential: Credential,
}

pub(crate) enum Credential {
    Owner(AccountKey),
    /// A shared access signature: a query string without `?`.
    Token(String),
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Owner(_) => "Owner(hidden)",
            Self::Token(_) => "Token(hidden)",
        })
    }
}

/// The hash of a session's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionHash([u8; 32]);

impl SessionHash {
    fn of(id: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest::digest(&digest::SHA256, id.as_bytes()).as_ref());
        Self(hash)
    }
}

/// A session as a request finds it.
#[derive(Clone, Debug)]
pub(crate) struct FoundSession {
    pub hash: SessionHash,
    pub session: Arc<Session>,
    /// How long it lasts if it is not used again.
    pub left: Duration,
}

#[derive(Debug)]
struct Entry {
    session: Arc<Session>,
    begun: Instant,
    used: Instant,
}

impl Entry {
    fn left(&self, now: Instant) -> Duration {
        let of_all = TIME_MAX.saturating_sub(now.saturating_duration_since(self.begun));
        let of_idle = IDLE_MAX.saturating_sub(now.saturating_duration_since(self.used));
        of_all.min(of_idle)
    }

    fn account(&self) -> Option<&AccountName> {
        self.session.member.as_ref().map(|member| &member.account)
    }
}

pub(crate) struct Sessions {
    /// Makes the token against cross-site requests from a session's hash.
    csrf_key: hmac::Key,
    open: Mutex<HashMap<SessionHash, Entry>>,
}

impl Sessions {
    pub fn new() -> Self {
        Self { csrf_key: random_key(), open: Mutex::default() }
    }

    /// A new session, and its id for the cookie.
    pub fn begin(&self, session: Session, now: Instant) -> (String, FoundSession) {
        let id = random_text();
        let hash = SessionHash::of(&id);
        let entry = Entry { session: Arc::new(session), begun: now, used: now };
        let found = FoundSession { hash, session: entry.session.clone(), left: entry.left(now) };
        let mut open = self.open.lock();
        let of_account = open.values().filter(|known| known.account() == entry.account()).count();
        if open.len() >= SESSIONS_MAX || of_account >= SESSIONS_OF_ACCOUNT_MAX {
            open.retain(|_, entry| !entry.left(now).is_zero());
            let of_account = open.values().filter(|known| known.account() == entry.account()).count();
            if of_account >= SESSIONS_OF_ACCOUNT_MAX {
                end_oldest(&mut open, entry.account().cloned().as_ref());
            } else if open.len() >= SESSIONS_MAX {
                let most = account_with_most(&open);
                end_oldest(&mut open, most.as_ref());
            }
        }
        open.insert(hash, entry);
        (id, found)
    }

    /// The session with this id, which counts as used now.
    pub fn find(&self, id: &str, now: Instant) -> Option<FoundSession> {
        let hash = SessionHash::of(id);
        let mut open = self.open.lock();
        let entry = open.get_mut(&hash)?;
        if entry.left(now).is_zero() {
            open.remove(&hash);
            return None;
        }
        entry.used = now;
        Some(FoundSession { hash, session: entry.session.clone(), left: entry.left(now) })
    }

    /// Whether it has not ended. It does not count as used.
    pub fn is_open(&self, hash: SessionHash, now: Instant) -> bool {
        self.open.lock().get(&hash).is_some_and(|entry| !entry.left(now).is_zero())
    }

    pub fn end(&self, hash: SessionHash) {
        self.open.lock().remove(&hash);
    }

    pub fn csrf(&self, hash: SessionHash) -> String {
        text_of(hmac::sign(&self.csrf_key, &hash.0).as_ref())
    }

    pub fn is_csrf(&self, hash: SessionHash, text: &str) -> bool {
        bytes_of(text).is_some_and(|code| hmac::verify(&self.csrf_key, &hash.0, &code).is_ok())
    }

    pub fn count(&self) -> usize {
        self.open.lock().len()
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sessions({})", self.count())
    }
}

fn account_with_most(open: &HashMap<SessionHash, Entry>) -> Option<AccountName> {
    let mut counts: HashMap<Option<&AccountName>, usize> = HashMap::new();
    for entry in open.values() {
        *counts.entry(entry.account()).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).and_then(|(account, _)| account.cloned())
}

fn end_oldest(open: &mut HashMap<SessionHash, Entry>, account: Option<&AccountName>) {
    let of_account = open.iter().filter(|(_, entry)| entry.account() == account);
    let oldest = of_account.min_by_key(|(_, entry)| entry.used).map(|(hash, _)| *hash);
    if let Some(hash) = oldest {
        open.remove(&hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(account: &str) -> Session {
        let account = AccountName::parse(account).unwrap();
        let member = Some(Member { account, credential: Credential::Token("sig=a".to_owned()) });
        Session { member, admin: false }
    }

    #[test]
    fn a_session_ends_after_an_hour_without_use_and_after_twelve_in_any_case() {
        let (sessions, start) = (Sessions::new(), Instant::now());
        let (id, begun) = sessions.begin(session("shop"), start);
        assert_eq!(begun.left, IDLE_MAX);
        let mut now = start;
        for _ in 0..12 {
            now += IDLE_MAX - Duration::from_secs(1);
            assert!(sessions.find(&id, now).is_some());
        }
        assert_eq!(sessions.find(&id, now).unwrap().left, Duration::from_secs(12), "of twelve hours");
        assert!(sessions.find(&id, start + TIME_MAX).is_none());
        assert_eq!(sessions.count(), 0);

        let (id, _) = sessions.begin(session("shop"), start);
        assert!(sessions.find(&id, start + IDLE_MAX).is_none());
    }

    #[test]
    fn ids_are_long_and_differ_and_no_other_text_is_one() {
        let (sessions, now) = (Sessions::new(), Instant::now());
        let ids: Vec<String> = (0..100).map(|_| sessions.begin(session("shop"), now).0).collect();
        let distinct: std::collections::HashSet<&String> = ids.iter().collect();
        assert_eq!(distinct.len(), 100);
        for id in &ids {
            assert_eq!(bytes_of(id).map(|bytes| bytes.len()), Some(32));
            assert!(sessions.find(id, now).is_some());
            assert!(sessions.find(&id[1..], now).is_none());
        }
        assert!(sessions.find("", now).is_none());
    }

    #[test]
    fn the_csrf_token_is_that_of_the_session_only() {
        let (sessions, now) = (Sessions::new(), Instant::now());
        let (one, two) = (sessions.begin(session("shop"), now).1, sessions.begin(session("shop"), now).1);
        let token = sessions.csrf(one.hash);
        assert!(sessions.is_csrf(one.hash, &token));
        assert!(!sessions.is_csrf(two.hash, &token) && !sessions.is_csrf(one.hash, ""));
        assert!(!Sessions::new().is_csrf(one.hash, &token), "another server's");
    }

    #[test]
    fn ten_thousand_sessions_of_one_account_end_only_its_own() {
        let (sessions, start) = (Sessions::new(), Instant::now());
        let (other, _) = sessions.begin(session("other"), start);
        let mut ids = Vec::new();
        for step in 0..10_000 {
            ids.push(sessions.begin(session("greedy"), start + Duration::from_micros(step)).0);
        }
        let now = start + Duration::from_secs(1);
        assert_eq!(sessions.count(), SESSIONS_OF_ACCOUNT_MAX + 1);
        assert!(sessions.find(&other, now).is_some());
        assert!(sessions.find(&ids[0], now).is_none(), "the oldest");
        assert!(sessions.find(&ids[9_999], now).is_some());
    }

    #[test]
    fn of_many_accounts_the_one_with_the_most_sessions_makes_room() {
        let (sessions, now) = (Sessions::new(), Instant::now());
        let (modest, _) = sessions.begin(session("modest"), now);
        for account in 0..100 {
            for _ in 0..100 {
                sessions.begin(session(&format!("greedy{account}")), now);
            }
        }
        assert_eq!(sessions.count(), SESSIONS_MAX);
        assert!(sessions.find(&modest, now).is_some());
    }

    #[test]
    fn credentials_are_not_shown() {
        let shown = format!("{:?}", session("shop"));
        assert!(shown.contains("Token(hidden)") && !shown.contains("sig"), "{shown}");
    }
}
