//! Batches that are too large, or too concurrent, for a transcript.
//! The other cases are in `conformance/wire/batch_*.http`.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::fmt::Write as _;
use std::sync::Barrier;

use crate::support::{self, Answer, Client, Partita};

const JSON: &str = "application/json;odata=nometadata";

fn on_each_engine(test: impl Fn(&mut Client)) {
    test(&mut Partita::in_memory().client());
    let directory = tempfile::tempdir().unwrap();
    test(&mut Partita::in_directory(directory.path()).client());
}

fn create(client: &mut Client, table: &str) {
    let headers = [("Content-Type", "application/json"), ("Prefer", "return-no-content")];
    let body = format!("{{\"TableName\":\"{table}\"}}");
    assert_eq!(client.send("POST", "/Tables", &headers, body.as_bytes()).status, 204);
}

/// A batch body of one change set around operations: each a request line, headers, and a body.
fn change_set(operations: &[String]) -> String {
    let mut body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_owned();
    for operation in operations {
        let _ = write!(
            body,
            "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n{operation}\r\n"
        );
    }
    body + "--c--\r\n--b--\r\n"
}

fn insert(row: &str, properties: &str) -> String {
    format!(
        "POST /Rows HTTP/1.1\r\nContent-Type: application/json\r\nPrefer: return-no-content\r\n\r\n{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\"{properties}}}"
    )
}

fn send(client: &mut Client, operations: &[String]) -> Answer {
    let headers = [("Content-Type", "multipart/mixed; boundary=b"), ("Accept", JSON)];
    client.send("POST", "/$batch", &headers, change_set(operations).as_bytes())
}

fn rows(client: &mut Client) -> Vec<String> {
    let answer = client.send("GET", "/Rows()?$select=RowKey", &[("Accept", JSON)], b"").json();
    answer["value"].as_array().unwrap().iter().map(|r| r["RowKey"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_hundred_operations_are_one_transaction_and_one_more_is_refused() {
    on_each_engine(|client| {
        create(client, "Rows");
        let operations: Vec<String> = (0..101).map(|n| insert(&format!("{n:03}"), "")).collect();
        let refused = send(client, &operations);
        assert_eq!(refused.status, 202);
        let text = refused.text();
        assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{text}");
        let expected = "HTTP/1.1 400 Bad Request\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nPreference-Applied: return-no-content\r\nDataServiceVersion: 3.0;\r\nContent-Type: application/json;odata=nometadata;streaming=true;charset=utf-8\r\n\r\n{\"odata.error\":{\"code\":\"InvalidInput\",\"message\":{\"lang\":\"en-US\",\"value\":\"99:The batch request operation exceeds the maximum 100 changes per change set.\\nRequestId:";
        assert!(text.contains(expected), "{text}");
        assert_eq!(rows(client), [""; 0]);

        let text = send(client, &operations[..100]).text();
        assert_eq!(text.matches("HTTP/1.1 204 No Content\r\n").count(), 100, "{text}");
        let answered: Vec<&str> =
            text.split("\r\nLocation: ").skip(1).map(|t| t.split("RowKey='").nth(1).unwrap()).collect();
        for (n, location) in answered.iter().enumerate() {
            assert!(location.starts_with(&format!("{n:03}'")), "not in order: {location}");
        }
        assert_eq!(rows(client).len(), 100);
    });
}

#[test]
fn a_failure_of_the_last_of_a_hundred_operations_undoes_all() {
    on_each_engine(|client| {
        create(client, "Rows");
        send(client, &[insert("099", "")]);
        let operations: Vec<String> = (0..100).map(|n| insert(&format!("{n:03}"), "")).collect();
        let text = send(client, &operations).text();
        assert!(text.contains("99:The specified entity already exists."), "{text}");
        assert_eq!(rows(client), ["099"]);
    });
}

#[test]
fn a_batch_may_have_four_mebibytes() {
    on_each_engine(|client| {
        create(client, "Rows");
        let value = format!(",\"V\":\"{}\"", "v".repeat(30_000));
        let size = change_set(&[insert("000", &value)]).len();
        let many = 4 * 1024 * 1024 / size + 1;
        let operations: Vec<String> =
            (0..many + 2).map(|n| insert(&format!("{:03}", n % 100), &value)).collect();
        // Above the limit: refused before it is parsed.
        let too_large = send(client, &operations);
        assert_eq!(too_large.status, 413, "{}", too_large.text());
        assert_eq!(too_large.code(), "RequestBodyTooLarge");
        assert!(too_large.text().contains(
            "\"The request body is too large and exceeds the maximum permissible limit.\\nRequestId:"
        ));
        assert_eq!(rows(client), [""; 0]);
        // Exactly at the limit: parsed. The refusal of 139 operations for their number shows this.
        let mut body = change_set(&operations[..many - 2]);
        body.push_str(&"x".repeat(4 * 1024 * 1024 - body.len()));
        let headers = [("Content-Type", "multipart/mixed; boundary=b"), ("Accept", JSON)];
        let answer = client.send("POST", "/$batch", &headers, body.as_bytes());
        assert_eq!(answer.status, 202, "{}", answer.text());
        body.push('x');
        assert_eq!(client.send("POST", "/$batch", &headers, body.as_bytes()).status, 413);
    });
}

#[test]
fn a_refusal_of_a_large_value_has_its_index_only_among_several_operations() {
    on_each_engine(|client| {
        create(client, "Rows");
        let long = format!(",\"V\":\"{}\"", "v".repeat(32 * 1024 + 1));
        let heavy: String = (0..17).map(|n| format!(",\"P{n}\":\"{}\"", "v".repeat(32 * 1024))).collect();
        for (properties, code, text) in [
            (&long, "PropertyValueTooLarge", "The property value exceeds the maximum allowed size (64KB)."),
            (&heavy, "EntityTooLarge", "The entity is larger than the maximum allowed size (1MB)."),
        ] {
            let alone = send(client, &[insert("1", properties)]).text();
            assert!(alone.contains(code) && alone.contains(&format!("\"value\":\"{text}")), "{alone}");
            let second = send(client, &[insert("1", ""), insert("2", properties)]).text();
            assert!(second.contains(code) && second.contains(&format!("\"value\":\"1:{text}")), "{second}");
            assert_eq!(rows(client), [""; 0]);
        }
    });
}

#[test]
fn a_batch_may_be_sent_in_chunks() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    let body = change_set(&[insert("1", ""), insert("2", "")]);
    let chunks: String = body
        .as_bytes()
        .chunks(7)
        .map(|c| format!("{:x}\r\n{}\r\n", c.len(), String::from_utf8_lossy(c)))
        .collect();
    let headers =
        [("Content-Type", "multipart/mixed; boundary=b"), ("Accept", JSON), ("Transfer-Encoding", "chunked")];
    let answer = client.send("POST", "/$batch", &headers, format!("{chunks}0\r\n\r\n").as_bytes());
    assert_eq!(answer.status, 202, "{}", answer.text());
    assert_eq!(rows(&mut client), ["1", "2"]);
}

#[test]
fn of_concurrent_batches_with_the_same_condition_exactly_one_succeeds() {
    const RIVALS: usize = 8;
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    for round in 0..20 {
        let text = send(&mut client, &[insert(&format!("lock{round}"), "")]).text();
        let etag = text.split("ETag: ").nth(1).unwrap().split("\r\n").next().unwrap().to_owned();
        let barrier = Barrier::new(RIVALS);
        let attempt = |rival: usize| {
            let mut client = server.client();
            let update = format!(
                "PUT /Rows(PartitionKey='p',RowKey='lock{round}') HTTP/1.1\r\nContent-Type: application/json\r\nIf-Match: {etag}\r\n\r\n{{}}"
            );
            barrier.wait();
            send(&mut client, &[insert(&format!("won{round}-{rival}"), ""), update]).text()
        };
        let answers: Vec<String> = std::thread::scope(|scope| {
            let rivals: Vec<_> = (0..RIVALS).map(|rival| scope.spawn(move || attempt(rival))).collect();
            rivals.into_iter().map(|rival| rival.join().unwrap()).collect()
        });
        let won = answers.iter().filter(|text| text.matches("HTTP/1.1 204").count() == 2).count();
        let lost = answers.iter().filter(|text| text.contains("1:The update condition")).count();
        assert_eq!((won, lost), (1, RIVALS - 1), "{answers:?}");
        let prefix = format!("won{round}-");
        assert_eq!(rows(&mut client).iter().filter(|row| row.starts_with(&prefix)).count(), 1);
    }
}

#[test]
fn readers_see_all_of_a_batch_or_nothing() {
    on_each_engine(|client| {
        create(client, "Rows");
        let write = |value: usize| -> Vec<String> {
            let put = |n: usize| {
                format!(
                    "PUT /Rows(PartitionKey='p',RowKey='{n}') HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{{\"V\":{value}}}"
                )
            };
            (0..20).map(put).collect()
        };
        send(client, &write(0));
        let mut reader = Client::new(client.address, support::ACCOUNT, support::KEY);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for value in 1..60 {
                    let text = send(client, &write(value)).text();
                    assert_eq!(text.matches("HTTP/1.1 204").count(), 20, "{text}");
                }
            });
            while !writer.is_finished() {
                let seen = reader.send("GET", "/Rows()?$select=V", &[("Accept", JSON)], b"").json();
                let values = seen["value"].as_array().unwrap();
                assert_eq!(values.len(), 20);
                assert!(values.iter().all(|value| *value == values[0]), "half a batch: {values:?}");
            }
        });
    });
}
