//! Which resource a path addresses.

use std::borrow::Cow;

use model::Refusal;

use super::decode;
use super::predicate::{self, Predicate};
use crate::names;

/// The resource of a path without its account. Names and keys are not validated yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    Service,
    Batch,
    Tables,
    Table(String),
    EntitySet(String),
    Entity {
        table: String,
        partition: String,
        row: String,
    },
    /// `t('x')`: refused, because an entity has two keys.
    OneKey(String),
    /// `t/Tables` and similar paths, for which the service has rules of its own.
    Beneath {
        table: String,
        has_key: bool,
    },
    /// `t//x`: refused, but only after the table's name is found valid.
    Deeper(String),
}

impl Resource {
    /// The path is decoded once, before it is split into segments, so an encoded slash can't hide in a key.
    pub fn parse(path: &str) -> Result<Self, Refusal> {
        let decoded = decode(path).ok_or(Refusal::QuerySyntax)?;
        // Without a branch per byte, so that the compiler can vectorize it.
        if decoded.bytes().fold(false, |found, byte| found | (byte < b' ') | (byte == 0x7f)) {
            return Err(common::Refusal::InputOutOfRange.into());
        }
        let has_backslash = memchr::memchr(b'\\', decoded.as_bytes()).is_some();
        let path = if has_backslash { Cow::Owned(decoded.replace('\\', "/")) } else { decoded };
        let path = path.strip_prefix('/').unwrap_or(&path);
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() {
            return Ok(Self::Service);
        }
        let (first, rest) = match memchr::memchr(b'/', path.as_bytes()) {
            Some(at) => (&path[..at], Some(&path[at + 1..])),
            None => (path, None),
        };
        let (name, inside) = segment(first)?;
        // Keys without a name: the front end knows no such resource.
        if name.is_empty() && inside.is_some() {
            return Err(common::Refusal::AccountNotFound.into());
        }
        match rest {
            None => Self::single(name, inside),
            Some(second) if !second.contains('/') => {
                let (_, second_inside) = segment(second)?;
                let plain =
                    matches!(inside.map(predicate::parse).transpose()?, None | Some(Predicate::Empty));
                if !plain {
                    return Err(Refusal::QuerySyntax);
                }
                Ok(Self::Beneath {
                    table: name.to_owned(),
                    has_key: second_inside.is_some_and(|text| !text.is_empty()),
                })
            }
            Some(_) => Ok(Self::Deeper(name.to_owned())),
        }
    }

    fn single(name: &str, inside: Option<&str>) -> Result<Self, Refusal> {
        // Nearly every address of an entity has this form.
        if let Some((partition, row)) = inside.and_then(predicate::both_keys)
            && !matches!(name, names::BATCH | names::TABLES)
        {
            return Ok(Self::Entity { table: name.to_owned(), partition, row });
        }
        let predicate = inside.map_or(Ok(Predicate::Empty), predicate::parse)?;
        match (name, predicate) {
            (names::BATCH, Predicate::Empty) => Ok(Self::Batch),
            (names::TABLES, Predicate::Empty) => Ok(Self::Tables),
            (names::TABLES, Predicate::Single(table)) => Ok(Self::Table(table)),
            (names::TABLES, Predicate::Named(mut named)) => match named.pop() {
                Some((key, table)) if key == names::TABLE_NAME && named.is_empty() => Ok(Self::Table(table)),
                _ => Err(common::Refusal::InputNotValid.into()),
            },
            (name, Predicate::Empty) => Ok(Self::EntitySet(name.to_owned())),
            (name, Predicate::Single(_)) => Ok(Self::OneKey(name.to_owned())),
            (name, Predicate::Named(named)) => entity(name, named),
        }
    }
}

fn entity(table: &str, named: Vec<(String, String)>) -> Result<Resource, Refusal> {
    if named.len() != 2 {
        return Ok(Resource::OneKey(table.to_owned()));
    }
    let (mut partition, mut row) = (None, None);
    for (name, value) in named {
        match name.as_str() {
            names::PARTITION_KEY => partition = Some(value),
            names::ROW_KEY => row = Some(value),
            _ => return Err(common::Refusal::InputNotValid.into()),
        }
    }
    match (partition, row) {
        (Some(partition), Some(row)) => Ok(Resource::Entity { table: table.to_owned(), partition, row }),
        _ => Err(common::Refusal::InputNotValid.into()),
    }
}

/// A name, and the text in the parentheses after it.
fn segment(text: &str) -> Result<(&str, Option<&str>), Refusal> {
    match memchr::memchr(b'(', text.as_bytes()).map(|at| (&text[..at], &text[at + 1..])) {
        None if text.contains(['\'', ')']) => Err(Refusal::QuerySyntax),
        None => Ok((text, None)),
        Some((name, rest)) => {
            // A slash in a key leaves its segment without the closing parenthesis.
            let inside = rest.strip_suffix(')').ok_or(Refusal::QuerySyntax)?;
            Ok((name, Some(inside)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &str) {
        let shown = match Resource::parse(path) {
            Ok(Resource::Entity { table, partition, row }) => format!("{table} [{partition}] [{row}]"),
            Ok(other) => format!("{other:?}"),
            Err(refusal) => refusal.to_string(),
        };
        assert_eq!(shown, expected, "{path}");
    }

    #[test]
    fn paths_are_resolved() {
        check("", "Service");
        check("/", "Service");
        check("/Tables", "Tables");
        check("/Tables()", "Tables");
        check("/Tables/", "Tables");
        check("/Tables('Books')", "Table(\"Books\")");
        check("/Tables(%27Books%27)", "Table(\"Books\")");
        check("/$batch", "Batch");
        check("/%24batch", "Batch");
        check("/Books", "EntitySet(\"Books\")");
        check("/Books()", "EntitySet(\"Books\")");
        check("/Books(PartitionKey='a',RowKey='b')", "Books [a] [b]");
        check("/Books(RowKey='b', PartitionKey='a')", "Books [a] [b]");
        check("/Books(PartitionKey=%27o%27%27clock%27,RowKey='a+b%2525%20c')", "Books [o'clock] [a+b%25 c]");
        check("/Books(PartitionKey='(a)',RowKey=')')", "Books [(a)] [)]");
        check("/Books('x')", "OneKey(\"Books\")");
        check("/a/b/c", "Deeper(\"a\")");
        check("/Books/Tables", "Beneath { table: \"Books\", has_key: false }");
        check("/Books/Tables('Books')", "Beneath { table: \"Books\", has_key: true }");
    }

    #[test]
    fn keys_that_hold_slashes_are_bad_syntax() {
        let bad = "Bad Request - Error in query syntax.";
        check("/Books(PartitionKey='a%2Fb',RowKey='c')", bad);
        check("/Books(PartitionKey='a/b',RowKey='c')", bad);
        check("/Books(PartitionKey='a%5Cb',RowKey='c')", bad);
        check("/Books(PartitionKey='a',RowKey='b'", bad);
        check("/%ff", bad);
        check("/Books(PartitionKey='a%0A',RowKey='c')", "One of the request inputs is out of range.");
        check("/Books(partitionkey='a',RowKey='c')", "One of the request inputs is not valid.");
    }
}
