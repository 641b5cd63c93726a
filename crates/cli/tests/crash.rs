//! kill -9 at random moments while clients write, then compares the stored data.
//!
//! Every acknowledged write is stored. The one operation that a client had in flight is stored wholly or not at all. Nothing
//! else is stored. New timestamps are above all old ones.
//!
//! `PARTITA_SEED` repeats the choices of a run (not its timing), `PARTITA_ROUNDS` sets the kills.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::collections::BTreeMap;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::batch::{self, Request};
use crate::support::oracle::show::{View, escaped_value};
use crate::support::oracle::value::full_time;
use crate::support::oracle::{Account, Place, Value, Verb, Write, place, timestamp_of};
use crate::support::random::{self, Random};
use crate::support::{self, ACCOUNT, Answer, Client, Partita};

const ROUNDS: u64 = 8;
const CLIENTS: usize = 6;

#[test]
fn acknowledged_writes_survive_kill_9() {
    let (seed, rounds) = (random::seed(), random::setting("PARTITA_ROUNDS", ROUNDS));
    println!("crash: PARTITA_SEED={seed} PARTITA_ROUNDS={rounds}, {CLIENTS} clients");
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new(seed);
    let mut writers: Vec<Writer> = (0..CLIENTS).map(|number| Writer::new(seed, number)).collect();
    let (started, mut slowest, mut tally) = (Instant::now(), Duration::ZERO, Tally::default());
    for round in 0..=rounds {
        if round > 0 && random.chance(50) {
            kill_while_starting(directory.path(), &mut random);
        }
        let start = Instant::now();
        let server = Partita::in_directory(directory.path());
        slowest = slowest.max(start.elapsed());
        let mut client = server.client();
        compare_tables(&mut client, &mut writers, seed, round);
        for writer in &mut writers {
            writer.compare(&mut client, &mut tally);
        }
        if round == rounds {
            assert!(server.stop().success());
            break;
        }
        // The latest of all clients: timestamps grow across clients and restarts.
        let latest = writers.iter().map(|writer| writer.latest.clone()).max().unwrap();
        let threads = writers.into_iter().map(|mut writer| {
            let mut client = server.client();
            writer.latest.clone_from(&latest);
            writer.round = round;
            std::thread::spawn(move || {
                while writer.pending.is_none() {
                    writer.take_step(&mut client);
                }
                writer
            })
        });
        let threads: Vec<_> = threads.collect();
        sleep(Duration::from_millis(50 + random.below(551) as u64));
        server.kill();
        writers = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    }
    println!(
        "crash: {rounds} kills, {} acknowledged writes of {} rows checked, {} rows compared, {} operations under \
         way ({} taken), slowest start {slowest:?}, in {:?}",
        writers.iter().map(|writer| writer.acknowledged).sum::<u64>(),
        writers.iter().map(|writer| writer.rows_written).sum::<u64>(),
        tally.rows,
        tally.pending,
        tally.pending_taken,
        started.elapsed()
    );
}

/// Kills one or more times, during recovery or just after.
fn kill_while_starting(directory: &std::path::Path, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        let mut command = support::binary();
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "error", "--data"]).arg(directory);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_millis(random.below(40) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[derive(Default)]
struct Tally {
    rows: u64,
    pending: u64,
    pending_taken: u64,
}

/// A request without an answer.
#[derive(Debug)]
enum Pending {
    Writes(String, Vec<Write>),
    Create(String),
    Drop(String),
}

/// One client: what was acknowledged to it, and its operation in flight.
struct Writer {
    number: usize,
    account: Account,
    pending: Option<Pending>,
    /// With all its digits.
    latest: String,
    sequence: u64,
    random: Random,
    seed: u64,
    round: u64,
    acknowledged: u64,
    rows_written: u64,
}

impl Writer {
    fn new(seed: u64, number: usize) -> Self {
        Self {
            number,
            account: Account::default(),
            pending: None,
            latest: String::new(),
            sequence: 0,
            random: Random::numbered(seed, number),
            seed,
            round: 0,
            acknowledged: 0,
            rows_written: 0,
        }
    }

    fn take_step(&mut self, client: &mut Client) {
        let rows = self.table("Rows");
        if self.account.table(&rows).is_err() {
            return self.create(client, rows);
        }
        match self.random.below(20) {
            0..6 => self.insert_next(client, rows),
            6..9 => self.change_one(client, rows, Verb::Replace),
            9..12 => self.change_one(client, rows, Verb::Merge),
            12..14 => self.delete_one(client, rows),
            14..19 => self.write_batch(client, rows),
            _ => {
                let brief = self.table("Brief");
                match self.account.table(&brief).map(|table| table.rows.len()) {
                    Err(_) => self.create(client, brief),
                    Ok(0) => self.write_batch(client, brief),
                    Ok(_) => self.drop_table(client, brief),
                }
            }
        }
    }

    fn table(&self, name: &str) -> String {
        format!("{name}{}", self.number)
    }

    fn fail(&self, what: &str) -> ! {
        panic!("PARTITA_SEED={} round {} client {}: {what}", self.seed, self.round, self.number)
    }

    fn insert_next(&mut self, client: &mut Client, table: String) {
        let row = format!("{:08}", self.next());
        let write = self.write(Verb::Insert, "sequence", row);
        self.send(client, table, vec![write]);
    }

    fn change_one(&mut self, client: &mut Client, table: String, verb: Verb) {
        let row = format!("{:03}", self.random.below(40));
        let write = self.write(verb, "changed", row);
        self.send(client, table, vec![write]);
    }

    fn delete_one(&mut self, client: &mut Client, table: String) {
        let rows = &self.account.table(&table).unwrap().rows;
        if rows.is_empty() {
            return;
        }
        let row = rows.values().nth(self.random.below(rows.len())).unwrap();
        let (partition, row) = (row.partition.clone(), row.row.clone());
        let write = Write { if_match: Some("*".to_owned()), ..self.write(Verb::Delete, &partition, row) };
        self.send(client, table, vec![write]);
    }

    /// 2 to 100 rows of one partition: inserts or deletes, whichever the row allows, and upserts.
    fn write_batch(&mut self, client: &mut Client, table: String) {
        let (first, count) = (self.random.below(60), 2 + self.random.below(99));
        let mut writes = Vec::with_capacity(count);
        for row in first..first + count {
            let row = format!("{row:03}");
            let there = self.account.table(&table).unwrap().row("batches", &row).is_some();
            let verb = match self.random.below(4) {
                0 if there => Verb::Delete,
                0 => Verb::Insert,
                1 | 2 => Verb::Replace,
                _ => Verb::Merge,
            };
            let if_match = (verb == Verb::Delete).then(|| "*".to_owned());
            writes.push(Write { if_match, ..self.write(verb, "batches", row) });
        }
        self.send(client, table, writes);
    }

    fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn write(&mut self, verb: Verb, partition: &str, row: String) -> Write {
        let mut properties = Vec::new();
        if verb != Verb::Delete {
            let sequence = self.next() as i64;
            properties.push(("Sequence".to_owned(), Some(Value::Int64(sequence))));
            // A merge keeps the other properties, so earlier writes stay visible.
            let name = format!("Extra{}", self.random.below(3));
            let text = "x".repeat(self.random.below(300));
            properties.push((name, Some(Value::String(text))));
        }
        Write { verb, if_match: None, partition: partition.to_owned(), row, properties }
    }

    fn send(&mut self, client: &mut Client, table: String, writes: Vec<Write>) {
        let parts: Vec<Request> = writes.iter().map(|w| w.request(&table, "nometadata", true)).collect();
        let answers = match &parts[..] {
            [one] => one.send(client).map(|answer| vec![answer]),
            many => batch::send(client, many),
        };
        let Ok(answers) = answers else {
            self.pending = Some(Pending::Writes(table, writes));
            return;
        };
        if answers.len() != writes.len() || answers.iter().any(|answer| answer.status != 204) {
            self.fail(&format!("{parts:?} answered with {}", texts(&answers)));
        }
        let before = self.latest.clone();
        for (write, answer) in writes.iter().zip(&answers) {
            let timestamp = answer.header("etag").map(timestamp_of).unwrap_or_default();
            if write.verb != Verb::Delete {
                self.check_growth(&before, &timestamp);
            }
            self.account.table_mut(&table).unwrap().commit(write, &timestamp);
        }
        self.acknowledged += 1;
        self.rows_written += writes.len() as u64;
    }

    fn check_growth(&mut self, before: &str, timestamp: &str) {
        let given = full_time(timestamp);
        if given.as_str() <= before {
            self.fail(&format!("timestamp {given} does not lie above {before}"));
        }
        self.latest = given.max(std::mem::take(&mut self.latest));
    }

    fn create(&mut self, client: &mut Client, table: String) {
        let headers = [("Content-Type", "application/json"), ("Prefer", "return-no-content")];
        let body = format!("{{\"TableName\":\"{table}\"}}");
        match client.try_send("POST", "/Tables", &headers, body.as_bytes()) {
            Err(_) => self.pending = Some(Pending::Create(table)),
            Ok(answer) if answer.status == 204 => {
                self.account.create(&table).unwrap();
                self.acknowledged += 1;
            }
            Ok(answer) => self.fail(&format!("creating {table}: {} {}", answer.status, answer.text())),
        }
    }

    fn drop_table(&mut self, client: &mut Client, table: String) {
        match client.try_send("DELETE", &format!("/Tables('{table}')"), &[], b"") {
            Err(_) => self.pending = Some(Pending::Drop(table)),
            Ok(answer) if answer.status == 204 => {
                self.account.drop_table(&table).unwrap();
                self.acknowledged += 1;
            }
            Ok(answer) => self.fail(&format!("dropping {table}: {} {}", answer.status, answer.text())),
        }
    }

    /// Compares all rows with what was acknowledged, without or with the operation in flight.
    fn compare(&mut self, client: &mut Client, tally: &mut Tally) {
        let pending = self.pending.take();
        tally.pending += u64::from(pending.is_some());
        for table in self.account.0.keys().cloned().collect::<Vec<_>>() {
            let found = read_table(client, &table);
            tally.rows += found.len() as u64;
            let Some(difference) = difference(&self.account, &table, &found) else { continue };
            let Some(Pending::Writes(touched, writes)) = &pending else { self.fail(&difference) };
            if !touched.eq_ignore_ascii_case(&table) {
                self.fail(&difference);
            }
            // The operation in flight was done wholly. Only its timestamps were unknown.
            let before = self.latest.clone();
            for write in writes {
                let row = found.get(&place(&write.partition, &write.row));
                let timestamp = row.and_then(|row| row["Timestamp"].as_str()).unwrap_or_default().to_owned();
                if !timestamp.is_empty() {
                    self.check_growth(&before, &timestamp);
                }
                self.account.table_mut(&table).unwrap().commit(write, &timestamp);
            }
            if let Some(still) = self::difference(&self.account, &table, &found) {
                self.fail(&format!("{difference}; and with {} writes under way: {still}", writes.len()));
            }
            tally.pending_taken += 1;
        }
    }
}

/// Compares the tables with those acknowledged, and settles creates and drops that were in flight.
fn compare_tables(client: &mut Client, writers: &mut [Writer], seed: u64, round: u64) {
    let accept = [("Accept", "application/json;odata=nometadata")];
    let answer = client.send("GET", "/Tables", &accept, b"").json();
    let names = answer["value"].as_array().unwrap().iter().map(|table| table["TableName"].as_str().unwrap());
    let found: Vec<String> = names.map(str::to_lowercase).collect();
    let mut expected = Vec::new();
    for writer in writers {
        let there = |name: &String| found.contains(&name.to_lowercase());
        match &writer.pending {
            Some(Pending::Create(name)) if there(name) => writer.account.create(name).unwrap(),
            Some(Pending::Drop(name)) if !there(name) => writer.account.drop_table(name).unwrap(),
            _ => {}
        }
        expected.extend(writer.account.0.keys().cloned());
    }
    expected.sort();
    assert_eq!(expected, found, "PARTITA_SEED={seed} round {round}: tables");
}

fn read_table(client: &mut Client, table: &str) -> BTreeMap<Place, serde_json::Value> {
    let mut rows = BTreeMap::new();
    let mut continuation = String::new();
    loop {
        let accept = [("Accept", "application/json;odata=nometadata")];
        let answer = client.send("GET", &format!("/{table}()?{continuation}"), &accept, b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        for row in answer.json()["value"].as_array().unwrap() {
            let (partition, row_key) = (row["PartitionKey"].as_str(), row["RowKey"].as_str());
            rows.insert(place(partition.unwrap(), row_key.unwrap()), row.clone());
        }
        let Some(partition) = answer.header("x-ms-continuation-nextpartitionkey") else { return rows };
        let row = answer.header("x-ms-continuation-nextrowkey").unwrap_or_default();
        continuation =
            format!("NextPartitionKey={}&NextRowKey={}", escaped_value(partition), escaped_value(row));
    }
}

/// The first wrong row.
fn difference(account: &Account, table: &str, found: &BTreeMap<Place, serde_json::Value>) -> Option<String> {
    let view = View { base: "", account: ACCOUNT, table, level: "nometadata", select: None };
    let expected = &account.table(table).unwrap().rows;
    for (place, row) in expected {
        let shown: serde_json::Value = serde_json::from_str(&view.one(row)).unwrap();
        if found.get(place) != Some(&shown) {
            return Some(format!("{table}: expected {shown}, found {:?}", found.get(place)));
        }
    }
    let extra = found.iter().find(|(place, _)| !expected.contains_key(*place));
    extra.map(|(_, row)| format!("{table}: nobody wrote {row}, or it was deleted"))
}

fn texts(answers: &[Answer]) -> String {
    let texts: Vec<String> = answers.iter().map(|a| format!("{} {}", a.status, a.text())).collect();
    texts.join("; ")
}
