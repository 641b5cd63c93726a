//! A toy service beside tables, behind the same front. It proves that nothing in the front is made for tables alone, and
//! that bodies of any length pass through it in little memory.

use std::time::Duration;

use common::throttle::Targets;
use front::ServiceKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::ground::{Ground, ask, check, connect, token};

#[tokio::test(flavor = "multi_thread")]
async fn a_port_or_a_host_names_the_service() {
    let ground = Ground::new().await;
    let sas = token("tq");
    let path = format!("/devstoreaccount1/toys?{sas}");
    check(&ask(&ground.toys, "127.0.0.1", "GET", &path, "").await, &["200 OK", "toys of devstoreaccount1"]);
    check(&ask(&ground.tables, "127.0.0.1", "GET", &path, "").await, &["404", "TableNotFound"]);
    let host = "devstoreaccount1.queue.example.com";
    let answer = ask(&ground.tables, host, "GET", &format!("/toys?{sas}"), "").await;
    check(&answer, &["200 OK", "toys of devstoreaccount1"]);
    let host = "devstoreaccount1.table.example.com";
    check(
        &ask(&ground.toys, host, "GET", &format!("/Tables?{sas}"), "").await,
        &["200 OK", "odata.metadata"],
    );
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_service_refuses_in_its_own_words() {
    let ground = Ground::new().await;
    let path = |sas: &str| format!("/devstoreaccount1/broken?{sas}");
    let refused = ask(&ground.toys, "127.0.0.1", "GET", &path(&token("q")), "").await;
    check(&refused, &["418", "toy: ToyBroken"]);
    let refused = ask(&ground.toys, "127.0.0.1", "GET", &path(&token("t")), "").await;
    check(&refused, &["403", "toy: AuthorizationServiceMismatch"]);
    let refused = ask(&ground.toys, "127.0.0.1", "GET", "/devstoreaccount1/toys", "").await;
    check(&refused, &["404", "toy: ResourceNotFound"]);
    let refused = ask(&ground.toys, "127.0.0.1", "GET", &path("sig=x&sv=x"), "").await;
    check(&refused, &["toy: "]);
    ground.end().await;
}

/// A debt takes five seconds to pay off, far longer than these requests take.
#[tokio::test(flavor = "multi_thread")]
async fn services_share_the_accounts_target_and_no_other() {
    const MUCH: u32 = 1_000_000;
    let sas = token("tq");
    let take = |toy: &str| format!("/devstoreaccount1/take/{toy}?{sas}");
    let entity =
        |partition: &str| format!("/devstoreaccount1/Books(PartitionKey='{partition}',RowKey='')?{sas}");
    let insert = async |ground: &Ground, kibibytes: usize| {
        let headers = "127.0.0.1\r\nContent-Type: application/json";
        let tables = format!("/devstoreaccount1/Tables?{sas}");
        check(&ask(&ground.tables, headers, "POST", &tables, "{\"TableName\":\"Books\"}").await, &["201"]);
        let body = format!("{{\"A\":\"{}\"}}", "a".repeat(kibibytes * 1024));
        check(&ask(&ground.tables, headers, "PUT", &entity("ball"), &body).await, &["204"]);
    };

    let ground = Ground::throttled(Targets { account: MUCH, resource: 1 }).await;
    insert(&ground, 30).await;
    let refused = ask(&ground.tables, "127.0.0.1", "GET", &entity("ball"), "").await;
    check(&refused, &["503", "The server is busy."]);
    check(&ask(&ground.tables, "127.0.0.1", "GET", &entity("doll"), "").await, &["404", "ResourceNotFound"]);
    // A toy with the partition's name has a bucket of its own.
    check(&ask(&ground.toys, "127.0.0.1", "GET", &take("ball"), "").await, &["200", "ball of"]);
    check(&ask(&ground.toys, "127.0.0.1", "GET", &take("ball"), "").await, &["503", "toy: ToyInUse"]);
    check(&ask(&ground.toys, "127.0.0.1", "GET", &take("doll"), "").await, &["200", "doll of"]);
    ground.end().await;

    let ground = Ground::throttled(Targets { account: 1, resource: MUCH }).await;
    insert(&ground, 30).await;
    check(&ask(&ground.toys, "127.0.0.1", "GET", &take("ball"), "").await, &["503", "toy: ServerBusy"]);
    ground.end().await;
}

const LOGGING: &str = "<?xml version=\"1.0\"?><StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete>\
<Read>true</Read><Write>true</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>\
<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>\
<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics></StorageServiceProperties>";

#[tokio::test(flavor = "multi_thread")]
async fn properties_logs_and_metrics_are_each_services_own() {
    let ground = Ground::new().await;
    let sas = token("tq");
    let set = format!("/devstoreaccount1/?restype=service&comp=properties&{sas}");
    check(&ask(&ground.toys, "127.0.0.1", "PUT", &set, LOGGING).await, &["202"]);
    let get = |address: String| {
        let target = set.clone();
        async move { ask(&address, "127.0.0.1", "GET", &target, "").await }
    };
    check(&get(ground.toys.clone()).await, &["<Read>true</Read>"]);
    check(&get(ground.tables.clone()).await, &["<Read>false</Read>"]);
    check(
        &ask(&ground.toys, "127.0.0.1", "GET", &format!("/devstoreaccount1/toys?{sas}"), "").await,
        &["200"],
    );
    check(
        &ask(&ground.tables, "127.0.0.1", "GET", &format!("/devstoreaccount1/Tables?{sas}"), "").await,
        &["200"],
    );
    let metrics = format!("/devstoreaccount1/$MetricsHourPrimaryTransactionsQueue()?{sas}");
    let mut shown = String::new();
    for _ in 0..1200 {
        shown = ask(&ground.tables, "127.0.0.1", "GET", &metrics, "").await;
        if shown.contains("200 OK") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    check(&shown, &["200 OK"]);
    let logs = ground.end().await;
    assert_eq!(logs.services(), [ServiceKind::Queue]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_any_length_is_sent_in_little_memory() {
    const LENGTH: u64 = 64 * 1024 * 1024;
    let ground = Ground::new().await;
    let target = format!("/devstoreaccount1/stream/{LENGTH}?{}", token("q"));
    let mut stream = connect(&ground.toys, "127.0.0.1", "GET", &target, "").await;
    let mut buffer = vec![0; 1024 * 1024];
    // The client does not read at first: the server must not produce more than the bound.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut received = 0_u64;
    loop {
        match stream.read(&mut buffer).await.unwrap() {
            0 => break,
            bytes => received += bytes as u64,
        }
    }
    assert!(received > LENGTH && received < LENGTH + 4096, "{received}");
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_does_not_look_whole() {
    const LENGTH: usize = 4 * 1024 * 1024;
    let ground = Ground::new().await;
    let target = format!("/devstoreaccount1/cut/{LENGTH}?{}", token("q"));
    let mut stream = connect(&ground.toys, "127.0.0.1", "GET", &target, "").await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let text = String::from_utf8_lossy(&answer);
    check(&text, &["200 OK", &format!("content-length: {LENGTH}")]);
    assert!(text.len() < LENGTH, "{} bytes came", text.len());
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_any_length_is_taken_in_little_memory() {
    const LENGTH: usize = 64 * 1024 * 1024;
    let ground = Ground::new().await;
    let target = format!("/devstoreaccount1/sink?{}", token("q"));
    let more = format!("Content-Length: {LENGTH}\r\n");
    let mut stream = connect(&ground.toys, "127.0.0.1", "PUT", &target, &more).await;
    let piece = vec![b'x'; 1024 * 1024];
    for _ in 0..LENGTH / piece.len() {
        stream.write_all(&piece).await.unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    check(&answer, &["200 OK", &format!("{LENGTH} bytes")]);
    ground.end().await;
}
