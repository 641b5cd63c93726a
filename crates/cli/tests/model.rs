//! Random operations from concurrent clients; each answer is compared with a model in memory.
//!
//! Each client has its own tables, so the model knows every answer exactly: status, code, message, body, ETag, order of
//! properties. One table is shared by all clients. There only promises are checked: no update is lost, and no query sees
//! half a batch.
//!
//! `PARTITA_SEED` repeats a run, `PARTITA_STEPS` sets the steps of each client.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::support::batch::{self, Request};
use crate::support::oracle::filter::{Filter, OPERATORS};
use crate::support::oracle::show::{View, entity_link, escaped_value};
use crate::support::oracle::value::full_time;
use crate::support::oracle::{self, Account, Refusal, Row, Value, Verb, Write, etag, timestamp_of};
use crate::support::random::{self, Random};
use crate::support::{ACCOUNT, Answer, Client, Partita, cluster};

const CLIENTS: usize = 8;
const STEPS: u64 = 2_000;
/// Fewer, because each takes milliseconds on a cluster.
const STEPS_ON_A_CLUSTER: u64 = 150;

/// All kinds of keys: empty, quoted, escaped in URLs, and around U+FFFF, where UTF-16 and UTF-8 sort differently.
const PARTITIONS: [&str; 8] =
    ["", "a", "b c", "o'clock", "K\u{f6}ln", "\u{1d11e}", "\u{ff5e}", "100%+\"x\"&y=z"];
const ROWS: [&str; 14] = [
    "",
    "0",
    "1",
    "10",
    "2",
    "A",
    "a",
    "a'",
    "''",
    "\u{e9}t\u{e9}",
    "\u{1d11e}1",
    "\u{10ffff}",
    "\u{ff5e}",
    " (~!*) ",
];
const PROPERTIES: [&str; 6] = ["Age", "Name", "_x", "a1", "Zeit", "\u{dc}bung"];
const LEVELS: [&str; 3] = ["nometadata", "minimalmetadata", "fullmetadata"];

#[test]
fn the_engine_in_memory_answers_like_the_model() {
    let server = Partita::in_memory();
    walk(&server, "in memory", STEPS);
}

#[test]
fn the_embedded_engine_answers_like_the_model() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let walkers = walk(&server, "in a directory", STEPS);
    assert!(server.stop().success());
    let server = Partita::in_directory(directory.path());
    for mut walker in walkers {
        walker.client = server.client();
        walker.base = base(&server);
        walker.compare_everything();
    }
}

/// Through one server, then through another one.
#[test]
fn servers_on_a_cluster_answer_like_the_model() {
    let Some(nodes) = cluster::nodes() else { return };
    let store = cluster::new_store(&nodes);
    let (server, other) = (Partita::start(&["--store", &store]), Partita::start(&["--store", &store]));
    let walkers = walk(&server, "on a cluster", STEPS_ON_A_CLUSTER);
    for mut walker in walkers {
        walker.client = other.client();
        walker.base = base(&other);
        walker.compare_everything();
    }
}

fn base(server: &Partita) -> String {
    format!("http://{}/{ACCOUNT}/", server.address)
}

fn walk(server: &Partita, name: &str, steps: u64) -> Vec<Walker> {
    let (seed, steps) = (random::seed(), random::setting("PARTITA_STEPS", steps));
    println!("model {name}: PARTITA_SEED={seed} PARTITA_STEPS={steps}, {CLIENTS} clients");
    let (started, shared) = (Instant::now(), Arc::new(Shared::new(&mut server.client())));
    let threads = (0..CLIENTS).map(|number| {
        let mut walker = Walker::new(server, seed, number);
        let shared = shared.clone();
        std::thread::spawn(move || {
            for step in 0..steps {
                walker.step = step;
                walker.take_step(&shared);
            }
            walker.compare_everything();
            walker
        })
    });
    let threads: Vec<_> = threads.collect();
    let walkers: Vec<Walker> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    shared.compare_counters(&mut server.client());
    println!(
        "model {name}: {} requests, {} writes taken, {} refused, {} rows seen by queries, {} conflicts in {:?}",
        walkers.iter().map(|walker| walker.requests).sum::<u64>(),
        walkers.iter().map(|walker| walker.taken).sum::<u64>(),
        walkers.iter().map(|walker| walker.refused).sum::<u64>(),
        walkers.iter().map(|walker| walker.rows_seen).sum::<u64>(),
        shared.conflicts.load(Ordering::Relaxed),
        started.elapsed()
    );
    walkers
}

/// One client and its model.
struct Walker {
    client: Client,
    base: String,
    account: Account,
    tables: Vec<String>,
    /// Old and new, for conditions.
    etags: Vec<String>,
    /// The latest timestamp given to this client, with all its digits.
    latest: String,
    random: Random,
    /// A separate one, because what is drawn from it depends on the other clients.
    shared_random: Random,
    seed: u64,
    number: usize,
    step: u64,
    requests: u64,
    taken: u64,
    refused: u64,
    rows_seen: u64,
}

impl Walker {
    fn new(server: &Partita, seed: u64, number: usize) -> Self {
        let mut walker = Self {
            client: server.client(),
            base: base(server),
            account: Account::default(),
            tables: ["Alpha", "Beta", "Gamma"].map(|name| format!("C{number:02}{name}")).to_vec(),
            etags: vec!["W/\"datetime'2020-01-01T00%3A00%3A00Z'\"".to_owned(), "W/\"other\"".to_owned()],
            latest: String::new(),
            random: Random::numbered(seed, number),
            shared_random: Random::numbered(!seed, number),
            seed,
            number,
            step: 0,
            requests: 0,
            taken: 0,
            refused: 0,
            rows_seen: 0,
        };
        for index in 0..2 {
            walker.create_table(&walker.tables[index].clone());
        }
        walker
    }

    fn take_step(&mut self, shared: &Shared) {
        match self.random.below(100) {
            0..58 => self.write_one(),
            58..70 => self.get_one(),
            70..80 => self.query(),
            80..90 => self.write_batch(),
            90 => self.change_tables(),
            91 => self.list_tables(),
            _ => shared.take_step(&mut self.client, &mut self.shared_random),
        }
    }

    fn send(&mut self, request: &Request) -> Answer {
        self.requests += 1;
        request.send(&mut self.client).unwrap_or_else(|error| self.fail(request, &"an answer", &error))
    }

    fn fail(&self, request: &dyn Debug, expected: &dyn Debug, got: &dyn Debug) -> ! {
        panic!(
            "PARTITA_SEED={} client {} step {}\nrequest  {request:?}\nexpected {expected:?}\ngot      {got:?}",
            self.seed, self.number, self.step
        )
    }

    #[allow(clippy::needless_pass_by_value, reason = "reads better where values are made on the spot")]
    fn check<T: Debug + PartialEq>(&self, request: &dyn Debug, expected: T, got: T) {
        if expected != got {
            self.fail(request, &expected, &got);
        }
    }

    fn check_refusal(&self, request: &dyn Debug, index: Option<usize>, refusal: Refusal, answer: &Answer) {
        let index = index.map(|index| format!("{index}:")).unwrap_or_default();
        let start = format!(
            "{{\"odata.error\":{{\"code\":\"{}\",\"message\":{{\"lang\":\"en-US\",\"value\":\"{index}{}\\nRequestId:",
            refusal.code, refusal.text
        );
        if answer.status != refusal.status || !answer.text().starts_with(&start) {
            self.fail(request, &(refusal.status, start), &(answer.status, answer.text()));
        }
    }

    /// A table, sometimes in another case than it was created with.
    fn some_table(&mut self) -> String {
        // Mostly two of the three exist, so the third is chosen less often.
        let name = self.tables[self.random.below(5) % 3].clone();
        if self.random.chance(10) { spelled(&name, &mut self.random) } else { name }
    }

    /// A key, often that of an existing entity.
    fn some_key(&mut self, table: &str) -> (String, String) {
        if self.random.chance(50)
            && let Ok(table) = self.account.table(table)
            && !table.rows.is_empty()
        {
            let row = table.rows.values().nth(self.random.below(table.rows.len())).unwrap();
            return (row.partition.clone(), row.row.clone());
        }
        ((*self.random.pick(&PARTITIONS)).to_owned(), (*self.random.pick(&ROWS)).to_owned())
    }

    fn some_write(&mut self, table: &str) -> Write {
        let (partition, row) = self.some_key(table);
        let current = self.account.table(table).ok().and_then(|table| table.row(&partition, &row));
        let current = current.map(|row| etag(&row.timestamp));
        // Mostly what succeeds: many rows make interesting queries.
        let verb = match self.random.below(20) {
            0..8 if current.is_none() => Verb::Insert,
            0 | 1 => Verb::Insert,
            2..9 => Verb::Replace,
            9..17 => Verb::Merge,
            _ => Verb::Delete,
        };
        let if_match = match self.random.below(10) {
            // A delete needs a condition, so most have one.
            0..5 if verb != Verb::Delete || self.random.chance(10) => None,
            0..6 => Some("*".to_owned()),
            6..9 => Some(current.unwrap_or_else(|| self.etags[0].clone())),
            _ => Some(self.random.pick(&self.etags).clone()),
        };
        let if_match = if_match.filter(|_| verb != Verb::Insert);
        let mut properties = Vec::new();
        for name in PROPERTIES {
            if verb != Verb::Delete && self.random.chance(40) {
                let value = if self.random.chance(8) { None } else { Some(some_value(&mut self.random)) };
                properties.insert(self.random.below(properties.len() + 1), (name.to_owned(), value));
            }
        }
        Write { verb, if_match, partition, row, properties }
    }

    fn write_one(&mut self) {
        let table = self.some_table();
        let write = self.some_write(&table);
        let (level, quiet) = (*self.random.pick(&LEVELS), self.random.chance(50));
        let mut request = write.request(&table, level, quiet);
        if request.method == "MERGE" && self.random.chance(50) {
            request.method = "PATCH";
        }
        let answer = self.send(&request);
        match self.account.judge(&table, std::slice::from_ref(&write)) {
            Ok(()) => {
                let given = answer.header("etag").map(timestamp_of);
                let before = self.latest.clone();
                self.take_in(&request, &table, &write, level, quiet, &before, &answer);
                self.latest = given.map_or(before, |given| full_time(&given));
            }
            Err((_, refusal)) => {
                self.refused += 1;
                self.check_refusal(&request, None, refusal, &answer);
            }
        }
    }

    /// Checks the answer to a write that must have succeeded, and remembers what it wrote.
    #[allow(clippy::too_many_arguments, reason = "a request and all its answer depends on")]
    fn take_in(
        &mut self,
        request: &Request,
        table: &str,
        write: &Write,
        level: &str,
        quiet: bool,
        before: &str,
        answer: &Answer,
    ) {
        self.taken += 1;
        let status = if write.verb == Verb::Insert && !quiet { 201 } else { 204 };
        if answer.status != status {
            self.fail(request, &status, &(answer.status, answer.text()));
        }
        if write.verb == Verb::Delete {
            self.check(request, None, answer.header("etag"));
            self.account.table_mut(table).unwrap().commit(write, "");
            return;
        }
        let etag = answer.header("etag").unwrap_or_default().to_owned();
        let timestamp = timestamp_of(&etag);
        if full_time(&timestamp).as_str() <= before {
            self.fail(request, &format!("a timestamp above {before}"), &timestamp);
        }
        self.account.table_mut(table).unwrap().commit(write, &timestamp);
        if self.etags.len() < 40 {
            self.etags.push(etag);
        } else {
            let at = self.random.below(self.etags.len());
            self.etags[at] = etag;
        }
        let row = self.account.table(table).unwrap().row(&write.partition, &write.row).unwrap();
        let location = (write.verb == Verb::Insert)
            .then(|| format!("{}{}", self.base, entity_link(table, &write.partition, &write.row)));
        self.check(request, location.as_deref(), answer.header("location"));
        let body = if status == 201 { self.view(table, level, None).one(row) } else { String::new() };
        self.check(request, body, answer.text());
    }

    fn view<'a>(&'a self, table: &'a str, level: &'a str, select: Option<&'a [String]>) -> View<'a> {
        View { base: &self.base, account: ACCOUNT, table, level, select }
    }

    fn write_batch(&mut self) {
        let table = self.some_table();
        let mut writes = vec![self.some_write(&table)];
        let bold = self.random.chance(25);
        for _ in 0..self.random.below(20) {
            let mut write = self.some_write(&table);
            if !(bold && self.random.chance(3)) {
                write.partition.clone_from(&writes[0].partition);
            }
            let twice = writes.iter().any(|earlier| earlier.row == write.row);
            // Most writes should succeed, or long batches would nearly always fail.
            let one = [write];
            let fails = self.account.judge(&table, &one).is_err();
            if (twice && !(bold && self.random.chance(10))) || (fails && !self.random.chance(2)) {
                continue;
            }
            writes.extend(one);
        }
        let (level, quiet) = (*self.random.pick(&LEVELS), self.random.chance(50));
        let parts: Vec<Request> = writes.iter().map(|write| write.request(&table, level, quiet)).collect();
        self.requests += 1;
        let answers =
            batch::send(&mut self.client, &parts).unwrap_or_else(|e| self.fail(&parts, &"answers", &e));
        match self.account.judge(&table, &writes) {
            Ok(()) => {
                self.check(&parts, parts.len(), answers.len());
                let before = self.latest.clone();
                for (index, (write, answer)) in writes.iter().zip(&answers).enumerate() {
                    self.check(&parts, Some(index.to_string().as_str()), answer.header("content-id"));
                    self.take_in(&parts[index], &table, write, level, quiet, &before, answer);
                    if let Some(etag) = answer.header("etag") {
                        let given = full_time(&timestamp_of(etag));
                        self.latest = given.max(std::mem::take(&mut self.latest));
                    }
                }
            }
            Err((index, refusal)) => {
                self.refused += 1;
                self.check(&parts, 1, answers.len());
                let index = Some(index).filter(|_| writes.len() > 1 || refusal.indexed_alone);
                self.check_refusal(&parts, index, refusal, &answers[0]);
            }
        }
    }

    fn get_one(&mut self) {
        let table = self.some_table();
        let (partition, row) = self.some_key(&table);
        let level = *self.random.pick(&LEVELS);
        let select = self.some_select();
        let mut path = oracle::entity_path(&table, &partition, &row);
        if let Some(select) = &select {
            path.push_str(&format!("?$select={}", escaped_value(&select.join(","))));
        }
        let request = get(path, level);
        let answer = self.send(&request);
        let row =
            self.account.table(&table).and_then(|table| table.row(&partition, &row).ok_or(oracle::NOT_FOUND));
        match row {
            Ok(row) => {
                let expected = self.view(&table, level, select.as_deref()).one(row);
                self.check(&request, (200, expected), (answer.status, answer.text()));
                self.check(&request, Some(etag(&row.timestamp).as_str()), answer.header("etag"));
            }
            Err(refusal) => self.check_refusal(&request, None, refusal, &answer),
        }
    }

    fn some_select(&mut self) -> Option<Vec<String>> {
        let names = ["PartitionKey", "RowKey", "Timestamp", "Nope"].into_iter().chain(PROPERTIES);
        let chosen: Vec<String> = names.filter(|_| self.random.chance(30)).map(str::to_owned).collect();
        // The names, in ASCII: how others are shown in the metadata address is for the wire tests.
        let chosen: Vec<String> = chosen.into_iter().filter(|name| name.is_ascii()).collect();
        (self.random.chance(40) && !chosen.is_empty()).then_some(chosen)
    }

    fn query(&mut self) {
        let table = self.some_table();
        let filter = self.random.chance(85).then(|| self.some_filter(&table, 3));
        let top = self.random.chance(60).then(|| *self.random.pick(&[0, 1, 3, 7, 20, 50, 1000]));
        let (level, select) = (*self.random.pick(&LEVELS), self.some_select());
        self.query_to_the_end(&table, filter.as_ref(), top, level, select.as_deref());
    }

    /// Compares all pages of a query byte for byte. The server may choose where pages end, within limits.
    fn query_to_the_end(
        &mut self,
        table: &str,
        filter: Option<&Filter>,
        top: Option<usize>,
        level: &'static str,
        select: Option<&[String]>,
    ) {
        let mut options = Vec::new();
        options.extend(filter.map(|filter| format!("$filter={}", escaped_value(&filter.text()))));
        options.extend(top.map(|top| format!("$top={top}")));
        options.extend(select.map(|select| format!("$select={}", escaped_value(&select.join(",")))));
        let expected: Result<Vec<Row>, Refusal> = self.account.table(table).map(|table| {
            let kept = |row: &&Row| filter.is_none_or(|filter| filter.keeps(row));
            table.rows.values().filter(kept).cloned().collect()
        });
        let (mut at, mut pages, mut continuation) = (0, 0, String::new());
        loop {
            let request = get(format!("/{table}()?{}{continuation}", options.join("&")), level);
            let answer = self.send(&request);
            let text = filter.map(Filter::text);
            let expected = match &expected {
                Ok(expected) => expected,
                Err(refusal) => return self.check_refusal(&request, None, *refusal, &answer),
            };
            self.check(&(&request, &text), 200, answer.status);
            let count = answer.json()["value"].as_array().unwrap().len();
            let page = &expected[at..(at + count).min(expected.len())];
            self.check(&(&request, &text), self.view(table, level, select).set(page.iter()), answer.text());
            self.rows_seen += count as u64;
            at += count;
            pages += 1;
            if count > top.unwrap_or(1000) {
                self.fail(&request, &top, &count);
            }
            let next = answer.header("x-ms-continuation-nextpartitionkey");
            let Some(next) = next.map(escaped_value) else {
                let all = if top == Some(0) { 0 } else { expected.len() };
                return self.check(&(&request, &text), all, at);
            };
            let row = answer.header("x-ms-continuation-nextrowkey").map(escaped_value).unwrap();
            continuation = format!("&NextPartitionKey={next}&NextRowKey={row}");
            // A full page before each token, and perhaps an empty one after the last.
            self.check(&(&request, &text), top.unwrap_or(1000), count);
            if pages > expected.len() + 1 {
                self.fail(&(&request, &text), &"an end", &pages);
            }
        }
    }

    fn some_filter(&mut self, table: &str, depth: usize) -> Filter {
        let inner = |walker: &mut Self| Box::new(walker.some_filter(table, depth - 1));
        match self.random.below(if depth == 0 { 60 } else { 100 }) {
            0..2 => Filter::Constant(self.random.chance(70)),
            2..4 => Filter::Property((*self.random.pick(&PROPERTIES)).to_owned()),
            4..60 => self.some_comparison(table),
            60..66 => Filter::Not(inner(self)),
            66..86 => Filter::And(inner(self), inner(self)),
            _ => Filter::Or(inner(self), inner(self)),
        }
    }

    fn some_comparison(&mut self, table: &str) -> Filter {
        let (partition, row) = self.some_key(table);
        let (property, literal) = match self.random.below(10) {
            0..3 => ("PartitionKey", Value::String(partition)),
            3..6 => ("RowKey", Value::String(row)),
            6 => {
                let etag = self.random.pick(&self.etags).clone();
                let time = if etag.contains("datetime") {
                    timestamp_of(&etag)
                } else {
                    "2020-01-01T00:00:00Z".to_owned()
                };
                ("Timestamp", Value::DateTime(full_time(&time)))
            }
            _ => {
                let mut literal = some_value(&mut self.random);
                if literal == Value::Double(f64::INFINITY) {
                    literal = Value::Double(0.25);
                }
                (*self.random.pick(&PROPERTIES), literal)
            }
        };
        let operator = *self.random.pick(&OPERATORS);
        let literal_first = self.random.chance(15);
        Filter::Compare { property: property.to_owned(), operator, literal, literal_first }
    }

    fn change_tables(&mut self) {
        let name = self.tables[self.random.below(3)].clone();
        // The client's mark keeps its case, for the filter that lists its tables.
        let name = format!("{}{}", &name[..3], spelled(&name[3..], &mut self.random));
        if self.random.chance(75) {
            return self.create_table(&name);
        }
        let accept = vec![("Accept", "application/json".to_owned())];
        let path = format!("/Tables('{name}')");
        let request = Request { method: "DELETE", path, headers: accept, body: String::new() };
        let answer = self.send(&request);
        match self.account.drop_table(&name) {
            Ok(()) => self.check(&request, (204, String::new()), (answer.status, answer.text())),
            Err(refusal) => self.check_refusal(&request, None, refusal, &answer),
        }
    }

    fn create_table(&mut self, name: &str) {
        let headers =
            ["Accept", "Content-Type"].map(|header| (header, "application/json;odata=nometadata".to_owned()));
        let body = format!("{{\"TableName\":\"{name}\"}}");
        let request = Request {
            method: "POST",
            path: "/Tables".to_owned(),
            headers: headers.to_vec(),
            body: body.clone(),
        };
        let answer = self.send(&request);
        match self.account.create(name) {
            Ok(()) => self.check(&request, (201, body), (answer.status, answer.text())),
            Err(refusal) => self.check_refusal(&request, None, refusal, &answer),
        }
    }

    fn list_tables(&mut self) {
        let mark = self.tables[0][..3].to_owned();
        let filter = format!("TableName ge '{mark}' and TableName lt '{mark}~'");
        let request = get(format!("/Tables?$filter={}", escaped_value(&filter)), "nometadata");
        let answer = self.send(&request);
        let names: Vec<_> =
            self.account.0.values().map(|t| format!("{{\"TableName\":\"{}\"}}", t.name)).collect();
        let expected = format!("{{\"value\":[{}]}}", names.join(","));
        self.check(&request, (200, expected), (answer.status, answer.text()));
    }

    fn compare_everything(&mut self) {
        self.list_tables();
        for table in self.tables.clone() {
            self.query_to_the_end(&table, None, None, "fullmetadata", None);
        }
    }
}

fn get(path: String, level: &'static str) -> Request {
    let headers = vec![("Accept", format!("application/json;odata={level}"))];
    Request { method: "GET", path, headers, body: String::new() }
}

/// In letters of random case.
fn spelled(name: &str, random: &mut Random) -> String {
    let any_case = |c: char| if random.chance(50) { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    name.chars().map(any_case).collect()
}

/// From a few values, so that comparisons find equal ones.
fn some_value(random: &mut Random) -> Value {
    let number = random.below(5) as i32 - 2;
    match random.below(16) {
        0..3 => Value::Int32(number),
        3 => Value::Int32(*random.pick(&[i32::MIN, i32::MAX])),
        4 => Value::Int64(i64::from(number)),
        5 => Value::Int64(*random.pick(&[i64::MAX, 9_007_199_254_740_993])),
        6 => Value::Double(f64::from(number)),
        7 => Value::Double(*random.pick(&[0.25, -1.5, f64::INFINITY])),
        8..10 => Value::Boolean(random.chance(50)),
        10..13 => Value::String((*random.pick(&ROWS)).to_owned()),
        13 => {
            Value::DateTime(format!("2021-0{}-10T10:20:30.{:0<7}Z", random.below(3) + 1, random.below(3) * 5))
        }
        14 => Value::Guid(format!("0f8fad5b-d9cb-469f-a165-70867728950{}", random.below(3))),
        _ => Value::Binary(vec![random.below(3) as u8; random.below(4)]),
    }
}

/// The table that all clients write to: counters changed with ETags, accounts between which batches move money, and rows
/// that batches set to the same value.
struct Shared {
    raised: [AtomicU64; COUNTERS],
    stamps: AtomicU64,
    conflicts: AtomicU64,
}

const COUNTERS: usize = 3;
const ACCOUNTS: usize = 6;
const STAMPED: usize = 8;
const MONEY: i32 = 1_000;

impl Shared {
    fn new(client: &mut Client) -> Self {
        let json = [("Content-Type", "application/json")];
        assert_eq!(client.send("POST", "/Tables", &json, b"{\"TableName\":\"Shared\"}").status, 201);
        let zero = (0..COUNTERS).map(|row| shared_write("counter", row, 0, None));
        for write in zero.chain((0..ACCOUNTS).map(|row| shared_write("bank", row, MONEY, None))) {
            assert_eq!(write.send(client).unwrap().status, 204);
        }
        Self { raised: Default::default(), stamps: AtomicU64::new(0), conflicts: AtomicU64::new(0) }
    }

    fn take_step(&self, client: &mut Client, random: &mut Random) {
        match random.below(5) {
            0 => self.raise_counter(client, random.below(COUNTERS)),
            1 => self.move_money(client, random),
            2 => self.stamp(client),
            3 => {
                let amounts = read_partition(client, "bank");
                assert_eq!(
                    amounts.iter().sum::<i64>(),
                    MONEY as i64 * ACCOUNTS as i64,
                    "half a batch: {amounts:?}"
                );
            }
            _ => {
                let stamps = read_partition(client, "stamped");
                assert!(stamps.windows(2).all(|pair| pair[0] == pair[1]), "half a batch: {stamps:?}");
            }
        }
    }

    fn raise_counter(&self, client: &mut Client, row: usize) {
        let (value, etag) = read_one(client, "counter", row);
        let answer = shared_write("counter", row, value + 1, Some(etag)).send(client).unwrap();
        match answer.status {
            204 => self.raised[row].fetch_add(1, Ordering::Relaxed),
            412 => self.conflicts.fetch_add(1, Ordering::Relaxed),
            other => panic!("{other} {}", answer.text()),
        };
    }

    fn move_money(&self, client: &mut Client, random: &mut Random) {
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let amount = random.below(50) as i32;
        let ((less, less_etag), (more, more_etag)) =
            (read_one(client, "bank", from), read_one(client, "bank", to));
        let parts = [
            shared_write("bank", from, less - amount, Some(less_etag)),
            shared_write("bank", to, more + amount, Some(more_etag)),
        ];
        let answers = batch::send(client, &parts).unwrap();
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        if statuses == [412] {
            self.conflicts.fetch_add(1, Ordering::Relaxed);
        } else {
            assert_eq!(statuses, [204, 204]);
        }
    }

    fn stamp(&self, client: &mut Client) {
        let stamp = self.stamps.fetch_add(1, Ordering::Relaxed) as i32;
        let parts: Vec<Request> = (0..STAMPED).map(|row| shared_write("stamped", row, stamp, None)).collect();
        let answers = batch::send(client, &parts).unwrap();
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [204; STAMPED]);
    }

    /// An update was lost if a counter is lower than its number of acknowledged increments.
    fn compare_counters(&self, client: &mut Client) {
        for (row, raised) in self.raised.iter().enumerate() {
            assert_eq!(
                read_one(client, "counter", row).0 as u64,
                raised.load(Ordering::Relaxed),
                "counter {row}"
            );
        }
    }
}

fn shared_write(partition: &str, row: usize, value: i32, if_match: Option<String>) -> Request {
    let properties = vec![("Value".to_owned(), Some(Value::Int32(value)))];
    let (partition, row) = (partition.to_owned(), row.to_string());
    let write = Write { verb: Verb::Merge, if_match, partition, row, properties };
    write.request("Shared", "nometadata", true)
}

fn read_one(client: &mut Client, partition: &str, row: usize) -> (i32, String) {
    let path = oracle::entity_path("Shared", partition, &row.to_string());
    let answer = get(path, "nometadata").send(client).unwrap();
    (answer.json()["Value"].as_i64().unwrap() as i32, answer.header("etag").unwrap().to_owned())
}

/// All values of a partition, in one page.
fn read_partition(client: &mut Client, partition: &str) -> Vec<i64> {
    let filter = escaped_value(&format!("PartitionKey eq '{partition}'"));
    let answer = get(format!("/Shared()?$filter={filter}"), "nometadata").send(client).unwrap();
    assert_eq!(answer.header("x-ms-continuation-nextpartitionkey"), None);
    let rows = answer.json();
    rows["value"].as_array().unwrap().iter().map(|row| row["Value"].as_i64().unwrap()).collect()
}
