//! Whole requests that are nearly right: valid ones of every operation of the three services, changed in up to four places and
//! then signed, so that they pass authentication and reach the code behind it. Whatever they say, the server answers in good
//! form, has no fault of its own, and goes on.
//!
//! `PARTITA_SEED` repeats a run, `PARTITA_STEPS` sets the number of requests. Broken HTTP is in `hostile.rs`.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

mod exchange;
mod mutate;
mod requests;
mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;

use front::ServiceKind;
use protocol::signing::AccountKey;
use protocol::xml_tree::Element;

use crate::admin::kit::Visitor;
use crate::support::random::{Random, seed, setting};
use crate::support::{ACCOUNT, Answer, KEY, Partita};
use exchange::{Account, Addresses, Connections, Request};
use mutate::Names;

const OTHER: &str = "other";
const OTHER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// How many requests are sent before everything is put into its place again.
const STEPS_OF_SET_UP: u64 = 20;

/// How many faults a run shows: one often hides others.
const FAULTS_MAX: usize = 20;

struct Target {
    server: Partita,
    log: PathBuf,
    account: Account,
    other: Account,
    connections: Connections,
    _directory: tempfile::TempDir,
}

impl Target {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let accounts = format!("{ACCOUNT}:{KEY};{OTHER}:{OTHER_KEY}");
        let server = Partita::logging_to(&log, "error", &["--account", &accounts]);
        let addresses = Addresses::of(&server);
        let account = |name: &str, key| Account {
            name: name.to_owned(),
            key: AccountKey::parse(key).unwrap(),
            addresses,
        };
        Self {
            account: account(ACCOUNT, KEY),
            other: account(OTHER, OTHER_KEY),
            server,
            log,
            connections: Connections::default(),
            _directory: directory,
        }
    }

    /// What the server has said of faults of its own.
    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    fn send(&mut self, request: &Request) -> Result<Answer, String> {
        let answer = self.connections.send(&self.account, request).map_err(|error| error.to_string())?;
        match well_formed(request, &answer) {
            Ok(()) => Ok(answer),
            Err(why) => Err(format!(
                "{why}\n{} {}\n{:?}\n{}",
                answer.status,
                answer.reason,
                answer.headers,
                answer.text()
            )),
        }
    }

    /// Another account notices nothing, and nothing is held or logged.
    fn is_well(&mut self) {
        // A panic is logged too.
        assert_eq!(self.log(), "");
        let known = requests::set_up(&self.other, &mut self.connections);
        for (service, template) in requests::all() {
            if matches!(template.0, "GET" | "HEAD") {
                let request = known.request(service, template);
                let answer = self.connections.send(&self.other, &request).unwrap();
                assert!(answer.status < 400, "{request}{} {}", answer.status, answer.text());
            }
        }
        testing::wait_until("no request holds memory", || {
            let status = Visitor::of(&self.server).get("/api/status").json();
            (status["memory"]["request_bytes_held"] == 0).then_some(())
        });
    }
}

/// What every answer is, whatever was asked.
fn well_formed(request: &Request, answer: &Answer) -> Result<(), String> {
    let kind = answer.header("content-type").unwrap_or_default();
    let has_body = request.method != "HEAD" && !matches!(answer.status, 204 | 304);
    let code = answer.code();
    let in_header = answer.header("x-ms-error-code");
    // The content of a blob is what a client has sent.
    let is_own = has_body && !(answer.status < 300 && answer.header("x-ms-blob-type").is_some());
    // Entities in Atom have references to characters that XML forbids, as the service writes them.
    let document = match kind.contains("atom") {
        true => answer.text().replace("&#x", "x").into_bytes(),
        false => answer.body.clone(),
    };
    if is_own && kind.contains("xml") && Element::parse_list(&document, 1_000_000).is_none() {
        return Err("a document that is no XML".to_owned());
    }
    if is_own && kind.contains("json") && serde_json::from_slice::<serde_json::Value>(&answer.body).is_err() {
        return Err("a document that is no JSON".to_owned());
    }
    // Also of a part of a batch.
    if is_own
        && ["InternalError", "HTTP/1.1 500", "HTTP/1.1 503"].iter().any(|fault| answer.text().contains(fault))
    {
        return Err("a fault of the server's own".to_owned());
    }
    if answer.status == 206 && has_body && !is_range(answer) {
        return Err("a range that is not the content's".to_owned());
    }
    match answer.status {
        200..300 | 304 => return Ok(()),
        400..500 => {}
        500 if code == "OperationTimedOut" || in_header == Some("OperationTimedOut") => {}
        501 if has_body && code == "NotImplemented" || in_header == Some("NotImplemented") => {}
        status => return Err(format!("the status is {status}")),
    }
    if answer.header("x-ms-request-id").is_none() {
        return Err("a refusal without an id".to_owned());
    }
    if has_body && code.is_empty() {
        return Err("a refusal without a code".to_owned());
    }
    // Tables say it in the body alone, and so did queues before 2017-07-29.
    let tells = match request.service {
        ServiceKind::Table => false,
        ServiceKind::Queue => answer.header("x-ms-version").is_some_and(|version| version >= "2017-07-29"),
        ServiceKind::Blob => !is_bare(answer, &code),
    };
    match in_header {
        None if tells => Err("a refusal without a code in its headers".to_owned()),
        Some(told) if has_body && told != code => Err(format!("the header says {told}, the body {code}")),
        _ => Ok(()),
    }
}

/// Whether `Content-Range` says how many bytes there are. Long answers are not read to their ends.
fn is_range(answer: &Answer) -> bool {
    let range = answer.header("content-range").and_then(|range| range.strip_prefix("bytes "));
    let numbers = range.and_then(|range| {
        let (range, whole) = range.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?, whole.parse::<u64>().ok()?))
    });
    let length = answer.header("content-length").and_then(|length| length.parse::<u64>().ok());
    numbers
        .is_some_and(|(first, last, whole)| first <= last && last < whole && length == Some(last - first + 1))
}

/// A version that is none, and times of snapshots that are none, are refused without a code in the headers.
fn is_bare(answer: &Answer, code: &str) -> bool {
    let text = answer.text();
    (code == "InvalidHeaderValue" && text.contains("<HeaderName>x-ms-version<"))
        || (code == "InvalidQueryParameterValue"
            && (text.contains(">snapshot<") || text.contains(">versionid<")))
        || text.is_empty()
}

#[test]
fn every_request_is_valid_before_it_is_changed() {
    let mut target = Target::start();
    let mut refused = String::new();
    for (service, template) in requests::all() {
        let known = requests::set_up(&target.account, &mut target.connections);
        let request = known.request(service, template);
        let answer = target.send(&request).unwrap_or_else(|error| panic!("{request}{error}"));
        // Copies within this server are never pending.
        let by_design = answer.status == 304 || answer.code() == "NoPendingCopyOperation";
        if answer.status >= 300 && !by_design {
            refused.push_str(&format!("{request}{} {}\n", answer.status, answer.text()));
        }
    }
    assert!(refused.is_empty(), "{refused}");
    target.is_well();
}

#[test]
fn mutated_requests_are_answered_in_good_form() {
    let (seed, steps) = (seed(), setting("PARTITA_STEPS", 8000));
    println!("PARTITA_SEED={seed} PARTITA_STEPS={steps}");
    let names = Names::of_all();
    let all = requests::all();
    let mut target = Target::start();
    let mut random = Random::new(seed);
    let mut statuses: BTreeMap<(u16, String), u64> = BTreeMap::new();
    let mut known = requests::set_up(&target.account, &mut target.connections);
    let mut faults = 0;
    for step in 0..steps {
        if step % STEPS_OF_SET_UP == 0 {
            known = requests::set_up(&target.account, &mut target.connections);
        }
        let (service, template) = *random.pick(&all);
        let mut request = known.request(service, template);
        mutate::mutate(&mut random, &mut request, &names);
        let answer = match target.send(&request) {
            Ok(answer) => answer,
            Err(error) => {
                println!("PARTITA_SEED={seed}, step {step}: {error}\n{request}");
                faults += 1;
                assert!(faults < FAULTS_MAX, "{}", target.log());
                continue;
            }
        };
        *statuses
            .entry((answer.status, if answer.status < 400 { String::new() } else { answer.code() }))
            .or_default() += 1;
    }
    assert_eq!(faults, 0, "PARTITA_SEED={seed}: {}", target.log());
    let of = |wanted: fn(&(u16, String)) -> bool| -> u64 {
        statuses.iter().filter(|(answer, _)| wanted(answer)).map(|(_, count)| count).sum()
    };
    println!("{statuses:?}");
    // If most of them ended at the door, nothing would be tested.
    let (done, denied) = (of(|(status, _)| *status < 300), of(|(status, _)| matches!(status, 401 | 403)));
    assert!(done > steps / 10 && denied < steps / 4, "{done} done and {denied} denied of {steps}");
    target.is_well();
}
