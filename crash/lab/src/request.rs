//! Sends operations as requests, and turns answers into outcomes.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use connection::{Client, SendError, UnsignedRequest};
use serde_json::Value;

use crate::operation::{Change, Condition, Operation, Outcome, Place, Stamp, Verb};
use crate::world;

/// Much longer than any time limit of the server. A request without an answer for this time is lost.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

const JSON: &str = "Accept: application/json;odata=nometadata\r\n";
const BATCH: &str =
    "Accept: application/json;odata=nometadata\r\nContent-Type: multipart/mixed; boundary=batch_lab\r\n";

/// Why an operation has no outcome.
#[derive(Debug)]
pub enum Failure {
    /// Nobody listened: it was never sent.
    NotSent,
    /// An answer that a server must not give.
    Wrong(String),
}

pub async fn send(
    client: &mut Client,
    writer: usize,
    number: usize,
    operation: &Operation,
) -> Result<Outcome, Failure> {
    let base = client.endpoint().url();
    let (method, path, headers, body) = encode(&base, writer, number, operation);
    let request = UnsignedRequest {
        method,
        path: &path,
        query: "",
        headers: &headers,
        body: body.as_deref().map(str::as_bytes),
    };
    let answer = match tokio::time::timeout(ANSWER_TIME_MAX, client.send(request, Instant::now())).await {
        Err(_) => {
            return Err(Failure::Wrong(format!("no answer within {ANSWER_TIME_MAX:?} to {operation:?}")));
        }
        Ok(Err(SendError::Unreachable { .. })) => return Err(Failure::NotSent),
        Ok(Err(SendError::Broken(why))) => return Ok(Outcome::Unknown(why.to_string())),
        Ok(Ok(answer)) => answer,
    };
    let text = String::from_utf8_lossy(answer.body);
    match answer.status {
        202 => batch_outcome(&text, operation.changes().len()),
        200..300 => {
            let etag = answer.etag.and_then(|etag| std::str::from_utf8(etag).ok()).and_then(Stamp::of_etag);
            Ok(Outcome::Done(operation.changes().iter().map(|_| etag.clone()).collect()))
        }
        status @ 400..500 => Ok(Outcome::Refused(status)),
        503 => Ok(Outcome::TurnedAway(format!("503 {text}"))),
        status @ 500..600 => Ok(Outcome::Unknown(format!("{status} {text}"))),
        status => Err(Failure::Wrong(format!("answered with {status} {text}"))),
    }
}

fn encode(
    base: &str,
    writer: usize,
    number: usize,
    operation: &Operation,
) -> (&'static str, String, String, Option<String>) {
    match operation {
        Operation::Create { table } => {
            let headers = format!("{JSON}Content-Type: application/json\r\nPrefer: return-no-content\r\n");
            ("POST", "/Tables".to_owned(), headers, Some(format!("{{\"TableName\":\"{table}\"}}")))
        }
        Operation::Drop { table } => ("DELETE", format!("/Tables('{table}')"), JSON.to_owned(), None),
        Operation::Write { table, changes } => match &changes[..] {
            [one] => encode_change(table, writer, number, one),
            many => {
                let mut body =
                    "--batch_lab\r\nContent-Type: multipart/mixed; boundary=changeset_lab\r\n\r\n".to_owned();
                for change in many {
                    let (method, path, headers, entity) = encode_change(table, writer, number, change);
                    // Writing into a string can't fail.
                    let _ = write!(
                        body,
                        "--changeset_lab\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\
                         \r\n{method} {base}{path} HTTP/1.1\r\n{headers}\r\n{}\r\n",
                        entity.unwrap_or_default()
                    );
                }
                body.push_str("--changeset_lab--\r\n--batch_lab--\r\n");
                ("POST", "/$batch".to_owned(), BATCH.to_owned(), Some(body))
            }
        },
    }
}

fn encode_change(
    table: &str,
    writer: usize,
    number: usize,
    change: &Change,
) -> (&'static str, String, String, Option<String>) {
    let (partition, row, trace) = (&change.partition, &change.row, change.trace);
    let mut headers = JSON.to_owned();
    match &change.condition {
        Condition::None => {}
        Condition::Exists => headers.push_str("If-Match: *\r\n"),
        Condition::Version(stamp) => {
            let _ = write!(headers, "If-Match: {}\r\n", stamp.etag());
        }
    }
    let entity_path = entity_path(table, partition, row);
    let (method, path) = match change.verb {
        Verb::Delete => return ("DELETE", entity_path, headers, None),
        Verb::Insert => ("POST", format!("/{table}")),
        Verb::Replace => ("PUT", entity_path),
        Verb::Merge => ("MERGE", entity_path),
    };
    headers.push_str("Content-Type: application/json\r\nPrefer: return-no-content\r\n");
    let body = format!(
        "{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"Writer\":{writer},\"Operation\":{number},\
         \"Sequence\":{},\"{}\":\"{}\"}}",
        trace.sequence,
        world::name(trace.slot),
        trace.text(writer)
    );
    (method, path, headers, Some(body))
}

/// The lab's own keys need no escaping.
fn entity_path(table: &str, partition: &str, row: &str) -> String {
    format!("/{table}(PartitionKey='{partition}',RowKey='{row}')")
}

/// The answer of a batch has a part with status and ETag for each change; if the batch failed, one part with the
/// reason.
fn batch_outcome(text: &str, expected: usize) -> Result<Outcome, Failure> {
    let mut stamps = Vec::new();
    for part in text.split("HTTP/1.1 ").skip(1) {
        let status: u16 = part.get(..3).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        match status {
            200..300 => {}
            400..500 => return Ok(Outcome::Refused(status)),
            503 => return Ok(Outcome::TurnedAway("503 within a batch".to_owned())),
            500..600 => return Ok(Outcome::Unknown(format!("{status} within a batch"))),
            _ => return Err(Failure::Wrong(format!("a part of a batch was answered with {part}"))),
        }
        let head = part.split("\r\n\r\n").next().unwrap_or_default();
        let etag = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("etag").then(|| Stamp::of_etag(value.trim()))?
        });
        stamps.push(etag);
    }
    if stamps.len() != expected {
        return Err(Failure::Wrong(format!(
            "a batch of {expected} was answered with {} parts",
            stamps.len()
        )));
    }
    Ok(Outcome::Done(stamps))
}

/// Why a read has no result.
#[derive(Debug)]
pub enum ReadFailure {
    /// No server, a broken connection, or a 5xx: the next try may be answered.
    Unanswered(String),
    /// An answer that a server must not give, or no answer within the time limit.
    Wrong(String),
}

impl From<String> for ReadFailure {
    fn from(what: String) -> Self {
        Self::Wrong(what)
    }
}

/// For callers whose reads must all be answered.
impl From<ReadFailure> for String {
    fn from(failure: ReadFailure) -> Self {
        match failure {
            ReadFailure::Unanswered(what) | ReadFailure::Wrong(what) => what,
        }
    }
}

async fn read(
    client: &mut Client,
    path: &str,
    query: &str,
) -> Result<(u16, Value, Option<String>), ReadFailure> {
    let request = UnsignedRequest { method: "GET", path, query, headers: JSON, body: None };
    let answer = tokio::time::timeout(ANSWER_TIME_MAX, client.send(request, Instant::now())).await;
    let answer = answer.map_err(|_| format!("no answer within {ANSWER_TIME_MAX:?} to GET {path}"))?;
    let unanswered = |why: String| ReadFailure::Unanswered(format!("GET {path}: {why}"));
    let answer = answer.map_err(|trouble| unanswered(format!("{trouble:?}")))?;
    if answer.status >= 500 {
        return Err(unanswered(format!("{} {}", answer.status, String::from_utf8_lossy(answer.body))));
    }
    let key = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let continuation = key(answer.next_partition_key).map(|partition| {
        let row = key(answer.next_row_key).unwrap_or_default();
        format!("NextPartitionKey={}&NextRowKey={}", escaped(&partition), escaped(&row))
    });
    let value = serde_json::from_slice(answer.body)
        .map_err(|error| format!("GET {path}: {} {error}", answer.status))?;
    Ok((answer.status, value, continuation))
}

/// Continuation tokens have only letters, digits and these characters.
fn escaped(token: &str) -> String {
    token.replace('%', "%25").replace('+', "%2B").replace('/', "%2F").replace('=', "%3D").replace('!', "%21")
}

pub async fn table_names(client: &mut Client) -> Result<Vec<String>, ReadFailure> {
    let (status, answer, _) = read(client, "/Tables", "").await?;
    let tables = answer["value"].as_array().filter(|_| status == 200);
    let tables = tables.ok_or_else(|| format!("the list of tables is {status} {answer}"))?;
    let name = |table: &Value| table["TableName"].as_str().map(str::to_owned);
    let names = tables.iter().map(name).collect::<Option<_>>();
    Ok(names.ok_or_else(|| format!("a table without a name in {answer}"))?)
}

/// Every entity of a table, page by page, in the order of the answers.
pub async fn scan(client: &mut Client, table: &str) -> Result<Vec<(Place, Value)>, ReadFailure> {
    query(client, table, "").await
}

/// Every entity of one partition, page by page.
pub async fn scan_partition(
    client: &mut Client,
    table: &str,
    partition: &str,
) -> Result<Vec<(Place, Value)>, ReadFailure> {
    query(client, table, &format!("$filter=PartitionKey%20eq%20'{partition}'")).await
}

async fn query(client: &mut Client, table: &str, filter: &str) -> Result<Vec<(Place, Value)>, ReadFailure> {
    let (mut rows, mut continuation) = (Vec::new(), filter.to_owned());
    loop {
        let (status, mut answer, next) = read(client, &format!("/{table}()"), &continuation).await?;
        let page = answer["value"].as_array_mut().filter(|_| status == 200).map(std::mem::take);
        let page = page.ok_or_else(|| format!("a scan of {table} was answered with {status} {answer}"))?;
        for entity in page {
            let place =
                place_of(&entity).ok_or_else(|| format!("an entity of {table} without keys: {entity}"))?;
            rows.push((place, entity));
        }
        match next {
            Some(next) if filter.is_empty() => continuation = next,
            Some(next) => continuation = format!("{filter}&{next}"),
            None => return Ok(rows),
        }
    }
}

/// One entity by its keys.
pub async fn get(client: &mut Client, table: &str, place: &Place) -> Result<Option<Value>, ReadFailure> {
    match read(client, &entity_path(table, &place.0, &place.1), "").await? {
        (200, entity, _) => Ok(Some(entity)),
        (404, ..) => Ok(None),
        (status, answer, _) => {
            Err(format!("a get of {table} {place:?} was answered with {status} {answer}").into())
        }
    }
}

fn place_of(entity: &Value) -> Option<Place> {
    Some((entity["PartitionKey"].as_str()?.to_owned(), entity["RowKey"].as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_done_only_if_each_part_is() {
        let part =
            |text: &str| format!("--x\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 {text}\r\n\r\n");
        let good = part("204 No Content\r\nETag: W/\"datetime'2026-01-01T00%3A00%3A00.5Z'\"");
        let deleted = part("204 No Content");
        let stamp = Some(Stamp("2026-01-01T00:00:00.5Z".to_owned()));
        let both = batch_outcome(&format!("{good}{deleted}"), 2).unwrap();
        assert_eq!(both, Outcome::Done(vec![stamp, None]));
        assert!(batch_outcome(&good, 2).is_err());
        assert_eq!(batch_outcome(&part("412 Precondition Failed"), 2).unwrap(), Outcome::Refused(412));
        assert!(matches!(batch_outcome(&part("500 Oh"), 2).unwrap(), Outcome::Unknown(_)));
        assert!(matches!(batch_outcome(&part("503 Later"), 2).unwrap(), Outcome::TurnedAway(_)));
    }
}
