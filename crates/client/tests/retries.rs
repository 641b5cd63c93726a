//! Services that are busy, slow or unreachable: what is retried, and which error a caller gets.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use crate::support;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use partita_client::{
    Entity, Error, Match, MessageHandle, Queue, QueueService, RetryPolicy, Table, TableService, Transaction,
};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with one request.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A status and a code.
    Answer(u16, &'static str),
    /// With `Retry-After`, in seconds.
    Later(u16, u64),
    /// Reads it, then closes the connection.
    Lost,
    /// Reads it, and does not answer within the timeout.
    Silent,
    /// The answer to a transaction: 202, with this inside.
    Inside(u16, &'static str),
    /// The answer to a message that was put.
    Stored,
}

use Step::{Answer, Inside, Later, Lost, Silent, Stored};

/// A server that follows a script, one step for each request, and counts the requests.
struct Script {
    table: Table,
    queue: Queue,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Script {
    async fn new(steps: &[Step], retry: RetryPolicy) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/account", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (steps, seen) = (steps.to_vec(), requests.clone());
        tokio::spawn(async move {
            let mut held = Vec::new();
            let mut steps = steps.into_iter();
            while let Ok((connection, _)) = listener.accept().await {
                held.extend(serve(connection, &mut steps, &seen).await);
            }
        });
        let service =
            TableService::with_key(&url, "account", "AAAA").unwrap().retry(retry.clone()).build().unwrap();
        let queues = QueueService::with_key(&url, "account", "AAAA").unwrap().retry(retry).build().unwrap();
        Self { table: service.table("Books").unwrap(), queue: queues.queue("jobs").unwrap(), requests }
    }

    fn methods(&self) -> String {
        self.requests.lock().unwrap().join(" ")
    }
}

/// Answers one request, or returns the connection, which the caller keeps open.
async fn serve(
    connection: TcpStream,
    steps: &mut impl Iterator<Item = Step>,
    seen: &Mutex<Vec<String>>,
) -> Option<TcpStream> {
    let mut reader = BufReader::new(connection);
    let (mut line, mut length, mut method) = (String::new(), 0, None);
    while reader.read_line(&mut line).await.unwrap() > 2 {
        method.get_or_insert_with(|| line.split(' ').next().unwrap().to_owned());
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length]).await.unwrap();
    seen.lock().unwrap().extend(method);
    let mut connection = reader.into_inner();
    let document = |code: &str| {
        format!(
            "{{\"odata.error\":{{\"code\":\"{code}\",\"message\":{{\"lang\":\"en-US\",\"value\":\"1:words\"}}}}}}"
        )
    };
    let answer = match steps.next().unwrap_or(Answer(500, "TheScriptIsOver")) {
        Lost => return None,
        Silent => return Some(connection),
        Answer(status @ 200..=299, _) => {
            let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
            format!(
                "HTTP/1.1 {status} x\r\nETag: W/\"1\"\r\nContent-Length: {}\r\n\r\n{entity}",
                entity.len()
            )
        }
        Answer(status, code) => {
            let body = document(code);
            format!(
                "HTTP/1.1 {status} x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        }
        Stored => {
            let time = "Fri, 01 Jan 2100 00:00:00 GMT";
            let body = format!(
                "<QueueMessagesList><QueueMessage><MessageId>i</MessageId><InsertionTime>{time}</InsertionTime>\
                 <ExpirationTime>{time}</ExpirationTime><PopReceipt>r</PopReceipt><TimeNextVisible>{time}</TimeNextVisible>\
                 </QueueMessage></QueueMessagesList>"
            );
            format!("HTTP/1.1 201 x\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        }
        Later(status, seconds) => {
            format!("HTTP/1.1 {status} x\r\nRetry-After: {seconds}\r\nContent-Length: 0\r\n\r\n")
        }
        Inside(status, code) => {
            let body = format!(
                "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\n\
                 HTTP/1.1 {status} x\r\nETag: W/\"1\"\r\n\r\n{}\r\n--c--\r\n--b--\r\n",
                if status < 300 { String::new() } else { document(code) }
            );
            let kind = "multipart/mixed; boundary=b";
            format!("HTTP/1.1 202 x\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        }
    };
    connection.write_all(answer.as_bytes()).await.unwrap();
    connection.shutdown().await.unwrap();
    None
}

fn shown<T>(outcome: Result<T, Error>) -> String {
    match outcome {
        Ok(_) => "done".to_owned(),
        Err(Error::Refused(refused)) => format!("refused {}", refused.status),
        Err(Error::OutcomeUnknown(_)) => "unknown".to_owned(),
        Err(Error::Unanswered(_)) => "unanswered".to_owned(),
        Err(other) => format!("{other:?}"),
    }
}

/// Only where an answer never comes is the wait short: else a busy machine would make one late that comes.
fn patience(steps: &[Step]) -> Duration {
    let is_silent = steps.iter().any(|step| matches!(step, Silent));
    Duration::from_secs(if is_silent { 2 } else { 60 })
}

async fn check(write: &str, steps: &[Step], expected: &str, requests: usize) {
    let retry = support::quick().attempts(3).answer_within(patience(steps));
    let script = Script::new(steps, retry).await;
    let (table, book) = (&script.table, Entity::new("p", "r"));
    let etag = partita_client::ETag::new("W/\"0\"");
    let outcome = match write {
        "get" => shown(table.get::<Entity>("p", "r").await),
        "insert" => shown(table.insert(&book).await),
        "upsert" => shown(table.upsert_replace(&book).await),
        "replace" => shown(table.replace(&book, &etag).await),
        "delete" => shown(table.delete("p", "r", Match::Any).await),
        "transaction" => {
            let mut transaction = Transaction::new();
            transaction.insert(&book).unwrap();
            shown(table.submit(transaction).await)
        }
        other => panic!("{other}"),
    };
    assert_eq!(outcome, expected, "{write} {steps:?}");
    let sent = script.methods();
    assert_eq!(sent.split_whitespace().count(), requests, "{write} {steps:?}: {sent}");
}

#[tokio::test]
async fn temporary_failures_are_retried() {
    check("get", &[Answer(503, "ServerBusy"), Answer(200, "")], "done", 2).await;
    check("get", &[Answer(500, "OperationTimedOut"), Lost, Answer(200, "")], "done", 3).await;
    check("get", &[Silent, Answer(200, "")], "done", 2).await;
    check("insert", &[Answer(503, "ServerBusy"), Answer(204, "")], "done", 2).await;
    check("upsert", &[Lost, Answer(500, "InternalError"), Answer(204, "")], "done", 3).await;
    check("transaction", &[Inside(503, "ServerBusy"), Inside(204, "")], "done", 2).await;
}

#[tokio::test]
async fn a_refusal_is_not_retried() {
    for status in [400, 403, 404, 409, 412, 413, 501] {
        check("get", &[Answer(status, "No")], &format!("refused {status}"), 1).await;
        check("insert", &[Answer(status, "No")], &format!("refused {status}"), 1).await;
    }
    check("transaction", &[Inside(409, "EntityAlreadyExists")], "refused 409", 1).await;
}

#[tokio::test]
async fn the_number_of_attempts_is_limited() {
    check("get", &[Answer(503, "ServerBusy"); 9], "refused 503", 3).await;
    check("get", &[Lost; 9], "unanswered", 3).await;
    check("insert", &[Answer(503, "ServerBusy"); 9], "refused 503", 3).await;
}

#[tokio::test]
async fn a_write_that_may_have_been_done_is_not_reported_as_refused() {
    // The first attempt may be the reason for the second answer.
    check("insert", &[Lost, Answer(409, "EntityAlreadyExists")], "unknown", 2).await;
    check("insert", &[Answer(500, "OperationTimedOut"), Answer(409, "EntityAlreadyExists")], "unknown", 2)
        .await;
    check("replace", &[Lost, Answer(412, "UpdateConditionNotSatisfied")], "unknown", 2).await;
    check("transaction", &[Lost, Inside(409, "EntityAlreadyExists")], "unknown", 2).await;
    check("insert", &[Lost; 9], "unknown", 3).await;
    check("insert", &[Lost, Answer(503, "ServerBusy"), Answer(503, "ServerBusy")], "unknown", 3).await;
    // The goal is reached, no matter by whom.
    check("delete", &[Lost, Answer(404, "ResourceNotFound")], "done", 2).await;
    // 503 means that the first attempt was not done, so somebody else has inserted the entity.
    check("insert", &[Answer(503, "ServerBusy"), Answer(409, "EntityAlreadyExists")], "refused 409", 2).await;
    check("delete", &[Answer(404, "ResourceNotFound")], "refused 404", 1).await;
}

async fn check_queue(request: &str, steps: &[Step], expected: &str, requests: usize) {
    let retry = support::quick().attempts(3).answer_within(patience(steps));
    let script = Script::new(steps, retry).await;
    let (queue, mut handle) = (&script.queue, MessageHandle::new("i", "r"));
    let outcome = match request {
        "put" => shown(queue.put("a").await),
        "get" => shown(queue.get(1, Duration::from_secs(1)).await),
        "renew" => shown(queue.renew(&mut handle, Duration::ZERO).await),
        "update" => shown(queue.update(&mut handle, "b", Duration::ZERO).await),
        "delete" => shown(queue.delete(&handle).await),
        "drop" => shown(queue.drop().await),
        other => panic!("{other}"),
    };
    assert_eq!(outcome, expected, "{request} {steps:?}");
    let sent = script.methods();
    assert_eq!(sent.split_whitespace().count(), requests, "{request} {steps:?}: {sent}");
    assert_eq!(handle.receipt, "r", "a receipt that nobody was given");
}

#[tokio::test]
async fn a_message_is_put_twice_rather_than_never() {
    check_queue("put", &[Answer(503, "ServerBusy"), Stored], "done", 2).await;
    check_queue("put", &[Lost, Answer(500, "OperationTimedOut"), Stored], "done", 3).await;
    check_queue("put", &[Lost; 9], "unknown", 3).await;
    check_queue("put", &[Answer(404, "QueueNotFound")], "refused 404", 1).await;
}

#[tokio::test]
async fn a_message_that_may_have_been_changed_is_not_reported_as_missing() {
    let gone = Answer(404, "MessageNotFound");
    for change in ["renew", "update"] {
        // The first attempt may have changed the receipt.
        check_queue(change, &[Lost, gone], "unknown", 2).await;
        check_queue(change, &[Answer(500, "OperationTimedOut"), gone], "unknown", 2).await;
        check_queue(change, &[Answer(503, "ServerBusy"), gone], "refused 404", 2).await;
        check_queue(change, &[gone], "refused 404", 1).await;
    }
    // The goal is reached, no matter by whom.
    for removal in ["delete", "drop"] {
        check_queue(removal, &[Lost, gone], "done", 2).await;
        check_queue(removal, &[Answer(503, "ServerBusy"), gone], "refused 404", 2).await;
        check_queue(removal, &[gone], "refused 404", 1).await;
    }
}

#[tokio::test]
async fn doubtful_writes_are_not_repeated_if_the_policy_forbids_it() {
    let script = Script::new(&[Lost, Answer(204, "")], support::quick().repeat_doubtful(false)).await;
    let outcome = script.table.upsert_replace(&Entity::new("p", "r")).await;
    assert_eq!((shown(outcome).as_str(), script.methods().as_str()), ("unknown", "PUT"));
}

#[tokio::test]
async fn a_pause_is_as_long_as_retry_after_says() {
    let script = Script::new(&[Later(503, 1), Answer(200, "")], support::quick()).await;
    let begun = Instant::now();
    script.table.get::<Entity>("p", "r").await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn an_unreachable_service_means_that_nothing_was_done() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let service = TableService::with_key(&format!("http://{free}/a"), "a", "AAAA").unwrap();
    let service = service.retry(support::quick().attempts(2)).build().unwrap();
    let outcome = service.table("Books").unwrap().insert(&Entity::new("p", "r")).await;
    assert!(matches!(outcome, Err(Error::Unanswered(_))), "{outcome:?}");
}

/// A policy with three attempts, and what it reports before its pauses.
fn told() -> (RetryPolicy, Arc<Mutex<Vec<String>>>) {
    let said = Arc::new(Mutex::new(Vec::new()));
    let told = said.clone();
    let retry = support::quick().attempts(3);
    (retry.on_pause(move |why, pause| told.lock().unwrap().push(format!("{why} {}", pause.as_secs()))), said)
}

#[tokio::test]
async fn each_pause_is_reported_with_its_reason() {
    let (retry, said) = told();
    let script = Script::new(&[Later(503, 1), Answer(503, "ServerBusy"), Answer(200, "")], retry).await;
    script.table.get::<Entity>("p", "r").await.unwrap();
    assert_eq!(*said.lock().unwrap(), ["503 1", "503 ServerBusy: 1:words 0"]);
}

#[tokio::test]
async fn with_needs_contact_a_failed_first_connection_is_not_retried() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (needs_contact, pauses) in [(true, 0), (false, 2)] {
        let (retry, said) = told();
        let service = TableService::with_key(&format!("http://{free}/a"), "a", "AAAA").unwrap();
        let service = service.retry(retry.needs_contact(needs_contact)).build().unwrap();
        let outcome = service.table("Books").unwrap().get::<Entity>("p", "r").await;
        assert!(matches!(outcome, Err(Error::Unanswered(_))), "{outcome:?}");
        assert_eq!(said.lock().unwrap().len(), pauses);
    }
}

#[tokio::test]
async fn with_needs_contact_a_service_that_has_answered_is_retried() {
    let (retry, said) = told();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/account", listener.local_addr().unwrap());
    let service = TableService::with_key(&url, "account", "AAAA").unwrap();
    let table = service.retry(retry.needs_contact(true)).build().unwrap().table("Books").unwrap();
    let requests = Mutex::new(Vec::new());
    let answered = async {
        let (connection, _) = listener.accept().await.unwrap();
        serve(connection, &mut [Answer(200, "")].into_iter(), &requests).await;
    };
    let (found, ()) = tokio::join!(table.get::<Entity>("p", "r"), answered);
    found.unwrap();
    drop(listener);
    let outcome = table.get::<Entity>("p", "r").await;
    assert!(matches!(outcome, Err(Error::Unanswered(_))), "{outcome:?}");
    assert_eq!(said.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn an_invalid_request_is_not_sent() {
    let script = Script::new(&[], support::quick()).await;
    let broken = partita_client::ETag::new("a\r\nb");
    let outcome = script.table.delete("p", "r", &broken).await;
    assert!(matches!(outcome, Err(Error::Invalid(_))), "{outcome:?}");
    assert_eq!(script.methods(), "");
}

#[tokio::test]
async fn the_failed_operation_of_a_transaction_is_named() {
    let script = Script::new(&[Inside(409, "EntityAlreadyExists")], RetryPolicy::never()).await;
    let mut transaction = Transaction::new();
    transaction.insert(&Entity::new("p", "a")).unwrap().insert(&Entity::new("p", "b")).unwrap();
    let error = script.table.submit(transaction).await.unwrap_err();
    assert_eq!((error.index(), error.code()), (Some(1), Some("EntityAlreadyExists")));
    assert_eq!(error.refusal().unwrap().message, "words");
}
