//! Callers above their targets get 503, and their request is not done.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use crate::support::{Answer, Client, Partita};

const JSON: [(&str, &str); 2] = [("Content-Type", "application/json"), ("Accept", "application/json")];

/// Targets are so low that a busy machine asks for more too.
fn server(targets: &str) -> (Partita, Client) {
    let server = Partita::start(&["--in-memory", "--throttle", targets]);
    let mut client = server.client();
    assert_eq!(client.send("POST", "/Tables", &JSON, br#"{"TableName":"Books"}"#).status, 201);
    (server, client)
}

fn insert(client: &mut Client, partition: &str, row: usize) -> Answer {
    let body = format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row}"}}"#);
    client.send("POST", "/Books", &JSON, body.as_bytes())
}

/// Writes until one is refused. Returns that answer, and how many were done.
fn until_busy(client: &mut Client, partition: &str) -> (Answer, usize) {
    for row in 0..10_000 {
        let answer = insert(client, partition, row);
        if answer.status != 201 {
            return (answer, row);
        }
    }
    panic!("never refused");
}

#[test]
fn a_partition_over_its_target_is_busy_and_others_are_not() {
    let (_server, mut client) = server("100000/10");
    let (refused, done) = until_busy(&mut client, "hot");
    assert_eq!((refused.status, refused.code().as_str()), (503, "ServerBusy"));
    assert!(refused.text().contains(r#""value":"The server is busy.\nRequestId:"#), "{}", refused.text());
    assert!(done >= 10, "{done}");
    assert_eq!(insert(&mut client, "cool", 0).status, 201);
    let rows = testing::wait_until("the partition recovers", || {
        let answer = client.send("GET", "/Books?$filter=PartitionKey%20eq%20'hot'", &JSON, b"");
        (answer.status == 200).then(|| answer.json()["value"].as_array().unwrap().len())
    });
    assert_eq!(rows, done, "what was refused was not done");
}

#[test]
fn a_queue_over_its_target_is_busy_and_others_are_not() {
    let server = Partita::start(&["--in-memory", "--throttle", "100000/10"]);
    let mut client = server.queue_client();
    for queue in ["/hot", "/cool"] {
        assert_eq!(client.send("PUT", queue, &[], b"").status, 201);
    }
    let body = b"<QueueMessage><MessageText>a</MessageText></QueueMessage>";
    let mut put = |queue: &str| client.send("POST", &format!("{queue}/messages"), &[], body);
    let refused =
        (0..10_000).map(|_| put("/hot")).find(|answer| answer.status != 201).expect("never refused");
    assert_eq!((refused.status, refused.header("x-ms-error-code")), (503, Some("ServerBusy")));
    assert!(refused.text().contains("<Message>The server is busy.\nRequestId:"), "{}", refused.text());
    assert_eq!(put("/cool").status, 201);
}

#[test]
fn an_account_over_its_target_is_busy() {
    let (_server, mut client) = server("10/1000000");
    let (refused, _) = until_busy(&mut client, "p");
    assert!(
        refused.text().contains("Operations per second is over the account limit."),
        "{}",
        refused.text()
    );
}

#[test]
fn a_batch_counts_each_of_its_operations_and_is_refused_as_a_whole() {
    // The first batch makes a debt of five seconds.
    let (_server, mut client) = server("100000/5");
    let batch = |first: usize| {
        let parts: String = (first..first + 60)
            .map(|row| {
                format!(
                    "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                     POST /Books HTTP/1.1\r\nContent-Type: application/json\r\nPrefer: return-no-content\r\n\r\n\
                     {{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\"}}\r\n"
                )
            })
            .collect();
        format!("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{parts}--c--\r\n--b--\r\n")
    };
    let headers = [("Content-Type", "multipart/mixed; boundary=b"), ("Accept", "application/json")];
    assert_eq!(client.send("POST", "/$batch", &headers, batch(0).as_bytes()).status, 202);
    let refused = client.send("POST", "/$batch", &headers, batch(60).as_bytes());
    assert_eq!((refused.status, refused.code().as_str()), (503, "ServerBusy"));
}

#[test]
fn a_scan_costs_the_entities_it_examines_not_those_it_returns() {
    // A few scans that return nothing exceed the target; as many point reads would not.
    let (_server, mut client) = server("250/100000");
    for row in 0..200 {
        assert_eq!(insert(&mut client, "p", row).status, 201);
    }
    let scan = |client: &mut Client| client.send("GET", "/Books?$filter=Nope%20eq%201", &JSON, b"").status;
    let statuses: Vec<u16> = (0..10).map(|_| scan(&mut client)).collect();
    assert!(statuses.contains(&503), "{statuses:?}");
}
