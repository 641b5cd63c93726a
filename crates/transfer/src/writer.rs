//! Stores groups of entities, one after the other, over one connection.
//!
//! A group is one transaction. If that is refused, its entities are stored one by one, which tells exactly which of
//! them the service does not take.

use connection::Request;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use wire::entity_json::read_entity;
use wire::url::entity_address;

use crate::batch;
use crate::command::Mode;
use crate::entity::Keys;
use crate::group::{Group, Item, Rejected};
use crate::session::{Answer, Session};

const WRITE: &str = "Accept: application/json;odata=nometadata\r\nContent-Type: application/json\r\n";
const READ: &str = "Accept: application/json;odata=minimalmetadata\r\n";

#[derive(Debug)]
pub struct Writer {
    session: Session,
    /// Encoded.
    table: String,
    rules: Rules,
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub mode: Mode,
    /// An earlier run may have stored some of what is stored now.
    pub resumed: bool,
    /// The first entity that is refused is the last that is tried.
    pub stops: bool,
}

/// What became of a group.
#[derive(Debug, Default)]
pub struct Stored {
    pub written: u64,
    pub rejected: Vec<Rejected>,
}

impl Writer {
    pub fn new(session: Session, table: &str, rules: Rules) -> Self {
        let table = utf8_percent_encode(table, NON_ALPHANUMERIC).to_string();
        Self { session, table, rules, body: Vec::new() }
    }

    /// An error is of the endpoint, not of an entity.
    pub async fn store(&mut self, group: Group) -> Result<Stored, String> {
        let mut stored = Stored { written: 0, rejected: group.unreadable.into_iter().collect() };
        let mut doubtful = self.rules.resumed;
        if group.items.len() > 1 {
            let answer = self.send_batch(&group.items).await?;
            if batch::is_done(&answer, group.items.len()) {
                stored.written = group.items.len() as u64;
                return Ok(stored);
            }
            if matches!(answer.status, 401 | 403 | 404) {
                return Err(answer.explain());
            }
            doubtful |= answer.tried_before;
        }
        for item in group.items {
            match self.store_one(&item, doubtful).await? {
                None => stored.written += 1,
                Some(why) => {
                    stored.rejected.push(Rejected {
                        line: item.line,
                        why: format!("{}: {why}", item.keys),
                        raw: item.raw,
                    });
                    if self.rules.stops {
                        break;
                    }
                }
            }
        }
        Ok(stored)
    }

    async fn send_batch(&mut self, items: &[Item]) -> Result<Answer, String> {
        let base = format!("{}/", self.session.url());
        let mut body = std::mem::take(&mut self.body);
        let operations = items.iter().map(|item| {
            let (method, address) = self.operation(&base, &item.keys);
            (method, address, item.body.as_slice())
        });
        batch::write(&mut body, operations);
        let request = Request {
            method: "POST",
            path: "/$batch",
            query: "",
            headers: batch::HEADERS,
            body: Some(&body),
        };
        let answer = self.session.send_unless(request, batch::is_passing).await;
        self.body = body;
        answer
    }

    /// What the service has against it, if anything.
    async fn store_one(&mut self, item: &Item, doubtful: bool) -> Result<Option<String>, String> {
        let (method, path) = self.operation("/", &item.keys);
        let headers = format!("{WRITE}{}", batch::preference(method));
        let request = Request { method, path: &path, query: "", headers: &headers, body: Some(&item.body) };
        let answer = self.session.send(request).await?;
        match (answer.status, answer.code().as_str()) {
            (200..=299, _) => Ok(None),
            (_, "TableBeingDeleted") => Err(answer.explain()),
            // An attempt that nobody answered may have been carried out.
            (409, _) if self.rules.mode == Mode::Insert && (doubtful || answer.tried_before) => {
                let there = self.is_there(item).await?;
                Ok((!there).then(|| answer.explain()))
            }
            (400 | 409 | 412 | 413, _) => Ok(Some(answer.explain())),
            _ => Err(answer.explain()),
        }
    }

    /// Whether the table has just this entity.
    async fn is_there(&mut self, item: &Item) -> Result<bool, String> {
        let path = entity_address("/", &self.table, &item.keys.partition, &item.keys.row);
        let request = Request { method: "GET", path: &path, query: "", headers: READ, body: None };
        let answer = self.session.send(request).await?;
        match answer.status {
            200 => Ok(is_same(&answer.body, &item.body)),
            404 => Ok(false),
            _ => Err(answer.explain()),
        }
    }

    fn operation(&self, base: &str, keys: &Keys) -> (&'static str, String) {
        let entity = || entity_address(base, &self.table, &keys.partition, &keys.row);
        match self.rules.mode {
            Mode::Replace => ("PUT", entity()),
            Mode::Merge => ("PATCH", entity()),
            Mode::Insert => ("POST", format!("{base}{}", self.table)),
        }
    }
}

/// Whether two bodies say the same entity, however they spell it.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let (Ok(mut one), Ok(mut other)) = (read_entity(one), read_entity(other)) else { return false };
    for entity in [&mut one, &mut other] {
        entity.properties.sort_by(|(a, _), (b, _)| a.cmp(b));
    }
    one == other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_the_same_whatever_their_spelling() {
        let check = |one: &str, other: &str, expected| {
            let whole = |text: &str| format!(r#"{{"PartitionKey":"p","RowKey":"r",{text}}}"#);
            assert_eq!(is_same(whole(one).as_bytes(), whole(other).as_bytes()), expected, "{one} {other}");
        };
        check(
            r#""A":1,"B":2.0,"Timestamp":"t""#,
            r#""B@odata.type":"Edm.Double","B":2,"A":1,"odata.etag":"x""#,
            true,
        );
        check(
            r#""D@odata.type":"Edm.DateTime","D":"2020-01-01T00:00:00Z""#,
            r#""D@odata.type":"Edm.DateTime","D":"2020-01-01T00:00:00.0000000Z""#,
            true,
        );
        check(r#""A":1"#, r#""A":2"#, false);
        check(r#""A":1"#, r#""A":1,"B":1"#, false);
        check(r#""A":1"#, r#""A":1.0"#, false);
        check(r#""A":1"#, r#""A":{}"#, false);
    }
}
