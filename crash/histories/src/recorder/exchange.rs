//! One action over one connection: makes its request, and turns the answer into an outcome of the history.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use connection::{Response, Target};
use model::{DateTime, ETag, IfMatch};
use serde_json::Value;

use super::client::{Heard, Talk};
use super::wire::{Message, Wire, text};
use crate::history::{Action, Found, Outcome, Refusal, Verb, Version, Write};

const NO_METADATA: &str = "Accept: application/json;odata=nometadata\r\n";
/// Its entities have their ETags.
const MINIMAL_METADATA: &str = "Accept: application/json;odata=minimalmetadata\r\n";
const JSON: &str = "Content-Type: application/json\r\nPrefer: return-no-content\r\n";
const MULTIPART: &str = "Content-Type: multipart/mixed; boundary=batch_histories\r\n";

#[derive(Debug)]
pub struct Exchange {
    wire: Wire,
    table: String,
}

impl Talk for Exchange {
    type Action = Action;
    type Outcome = Outcome;

    fn reconnect(&mut self) {
        self.wire.reconnect();
    }

    async fn perform(&mut self, partition: &str, action: &Action) -> Heard<Outcome> {
        let message = self.message(partition, action);
        let unknown = Outcome::Unknown { until: None };
        self.wire.hear(&message, unknown, |response| understand(action, &response)).await
    }
}

impl Exchange {
    pub fn new(target: Arc<Target>, table: &str) -> Self {
        Self { wire: Wire::new(target), table: table.to_owned() }
    }

    pub async fn create_table(&mut self) -> Result<(), String> {
        let body = Some(format!("{{\"TableName\":\"{}\"}}", self.table));
        self.control("make", "POST", "/Tables".to_owned(), body).await
    }

    pub async fn delete_table(&mut self) -> Result<(), String> {
        let path = format!("/Tables('{}')", self.table);
        self.control("delete", "DELETE", path, None).await
    }

    async fn control(
        &mut self,
        verb: &str,
        method: &'static str,
        path: String,
        body: Option<String>,
    ) -> Result<(), String> {
        let headers = format!("{NO_METADATA}{JSON}");
        let message = Message { method, path, query: String::new(), headers, body };
        self.wire.control(&format!("{verb} table {}", self.table), &message).await
    }

    fn message(&self, partition: &str, action: &Action) -> Message {
        let (query, headers, body) = (String::new(), NO_METADATA.to_owned(), None);
        match action {
            Action::Get { row } => {
                Message { method: "GET", path: self.entity(partition, row), query, headers, body }
            }
            Action::Query => {
                let (path, headers) = (format!("/{}()", self.table), MINIMAL_METADATA.to_owned());
                let query = format!("$filter=PartitionKey%20eq%20'{partition}'");
                Message { method: "GET", path, query, headers, body }
            }
            Action::Write(write) => self.write(partition, write),
            Action::Batch(writes) => {
                let headers = format!("{NO_METADATA}{MULTIPART}");
                let (path, body) = ("/$batch".to_owned(), Some(self.change_set(partition, writes)));
                Message { method: "POST", path, query, headers, body }
            }
        }
    }

    fn entity(&self, partition: &str, row: &str) -> String {
        format!("/{}(PartitionKey='{partition}',RowKey='{row}')", self.table)
    }

    fn write(&self, partition: &str, write: &Write) -> Message {
        let (method, conditional) = match write.verb {
            Verb::Insert => ("POST", false),
            Verb::InsertOrReplace => ("PUT", false),
            Verb::InsertOrMerge => ("PATCH", false),
            Verb::Replace => ("PUT", true),
            Verb::Merge => ("MERGE", true),
            Verb::Delete => ("DELETE", true),
        };
        let path = match write.verb {
            Verb::Insert => format!("/{}", self.table),
            _ => self.entity(partition, &write.row),
        };
        let mut headers = NO_METADATA.to_owned();
        if conditional {
            let etag = write.if_match.and_then(DateTime::from_ticks).map(|time| ETag(time).text());
            let _ = write!(headers, "If-Match: {}\r\n", etag.as_deref().unwrap_or("*"));
        }
        let body = (write.verb != Verb::Delete).then(|| {
            headers.push_str(JSON);
            let mut body = format!(
                "{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{}\",\"Writer\":{}",
                write.row, write.number
            );
            for name in &write.extras {
                let _ = write!(body, ",\"{name}\":{}", write.number);
            }
            body.push('}');
            body
        });
        Message { method, path, query: String::new(), headers, body }
    }

    fn change_set(&self, partition: &str, writes: &[Write]) -> String {
        let mut out =
            "--batch_histories\r\nContent-Type: multipart/mixed; boundary=changeset_histories\r\n\r\n"
                .to_owned();
        for write in writes {
            let part = self.write(partition, write);
            // Writing into a string can't fail.
            let _ = write!(
                out,
                "--changeset_histories\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 {} {}{} HTTP/1.1\r\n{}\r\n{}\r\n",
                part.method,
                self.wire.url(),
                part.path,
                part.headers,
                part.body.unwrap_or_default()
            );
        }
        out.push_str("--changeset_histories--\r\n--batch_histories--\r\n");
        out
    }
}

fn understand(action: &Action, response: &Response<'_>) -> Result<Outcome, String> {
    let strange = || Err(format!("answered with {} {}", response.status, text(response.body)));
    match (response.status, action) {
        (503, _) => Ok(Outcome::TurnedAway),
        (500.., _) => Ok(Outcome::Unknown { until: None }),
        (200, Action::Get { row }) => {
            let etag = response.etag.map(text).ok_or("an entity came without its ETag")?;
            let found = found(&json(response.body)?, &etag)?;
            if found.row != *row {
                return Err(format!("{row} was asked for and {} came", found.row));
            }
            Ok(Outcome::Found(vec![found]))
        }
        (404, Action::Get { .. }) => match refusal(404, &text(response.body)) {
            Some((_, Refusal::ResourceNotFound)) => Ok(Outcome::Found(Vec::new())),
            _ => strange(),
        },
        // A page that ends early does not show the whole partition.
        (200, Action::Query) if response.next_partition_key.is_some() => Ok(Outcome::Unknown { until: None }),
        (200, Action::Query) => page(&json(response.body)?).map(Outcome::Found),
        (201 | 204, Action::Write(write)) => {
            Ok(Outcome::Done(vec![version_given(write, response.etag.map(text))?]))
        }
        (202, Action::Batch(writes)) => batch_answer(writes, &text(response.body)),
        (status @ (404 | 409 | 412), Action::Write(_)) => match refusal(status, &text(response.body)) {
            Some((_, refusal)) => Ok(Outcome::Refused { index: 0, refusal }),
            None => strange(),
        },
        _ => strange(),
    }
}

fn page(answer: &Value) -> Result<Vec<Found>, String> {
    let rows = answer["value"].as_array().ok_or("a page has no value")?;
    let etag = |row: &Value| row["odata.etag"].as_str().map(str::to_owned);
    let found: Result<Vec<Found>, String> = rows
        .iter()
        .map(|row| found(row, &etag(row).ok_or("an entity of a page came without its ETag")?))
        .collect();
    let found = found?;
    match found.windows(2).find(|pair| pair[0].row >= pair[1].row) {
        Some(pair) => Err(format!("a page has {} before {}", pair[0].row, pair[1].row)),
        None => Ok(found),
    }
}

fn found(entity: &Value, etag: &str) -> Result<Found, String> {
    let row = entity["RowKey"].as_str().ok_or("an entity came without its RowKey")?.to_owned();
    let mut values = BTreeMap::new();
    for (name, value) in entity.as_object().into_iter().flatten() {
        let known =
            name.starts_with("odata.") || ["PartitionKey", "RowKey", "Timestamp"].contains(&name.as_str());
        if !known {
            let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
            values.insert(name.clone(), number.ok_or_else(|| format!("{name} came back as {value}"))?);
        }
    }
    Ok(Found { row, version: version(etag)?, values })
}

/// Parts in the order of the writes, or the one that was refused.
fn batch_answer(writes: &[Write], body: &str) -> Result<Outcome, String> {
    let parts: Vec<&str> = body.split("HTTP/1.1 ").skip(1).collect();
    let status = |part: &str| part.get(..3).and_then(|digits| digits.parse::<u16>().ok());
    match parts.as_slice() {
        [part] if status(part) == Some(503) => Ok(Outcome::TurnedAway),
        [part] if status(part).is_some_and(|status| status >= 500) => Ok(Outcome::Unknown { until: None }),
        [part] if status(part).is_some_and(|status| status >= 400) => {
            let refused = status(part).and_then(|status| refusal(status, part));
            let (index, refusal) = refused.ok_or_else(|| format!("answered with {part}"))?;
            Ok(Outcome::Refused { index: index.unwrap_or(0), refusal })
        }
        parts
            if parts.len() == writes.len()
                && parts.iter().all(|part| matches!(status(part), Some(201 | 204))) =>
        {
            let etag = |part: &str| {
                part.lines().find_map(|line| line.strip_prefix("ETag: ")).map(|etag| etag.trim().to_owned())
            };
            let made = writes.iter().zip(parts).map(|(write, part)| version_given(write, etag(part)));
            made.collect::<Result<_, _>>().map(Outcome::Done)
        }
        _ => Err(format!("a batch of {} was answered with {body}", writes.len())),
    }
}

fn version_given(write: &Write, etag: Option<String>) -> Result<Option<Version>, String> {
    match (write.verb, etag) {
        (Verb::Delete, None) => Ok(None),
        (Verb::Delete, Some(etag)) => Err(format!("a delete gave the ETag {etag}")),
        (_, Some(etag)) => version(&etag).map(Some),
        (_, None) => Err(format!("a write of {} gave no ETag", write.row)),
    }
}

fn version(etag: &str) -> Result<Version, String> {
    match IfMatch::parse(etag) {
        Ok(IfMatch::Version(time)) => Ok(time.ticks()),
        _ => Err(format!("{etag} is no ETag made of a time")),
    }
}

/// The refusals that a history has, and the index that the message of a batch names.
fn refusal(status: u16, body: &str) -> Option<(Option<usize>, Refusal)> {
    let document: Value = serde_json::from_str(&body[body.find('{')?..=body.rfind('}')?]).ok()?;
    let error = &document["odata.error"];
    let refusal = match (status, error["code"].as_str()?) {
        (409, "EntityAlreadyExists") => Refusal::EntityAlreadyExists,
        (404, "ResourceNotFound") => Refusal::ResourceNotFound,
        (412, "UpdateConditionNotSatisfied") => Refusal::UpdateConditionNotSatisfied,
        _ => return None,
    };
    let index = error["message"]["value"].as_str()?.split_once(':').and_then(|(index, _)| index.parse().ok());
    Some((index, refusal))
}

fn json(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|error| format!("{error} in {}", text(body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETAG: &[u8] = b"W/\"datetime'2021-05-06T07%3A08%3A09.12Z'\"";

    fn check(action: &Action, status: u16, etag: Option<&[u8]>, body: &str, expected: &str) {
        let response = Response {
            head: b"",
            status,
            closes: false,
            etag,
            error_code: None,
            next_partition_key: None,
            next_row_key: None,
            body: body.as_bytes(),
        };
        let shown = match understand(action, &response) {
            Ok(outcome) => format!("{outcome:?}"),
            Err(strange) => format!("strange: {strange}"),
        };
        assert!(shown.starts_with(expected), "{shown}");
    }

    #[test]
    fn an_answer_has_one_meaning_or_is_strange() {
        let write = |verb| Write { verb, row: "r".to_owned(), if_match: None, number: 1, extras: Vec::new() };
        let (insert, delete) = (Action::Write(write(Verb::Insert)), Action::Write(write(Verb::Delete)));
        let (batch, get) = (Action::Batch(vec![write(Verb::Insert)]), Action::Get { row: "r".to_owned() });
        let error = |code: &str| {
            format!("{{\"odata.error\":{{\"code\":\"{code}\",\"message\":{{\"value\":\"3:no\"}}}}}}")
        };
        let exists = error("EntityAlreadyExists");
        check(&insert, 204, Some(ETAG), "", "Done([Some(");
        check(&insert, 204, None, "", "strange: a write of r gave no ETag");
        check(&insert, 204, Some(b"W/\"other\""), "", "strange: W/\"other\" is no ETag made of a time");
        check(&insert, 409, None, &exists, "Refused { index: 0, refusal: EntityAlreadyExists }");
        check(&insert, 409, None, &error("TableBeingDeleted"), "strange: answered with 409");
        check(&insert, 400, None, &exists, "strange: answered with 400");
        check(&insert, 500, None, "", "Unknown { until: None }");
        check(&insert, 503, None, "", "TurnedAway");
        check(&get, 503, None, "", "TurnedAway");
        check(&delete, 204, None, "", "Done([None])");
        check(&delete, 204, Some(ETAG), "", "strange: a delete gave the ETag");
        check(
            &batch,
            202,
            None,
            &format!("HTTP/1.1 409 Conflict\r\n\r\n{exists}\r\n--x"),
            "Refused { index: 3,",
        );
        check(&batch, 202, None, "HTTP/1.1 500 Late\r\n\r\n{}", "Unknown { until: None }");
        check(&batch, 202, None, "HTTP/1.1 503 Busy\r\n\r\n{}", "TurnedAway");
        check(&batch, 202, None, "", "strange: a batch of 1 was answered with");
        check(&get, 404, None, &error("ResourceNotFound"), "Found([])");
        check(&get, 404, None, &error("TableNotFound"), "strange: answered with 404");
        check(&get, 200, Some(ETAG), "{\"RowKey\":\"s\"}", "strange: r was asked for and s came");
        check(
            &get,
            200,
            Some(ETAG),
            "{\"RowKey\":\"r\",\"Writer\":7}",
            "Found([Found { row: \"r\", version: ",
        );
        let row = |name: &str| format!("{{\"odata.etag\":{:?},\"RowKey\":\"{name}\"}}", text(ETAG));
        let page = |first: &str, second: &str| format!("{{\"value\":[{},{}]}}", row(first), row(second));
        check(&Action::Query, 200, None, &page("a", "b"), "Found([Found { row: \"a\"");
        check(&Action::Query, 200, None, &page("b", "a"), "strange: a page has b before a");
        check(&Action::Query, 200, None, &page("a", "a"), "strange: a page has a before a");
    }
}
