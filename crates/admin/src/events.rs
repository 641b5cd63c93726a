//! `GET /api/events`: a pulse each second, the requests that are answered, the hot partitions; as server-sent events. The
//! administrator hears of the whole server, others of their account. Paths and partitions name keys, which are data: a session
//! that has no account key but a token, which may be for a single table, hears the pulse only.
//!
//! An event is made when the client takes it. A slow client loses events, and hears how many; it never makes the server
//! hold more.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::hot_partitions::{HotOrder, HotPartitions};
use common::{AccountName, DateTime};
use front::Body;
use front::metrics::{RequestEvent, Tail, TailItem};
use futures_util::stream;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;
use tokio::time::{Interval, MissedTickBehavior};

use crate::door::Admin;
use crate::pulse::{AccountRequests, ServerMoment, rounded};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::sessions::{Credential, FoundSession, Member, Sessions};
use crate::sign_in;
use crate::streams::StreamPlace;
use crate::who::Visitor;

const PULSE: Duration = Duration::from_secs(1);
/// Requests that are told in one second.
const TOLD_MAX: u64 = 50;
/// Pulses from one list of hot partitions to the next.
const PULSES_OF_HOT: u64 = 2;
const HOT_PARTITIONS: usize = 20;

/// Whose requests a stream tells, and what of them the next pulse says.
enum View {
    All(ServerMoment),
    Of(AccountName, AccountRequests),
}

pub(crate) fn open(admin: &Admin, visitor: &Visitor, peer: SocketAddr) -> Result<Reply, Refusal> {
    let member = visitor.session.as_ref().and_then(|found| found.session.member.as_ref());
    let view = match (visitor.require_operator(peer), member) {
        (Ok(()), _) => View::All(ServerMoment::now(admin.services.front())),
        (Err(_), Some(member)) => View::Of(member.account.clone(), AccountRequests::none()),
        (Err(refusal), None) => return Err(refusal),
    };
    if !is_current(&admin.services, &view, member) {
        return Err(Refusal::WrongKey);
    }
    let whose = match &view {
        View::All(_) => None,
        View::Of(account, _) => Some(account.clone()),
    };
    let place = admin.streams.take(whose).ok_or(Refusal::TooManyStreams)?;
    // A token may not be for the whole account.
    let owner = member.filter(|member| matches!(member.credential, Credential::Owner(_)));
    let tells_requests = matches!(view, View::All(_)) || owner.is_some();
    let metrics = admin.services.front().metrics.clone();
    let mut pulse = tokio::time::interval(PULSE);
    pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stream = Events {
        tail: metrics.tail(),
        services: admin.services.clone(),
        sessions: admin.sessions.clone(),
        session: visitor.session.clone(),
        view,
        tells_requests,
        hot: owner.and_then(|member| Some((admin.hot.clone()?, member.account.clone()))),
        pulse,
        pulses: 0,
        told: 0,
        skipped: 0,
        _place: place,
    };
    let pieces = stream::unfold(stream, |mut events| async move {
        let piece = events.next().await?;
        Some((piece, events))
    });
    let mut reply = Response::new(Body::open_stream(pieces));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(reply)
}

struct Events {
    tail: Tail,
    services: front::LocalServices,
    sessions: Arc<Sessions>,
    session: Option<FoundSession>,
    view: View,
    /// Each one, beside the pulse.
    tells_requests: bool,
    hot: Option<(Arc<HotPartitions>, AccountName)>,
    pulse: Interval,
    pulses: u64,
    /// Requests told since the last pulse, and those left out.
    told: u64,
    skipped: u64,
    _place: StreamPlace,
}

impl Events {
    /// The next events, or `None` when the server stops, the session has ended, or its key is no longer one.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                biased;
                () = self.services.stopping() => return None,
                _ = self.pulse.tick() => {
                    if !self.may_go_on() {
                        return None;
                    }
                    return Some(self.beat().await);
                }
                item = self.tail.next() => match item {
                    TailItem::Skipped(count) => self.skipped += count,
                    TailItem::Request(event) if !self.shows(&event) || !self.tells_requests => {}
                    TailItem::Request(_) if self.told >= TOLD_MAX => self.skipped += 1,
                    TailItem::Request(event) => {
                        self.told += 1;
                        return Some(written("request", &RequestShown::of(&event)));
                    }
                },
            }
        }
    }

    fn may_go_on(&self) -> bool {
        let Some(found) = &self.session else { return true };
        self.sessions.is_open(found.hash, Instant::now())
            && is_current(&self.services, &self.view, found.session.member.as_ref())
    }

    /// Whether the request is one of those that the stream tells; if so, it is counted.
    fn shows(&mut self, event: &RequestEvent) -> bool {
        match &mut self.view {
            View::All(_) => true,
            View::Of(account, counted) => {
                let is_own = event.account.as_deref() == Some(account.as_str());
                if is_own {
                    counted.count(event);
                }
                is_own
            }
        }
    }

    async fn beat(&mut self) -> Bytes {
        let pulse = match &mut self.view {
            View::All(before) => before.pulse(self.services.front()).await,
            View::Of(_, counted) => counted.pulse(),
        };
        let mut events = event("pulse", &pulse);
        let skipped = std::mem::take(&mut self.skipped);
        if skipped > 0 {
            events.push_str(&event("skipped", &skipped));
        }
        if self.pulses.is_multiple_of(PULSES_OF_HOT)
            && let Some((hot, account)) = &self.hot
        {
            let report = hot.report(account, HOT_PARTITIONS, HotOrder::Requests, Instant::now());
            events.push_str(&event("hot", &table_http::hot_document(&report)));
        }
        self.pulses += 1;
        self.told = 0;
        events.into()
    }
}

/// Whether the account of a session is still served, and has the key that the session signed in with. No service checks this
/// here. The administrator need not have an account.
fn is_current(services: &front::LocalServices, view: &View, member: Option<&Member>) -> bool {
    match (view, member) {
        (View::All(_), _) | (View::Of(..), None) => true,
        (View::Of(..), Some(member)) => {
            let accounts = services.front().accounts.current();
            let account = accounts.get(member.account.as_str());
            account.is_some_and(|account| match &member.credential {
                Credential::Owner(key) => sign_in::is_key_of(key, account),
                Credential::Token(_) => true,
            })
        }
    }
}

#[derive(Debug, Serialize)]
struct RequestShown<'a> {
    at: String,
    service: &'static str,
    operation: &'static str,
    method: &'a str,
    path: &'a str,
    status: u16,
    code: Option<&'static str>,
    ms: f64,
    account: Option<&'a str>,
}

impl<'a> RequestShown<'a> {
    fn of(event: &'a RequestEvent) -> Self {
        Self {
            at: DateTime::from(event.at).to_fixed_string(),
            service: event.service.name(),
            operation: event.operation,
            method: &event.method,
            path: &event.path,
            status: event.status,
            code: event.code,
            ms: rounded(event.elapsed.as_secs_f64() * 1000.0),
            account: event.account.as_deref(),
        }
    }
}

fn written(name: &str, value: &impl Serialize) -> Bytes {
    event(name, value).into()
}

/// JSON has no line breaks outside its texts, and inside it escapes them, so the data is one line.
fn event(name: &str, value: &impl Serialize) -> String {
    let data = serde_json::to_string(value).unwrap_or_else(|error| unreachable!("{error}"));
    let mut event = String::with_capacity(data.len() + name.len() + 16);
    // Writing to a String can't fail.
    let _ = write!(event, "event: {name}\ndata: {data}\n\n");
    event
}
