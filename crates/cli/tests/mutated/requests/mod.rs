//! Valid requests of every operation, and the resources that they need.
//!
//! Words in braces stand for what is known only while the server runs: `{snapshot}`, `{receipt}`, …

mod blob;
mod queue;
mod table;

use front::ServiceKind;

use super::exchange::{Account, Connections, Request};

/// Method, path with query, headers, body.
pub type Template = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

/// The lease of whatever is leased.
pub const LEASE: &str = "00000000-1111-2222-3333-444444444444";

pub fn all() -> Vec<(ServiceKind, Template)> {
    let of = |service, templates: &'static [Template]| {
        templates.iter().map(move |template| (service, *template)).collect::<Vec<_>>()
    };
    [
        of(ServiceKind::Blob, &blob::REQUESTS),
        of(ServiceKind::Queue, &queue::REQUESTS),
        of(ServiceKind::Table, &table::REQUESTS),
    ]
    .concat()
}

/// What the words in braces stand for.
#[derive(Clone, Debug, Default)]
pub struct Known(Vec<(&'static str, String)>);

impl Known {
    fn set(&mut self, word: &'static str, value: impl Into<String>) {
        self.0.retain(|(known, _)| *known != word);
        self.0.push((word, value.into()));
    }

    fn fill(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (word, value) in &self.0 {
            if text.contains(word) {
                text = text.replace(word, value);
            }
        }
        text
    }

    pub fn request(&self, service: ServiceKind, (method, target, headers, body): Template) -> Request {
        Request::new(
            service,
            method,
            &self.fill(target),
            headers.iter().map(|(name, value)| ((*name).to_owned(), self.fill(value))),
            self.fill(body).into_bytes(),
        )
    }
}

/// Makes every resource that the requests need, whatever became of it. Each step may fail: an earlier request can have left
/// something that does not permit it.
pub fn set_up(account: &Account, connections: &mut Connections) -> Known {
    let mut known = Known::default();
    known.set("{lease}", LEASE);
    known.set("{blobs}", format!("http://{}/{}", account.addresses.blob, account.name));
    known.set("{page}", "p".repeat(512));
    known.set("{pages}", "q".repeat(1024));
    // As good as any, if the resource can't be made.
    known.set("{snapshot}", "2022-07-13T23:46:14.4048519Z");
    known.set("{pages-before}", "2022-07-13T23:46:14.4048519Z");
    known.set("{token}", account.token());
    known.set("{etag}", "\"0x8D000000000000\"");
    known.set("{message}", "0a1b2c3d-0000-4000-8000-0123456789ab");
    known.set("{receipt}", "AgAAAAMAAAAAAAAAkP0RP0Fx2QE%3D");
    let steps = [
        (ServiceKind::Blob, &blob::SET_UP[..]),
        (ServiceKind::Queue, &queue::SET_UP),
        (ServiceKind::Table, &table::SET_UP),
    ];
    for (service, templates) in steps {
        for template in templates {
            let request = known.request(service, *template);
            let answer = connections.send(account, &request);
            let answer = answer.unwrap_or_else(|error| panic!("{error}: {request}"));
            let text = answer.text();
            let between = |start, end| {
                let (_, rest) = text.split_once(start)?;
                rest.split_once(end).map(|(value, _): (&str, _)| value.to_owned())
            };
            let sent = |name| answer.header(name).map(str::to_owned);
            let encoded = |value: String| value.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
            for (word, value) in [
                ("{snapshot}", sent("x-ms-snapshot").filter(|_| template.1.starts_with("/box/block"))),
                ("{pages-before}", sent("x-ms-snapshot").filter(|_| template.1.starts_with("/box/page"))),
                ("{etag}", sent("etag").filter(|_| template.1 == "/box/block")),
                ("{message}", between("<MessageId>", "<")),
                ("{receipt}", between("<PopReceipt>", "<").map(encoded)),
            ] {
                if let Some(value) = value {
                    known.set(word, value);
                }
            }
        }
    }
    known
}
