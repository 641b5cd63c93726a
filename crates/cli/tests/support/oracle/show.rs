//! Entities exactly as answers show them, byte for byte.

use std::fmt::Write as _;

use super::value::json_text;
use super::{Row, etag};

/// What an answer depends on besides the entity.
pub struct View<'a> {
    /// The account's address, with a slash.
    pub base: &'a str,
    pub account: &'a str,
    /// As the request spells it.
    pub table: &'a str,
    /// `nometadata`, `minimalmetadata` or `fullmetadata`.
    pub level: &'a str,
    pub select: Option<&'a [String]>,
}

impl View<'_> {
    pub fn one(&self, row: &Row) -> String {
        let mut members = self.metadata("/@Element");
        members.extend(self.members(row));
        format!("{{{}}}", members.join(","))
    }

    pub fn set<'r>(&self, rows: impl Iterator<Item = &'r Row>) -> String {
        let rows: Vec<String> = rows.map(|row| format!("{{{}}}", self.members(row).join(","))).collect();
        let mut members = self.metadata("");
        members.push(format!("\"value\":[{}]", rows.join(",")));
        format!("{{{}}}", members.join(","))
    }

    fn metadata(&self, element: &str) -> Vec<String> {
        if self.level == "nometadata" {
            return Vec::new();
        }
        let select = self.select.map(|names| format!("&$select={}", names.join(","))).unwrap_or_default();
        let address = format!("{}$metadata#{}{element}{select}", self.base, self.table);
        vec![format!("\"odata.metadata\":{}", json_text(&address))]
    }

    fn members(&self, row: &Row) -> Vec<String> {
        let full = self.level == "fullmetadata";
        let mut members = Vec::new();
        let link = entity_link(self.table, &row.partition, &row.row);
        if full {
            members.push(format!("\"odata.type\":\"{}.{}\"", self.account, self.table));
            members.push(format!("\"odata.id\":{}", json_text(&format!("{}{link}", self.base))));
        }
        if self.level != "nometadata" {
            members.push(format!("\"odata.etag\":{}", json_text(&etag(&row.timestamp))));
        }
        if full {
            members.push(format!("\"odata.editLink\":{}", json_text(&link)));
        }
        let system = ["PartitionKey", "RowKey", "Timestamp"];
        let shown: Vec<String> = match self.select {
            None => {
                let custom = row.properties.iter().map(|(name, _)| name.clone());
                system.into_iter().map(str::to_owned).chain(custom).collect()
            }
            Some(names) => {
                let mut custom: Vec<String> =
                    names.iter().filter(|name| !system.contains(&name.as_str())).cloned().collect();
                custom.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
                custom.dedup();
                let chosen = system.into_iter().filter(|name| names.iter().any(|n| n == name));
                chosen.map(str::to_owned).chain(custom).collect()
            }
        };
        for name in shown {
            let (json, annotation) = match row.property(&name) {
                None => ("null".to_owned(), None),
                Some(value) => (value.json(), value.annotation()),
            };
            let annotated = if name == "Timestamp" { full } else { self.level != "nometadata" };
            if let Some(annotation) = annotation.filter(|_| annotated) {
                members.push(format!("{}:\"{annotation}\"", json_text(&format!("{name}@odata.type"))));
            }
            members.push(format!("{}:{json}", json_text(&name)));
        }
        members
    }
}

pub fn entity_link(table: &str, partition: &str, row: &str) -> String {
    format!("{table}(PartitionKey='{}',RowKey='{}')", escaped_key(partition), escaped_key(row))
}

fn escaped_key(key: &str) -> String {
    escaped(&key.replace('\'', "''"), "-._~!*()'")
}

/// For a query string.
pub fn escaped_value(text: &str) -> String {
    escaped(text, "-._~")
}

fn escaped(text: &str, literal: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || literal.as_bytes().contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}
