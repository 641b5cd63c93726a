//! How fast other clients are served while one token sends the most expensive requests. Prints figures and checks
//! nothing: run it by hand, with a release build.
//!
//!     cargo test --release -p partita-cli --test all bounded::latency -- --ignored --nocapture

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::kit::{JSON, JSON_BODY, Target, flood};
use super::{guard, queues};
use crate::support::{ACCOUNT, Client, KEY};

const OTHER: &str = "other";
/// How long each request is sent, and on how many connections.
const TIME: Duration = Duration::from_secs(8);
const CONNECTIONS: usize = 8;

#[test]
#[ignore = "prints measurements and checks nothing"]
fn others_are_answered_while_one_token_sends_expensive_requests() {
    let accounts = [format!("{ACCOUNT}:{KEY}"), format!("{OTHER}:{KEY}")];
    let target = Target::start_with(&["--account", &accounts[0], "--account", &accounts[1]]);
    let mut client = target.client();
    guard::fill(&target, &mut client);
    let mut other = Client::new(target.server.address, OTHER, KEY);
    assert_eq!(other.send("POST", "/Tables", &[JSON_BODY, JSON], br#"{"TableName":"Mine"}"#).status, 201);
    for row in 0..100 {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row:03}","V":"{}"}}"#, "v".repeat(200));
        assert_eq!(other.send("POST", "/Mine", &[JSON_BODY, JSON], body.as_bytes()).status, 201);
    }
    println!("| meanwhile | get | write | scan | /health/live |\n|---|---|---|---|---|");
    let mut queues = target.server.queue_client();
    queues::fill(&target, &mut queues);
    measure(&target, "nothing", None);
    for (name, request) in guard::forms(&client) {
        measure(&target, name, Some((target.server.address, &request)));
    }
    for (name, request) in queues::forms(&queues) {
        measure(&target, &format!("queue: {name}"), Some((target.server.queue_address(), &request)));
    }
}

fn measure(target: &Target, name: &str, worst: Option<(SocketAddr, &[u8])>) {
    let over = AtomicBool::new(false);
    thread::scope(|threads| {
        if let Some((address, request)) = worst {
            let over = &over;
            for _ in 0..CONNECTIONS {
                threads.spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        flood(address, 1, 1, request);
                    }
                });
            }
        }
        let address = target.server.address;
        let kinds: [fn(&mut Client, usize) -> u16; 4] = [get, write, scan, live];
        let watchers: Vec<_> = kinds
            .into_iter()
            .map(|ask| {
                threads.spawn(move || {
                    let mut client = Client::new(address, OTHER, KEY);
                    let (start, mut times) = (Instant::now(), Vec::new());
                    while start.elapsed() < TIME {
                        let asked = Instant::now();
                        let status = ask(&mut client, times.len());
                        assert!((200..300).contains(&status), "{status}");
                        times.push(asked.elapsed());
                        thread::sleep(Duration::from_millis(5));
                    }
                    shown(times)
                })
            })
            .collect();
        let columns: Vec<String> = watchers.into_iter().map(|watcher| watcher.join().unwrap()).collect();
        over.store(true, Ordering::Relaxed);
        println!("| {name} | {} |", columns.join(" | "));
    });
}

/// p50, p99 and the longest, in milliseconds.
fn shown(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |of_hundred: usize| times[(times.len() - 1) * of_hundred / 100].as_secs_f64() * 1000.0;
    format!("{:.1} / {:.1} / {:.1}", at(50), at(99), at(100))
}

fn get(client: &mut Client, n: usize) -> u16 {
    client.send("GET", &format!("/Mine(PartitionKey='p',RowKey='{:03}')", n % 100), &[JSON], b"").status
}

fn write(client: &mut Client, n: usize) -> u16 {
    let path = format!("/Mine(PartitionKey='w',RowKey='{}')", n % 100);
    client.send("PUT", &path, &[JSON_BODY, JSON], br#"{"V":1}"#).status
}

fn scan(client: &mut Client, _: usize) -> u16 {
    client.send("GET", "/Mine()?$filter=PartitionKey%20eq%20'p'", &[JSON], b"").status
}

fn live(client: &mut Client, _: usize) -> u16 {
    client.send_raw("GET", "/health/live", &[], b"").map_or(0, |answer| answer.status)
}
