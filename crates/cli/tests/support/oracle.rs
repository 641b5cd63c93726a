//! A second, simple implementation of what the server must do: maps in memory, without code of the product.

pub mod filter;
pub mod show;
pub mod value;

use std::collections::BTreeMap;

use super::batch::Request;
pub use value::Value;

/// Keys sort by UTF-16 code unit.
pub type Place = (Vec<u16>, Vec<u16>);

pub fn place(partition: &str, row: &str) -> Place {
    (partition.encode_utf16().collect(), row.encode_utf16().collect())
}

#[derive(Clone, Debug)]
pub struct Row {
    pub partition: String,
    pub row: String,
    /// As the server writes it.
    pub timestamp: String,
    /// In the order in which they are shown.
    pub properties: Vec<(String, Value)>,
}

impl Row {
    pub fn property(&self, name: &str) -> Option<Value> {
        match name {
            "PartitionKey" => Some(Value::String(self.partition.clone())),
            "RowKey" => Some(Value::String(self.row.clone())),
            "Timestamp" => Some(Value::DateTime(value::full_time(&self.timestamp))),
            _ => self.properties.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone()),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Table {
    /// In the case it was created with.
    pub name: String,
    pub rows: BTreeMap<Place, Row>,
}

/// Tables by their names in lower case.
#[derive(Clone, Debug, Default)]
pub struct Account(pub BTreeMap<String, Table>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Insert,
    Replace,
    Merge,
    Delete,
}

/// One change to one entity. Replace and merge without a condition are upserts.
#[derive(Clone, Debug)]
pub struct Write {
    pub verb: Verb,
    pub if_match: Option<String>,
    pub partition: String,
    pub row: String,
    /// `None` is a null.
    pub properties: Vec<(String, Option<Value>)>,
}

/// A refusal: status, code and the start of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    pub code: &'static str,
    pub text: &'static str,
    /// Whether the message has the index also in a change set of one part.
    pub indexed_alone: bool,
}

const fn refusal(status: u16, code: &'static str, text: &'static str, indexed_alone: bool) -> Refusal {
    Refusal { status, code, text, indexed_alone }
}

pub const TABLE_NOT_FOUND: Refusal =
    refusal(404, "TableNotFound", "The table specified does not exist.", true);
pub const TABLE_EXISTS: Refusal =
    refusal(409, "TableAlreadyExists", "The table specified already exists.", false);
pub const NOT_FOUND: Refusal =
    refusal(404, "ResourceNotFound", "The specified resource does not exist.", false);
pub const ENTITY_EXISTS: Refusal =
    refusal(409, "EntityAlreadyExists", "The specified entity already exists.", false);
pub const CONDITION: Refusal = refusal(
    412,
    "UpdateConditionNotSatisfied",
    "The update condition specified in the request was not satisfied.",
    false,
);
pub const NOT_VALID: Refusal = refusal(400, "InvalidInput", "One of the request inputs is not valid.", true);
pub const DUPLICATE_ROW: Refusal = refusal(
    400,
    "InvalidDuplicateRow",
    "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.",
    true,
);
pub const OTHER_PARTITION: Refusal = refusal(
    400,
    "CommandsInBatchActOnDifferentPartitions",
    "All commands in a batch must operate on same entity group.",
    true,
);

impl Account {
    pub fn create(&mut self, name: &str) -> Result<(), Refusal> {
        if self.0.contains_key(&name.to_lowercase()) {
            return Err(TABLE_EXISTS);
        }
        let table = Table { name: name.to_owned(), rows: BTreeMap::new() };
        self.0.insert(name.to_lowercase(), table);
        Ok(())
    }

    pub fn drop_table(&mut self, name: &str) -> Result<(), Refusal> {
        self.0.remove(&name.to_lowercase()).map(|_| ()).ok_or(NOT_FOUND)
    }

    pub fn table(&self, name: &str) -> Result<&Table, Refusal> {
        self.0.get(&name.to_lowercase()).ok_or(TABLE_NOT_FOUND)
    }

    pub fn table_mut(&mut self, name: &str) -> Result<&mut Table, Refusal> {
        self.0.get_mut(&name.to_lowercase()).ok_or(TABLE_NOT_FOUND)
    }

    /// The answer to a single write or a change set: the first refusal and its index.
    pub fn judge(&self, table: &str, writes: &[Write]) -> Result<(), (usize, Refusal)> {
        // All parts are decoded before any is applied.
        for (index, write) in writes.iter().enumerate() {
            self.table(table).map_err(|refusal| (index, refusal))?;
            if write.verb == Verb::Delete && write.if_match.is_none() {
                return Err((index, NOT_VALID));
            }
            if write.partition != writes[0].partition {
                return Err((index, OTHER_PARTITION));
            }
            if writes[..index].iter().any(|earlier| earlier.row == write.row) {
                return Err((index, DUPLICATE_ROW));
            }
        }
        for (index, write) in writes.iter().enumerate() {
            self.table(table).and_then(|table| table.judge(write)).map_err(|refusal| (index, refusal))?;
        }
        Ok(())
    }
}

impl Table {
    pub fn row(&self, partition: &str, row: &str) -> Option<&Row> {
        self.rows.get(&place(partition, row))
    }

    fn judge(&self, write: &Write) -> Result<(), Refusal> {
        let present = self.row(&write.partition, &write.row);
        match (write.verb, &write.if_match, present) {
            (Verb::Insert, _, Some(_)) => Err(ENTITY_EXISTS),
            (Verb::Insert, _, None) | (Verb::Replace | Verb::Merge, None, _) => Ok(()),
            (_, _, None) => Err(NOT_FOUND),
            (_, Some(tag), Some(row)) if tag != "*" && *tag != etag(&row.timestamp) => Err(CONDITION),
            (_, _, Some(_)) => Ok(()),
        }
    }

    /// Applies a write that was judged possible and was acknowledged with this timestamp.
    pub fn commit(&mut self, write: &Write, timestamp: &str) {
        let place = place(&write.partition, &write.row);
        let old = self.rows.remove(&place);
        let given = write.properties.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        let mut properties: Vec<(String, Value)> = given.collect();
        match write.verb {
            Verb::Delete => return,
            Verb::Insert => {}
            Verb::Replace => properties.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16())),
            Verb::Merge => {
                for kept in old.into_iter().flat_map(|row| row.properties) {
                    if !properties.iter().any(|(name, _)| *name == kept.0) {
                        properties.push(kept);
                    }
                }
                properties.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            }
        }
        let (partition, row) = (write.partition.clone(), write.row.clone());
        self.rows.insert(place, Row { partition, row, timestamp: timestamp.to_owned(), properties });
    }
}

impl Write {
    /// The request of this write, with a metadata level. With `quiet`, the answer to an insert has no body.
    pub fn request(&self, table: &str, level: &str, quiet: bool) -> Request {
        let mut headers = vec![("Accept", format!("application/json;odata={level}"))];
        let mut members = Vec::new();
        let (method, path) = match self.verb {
            Verb::Insert => ("POST", format!("/{table}")),
            Verb::Replace => ("PUT", entity_path(table, &self.partition, &self.row)),
            Verb::Merge => ("MERGE", entity_path(table, &self.partition, &self.row)),
            Verb::Delete => ("DELETE", entity_path(table, &self.partition, &self.row)),
        };
        if let Some(tag) = &self.if_match {
            headers.push(("If-Match", tag.clone()));
        }
        if self.verb == Verb::Delete {
            return Request { method, path, headers, body: String::new() };
        }
        headers.push(("Content-Type", "application/json".to_owned()));
        if self.verb == Verb::Insert {
            members.push(format!("\"PartitionKey\":{}", value::json_text(&self.partition)));
            members.push(format!("\"RowKey\":{}", value::json_text(&self.row)));
            if quiet {
                headers.push(("Prefer", "return-no-content".to_owned()));
            }
        }
        for (name, value) in &self.properties {
            let name = name.as_str();
            match value {
                None => members.push(format!("{}:null", value::json_text(name))),
                Some(value) => {
                    if let Some(annotation) = value.annotation() {
                        let annotated = value::json_text(&format!("{name}@odata.type"));
                        members.push(format!("{annotated}:\"{annotation}\""));
                    }
                    members.push(format!("{}:{}", value::json_text(name), value.json()));
                }
            }
        }
        Request { method, path, headers, body: format!("{{{}}}", members.join(",")) }
    }
}

pub fn entity_path(table: &str, partition: &str, row: &str) -> String {
    format!("/{}", show::entity_link(table, partition, row))
}

pub fn etag(timestamp: &str) -> String {
    format!("W/\"datetime'{}'\"", timestamp.replace(':', "%3A"))
}

/// The timestamp in an ETag.
pub fn timestamp_of(etag: &str) -> String {
    let inner = etag.strip_prefix("W/\"datetime'").and_then(|rest| rest.strip_suffix("'\""));
    inner.unwrap_or_else(|| panic!("no ETag: {etag}")).replace("%3A", ":")
}
