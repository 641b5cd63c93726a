//! Entities as rows of CSV with the columns `PartitionKey,RowKey,Timestamp,Name,Name@type,...`, as Azure Storage Explorer
//! writes and reads them.
//!
//! If the entity lacks the property, the value and the type are both empty. An empty string has a type.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use model::EdmType;
use thiserror::Error;
use wire::names::{PARTITION_KEY, ROW_KEY, TIMESTAMP};

use crate::csv;
use crate::entity::{self, EntityKeys, JsonEntity};

const TYPE_SUFFIX: &str = "@type";
const SYSTEM: [&str; 3] = [PARTITION_KEY, ROW_KEY, TIMESTAMP];

/// Why an entity can't be a row.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CellError {
    #[error(
        "the value of {name} contains half of a surrogate pair, which CSV can't hold; use --format jsonl"
    )]
    LoneSurrogate { name: String },
}

/// Why the first line of a file does not name the columns of entities.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    #[error("two columns are called {name:?}; rename one of them")]
    SameName { name: String },
    #[error("no column is called {name}; the first line must name the columns")]
    NoKey { name: &'static str },
}

/// Why a row of a file is not an entity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RowError {
    #[error("it has {fields} fields, but the first line has {columns}")]
    Width { fields: usize, columns: usize },
    #[error("{name} is {value:?}, which is not a value of {kind}")]
    Value { name: String, value: String, kind: &'static str },
    #[error("{name}{TYPE_SUFFIX} is {kind:?}; the types are {}", EdmType::ALL.map(EdmType::name).join(", "))]
    UnknownType { name: String, kind: String },
}

/// The properties that have columns, in their order.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    names: Vec<String>,
    places: HashMap<String, usize>,
}

impl Columns {
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let mut columns = Self::default();
        columns.extend(names);
        columns
    }

    pub fn extend(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            self.add(name.trim());
        }
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Adds a column for each property of an entity.
    pub fn add_all(&mut self, entity: &JsonEntity<'_>) {
        for (name, _) in entity.properties() {
            self.add(name);
        }
    }

    fn add(&mut self, name: &str) {
        if !SYSTEM.contains(&name) && !self.places.contains_key(name) {
            self.places.insert(name.to_owned(), self.names.len());
            self.names.push(name.to_owned());
        }
    }

    pub fn write_header(&self, out: &mut Vec<u8>) {
        let types: Vec<String> = self.names.iter().map(|name| format!("{name}{TYPE_SUFFIX}")).collect();
        let properties =
            self.names.iter().zip(&types).flat_map(|(name, kind)| [name.as_str(), kind.as_str()]);
        csv::write_record(out, SYSTEM.into_iter().chain(properties));
    }

    /// Adds an entity's row; returns the properties that have no column.
    pub fn write_row(&self, out: &mut Vec<u8>, entity: &JsonEntity<'_>) -> Result<Vec<String>, CellError> {
        let mut cells = vec![Cow::Borrowed(""); SYSTEM.len() + 2 * self.names.len()];
        let mut without_column = Vec::new();
        for (name, json) in entity.properties() {
            let (value, kind) = cell(json, entity.annotated_type(name))
                .ok_or_else(|| CellError::LoneSurrogate { name: name.to_owned() })?;
            if let Some(place) = SYSTEM.iter().position(|system| *system == name) {
                cells[place] = value;
            } else if let Some(place) = self.places.get(name) {
                let place = SYSTEM.len() + 2 * place;
                cells[place] = value;
                cells[place + 1] = Cow::Borrowed(kind);
            } else {
                without_column.push(name.to_owned());
            }
        }
        csv::write_record(out, cells.iter().map(|cell| &**cell));
        Ok(without_column)
    }
}

/// A value's text and its type; `None` if no text can hold the value.
pub fn cell<'a>(json: &'a str, annotated: Option<&'a str>) -> Option<(Cow<'a, str>, &'a str)> {
    let kind = |kind: EdmType| annotated.unwrap_or(kind.name());
    if json.starts_with('"') {
        return Some((entity::text(json)?, kind(EdmType::String)));
    }
    let own = match json {
        "true" | "false" => EdmType::Boolean,
        number if number.contains(['.', 'e', 'E']) => EdmType::Double,
        _ => EdmType::Int32,
    };
    Some((Cow::Borrowed(json), kind(own)))
}

/// What each column of a file to import holds.
#[derive(Debug)]
pub struct CsvHeader {
    width: usize,
    partition: usize,
    row: usize,
    properties: Vec<PropertyColumns>,
}

#[derive(Debug)]
struct PropertyColumns {
    name: String,
    value: usize,
    kind: Option<usize>,
}

impl CsvHeader {
    pub fn read(names: &[String]) -> Result<Self, HeaderError> {
        let mut seen = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(HeaderError::SameName { name: twice.clone() });
        }
        let place = |wanted: &str| names.iter().position(|name| name == wanted);
        let key = |name: &'static str| place(name).ok_or(HeaderError::NoKey { name });
        let (partition, row) = (key(PARTITION_KEY)?, key(ROW_KEY)?);
        let is_property =
            |name: &str| !name.ends_with(TYPE_SUFFIX) && !SYSTEM.contains(&name) && !name.is_empty();
        let properties = names.iter().enumerate().filter(|(_, name)| is_property(name));
        let properties = properties.map(|(value, name)| {
            let kind = place(&format!("{name}{TYPE_SUFFIX}"));
            PropertyColumns { name: name.clone(), value, kind }
        });
        Ok(Self { width: names.len(), partition, row, properties: properties.collect() })
    }

    /// Writes the entity of a row as a request's body, and returns its keys.
    pub fn write_body(&self, out: &mut Vec<u8>, cells: &[String]) -> Result<EntityKeys, RowError> {
        if cells.len() != self.width {
            return Err(RowError::Width { fields: cells.len(), columns: self.width });
        }
        let keys = EntityKeys { partition: cells[self.partition].clone(), row: cells[self.row].clone() };
        out.extend_from_slice(b"{\"PartitionKey\":");
        entity::write_text(out, &keys.partition);
        out.extend_from_slice(b",\"RowKey\":");
        entity::write_text(out, &keys.row);
        for property in &self.properties {
            let (value, kind) = (&cells[property.value], property.kind.map_or("", |place| &cells[place]));
            if !value.is_empty() || !kind.is_empty() {
                write_property(out, &property.name, value, kind)?;
            }
        }
        out.push(b'}');
        Ok(keys)
    }
}

/// Writes a comma, and a property of a request's body.
pub fn write_property(out: &mut Vec<u8>, name: &str, value: &str, kind: &str) -> Result<(), RowError> {
    // Storage Explorer has written types with and without `Edm.`. A value without a type is a string.
    let known = EdmType::ALL.into_iter().find(|known| {
        let short = known.name().trim_start_matches("Edm.");
        kind.eq_ignore_ascii_case(known.name()) || kind.eq_ignore_ascii_case(short)
    });
    let known = match known {
        Some(known) => known,
        None if kind.is_empty() => EdmType::String,
        None => return Err(RowError::UnknownType { name: name.to_owned(), kind: kind.to_owned() }),
    };
    let bad = || RowError::Value { name: name.to_owned(), value: value.to_owned(), kind: known.name() };
    let number;
    let (annotated, json) = match known {
        EdmType::String => (false, None),
        EdmType::Boolean if value.eq_ignore_ascii_case("true") => (false, Some("true")),
        EdmType::Boolean if value.eq_ignore_ascii_case("false") => (false, Some("false")),
        EdmType::Boolean => return Err(bad()),
        EdmType::Int32 => {
            number = value.trim().parse::<i32>().map_err(|_| bad())?.to_string();
            (false, Some(number.as_str()))
        }
        // NaN and the infinities are strings in JSON.
        EdmType::Double if serde_json::from_str::<serde_json::Number>(value).is_ok() => (true, Some(value)),
        EdmType::Double | EdmType::Int64 | EdmType::DateTime | EdmType::Guid | EdmType::Binary => {
            (true, None)
        }
    };
    out.push(b',');
    if annotated {
        entity::write_text(out, &format!("{name}{}", entity::TYPE_ANNOTATION));
        out.push(b':');
        entity::write_text(out, known.name());
        out.push(b',');
    }
    entity::write_text(out, name);
    out.push(b':');
    match json {
        Some(json) => out.extend_from_slice(json.as_bytes()),
        None => entity::write_text(out, value),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTITY: &str = r#"{"PartitionKey":"a,b","RowKey":"","Timestamp":"t","S":"","I":7,"L@odata.type":"Edm.Int64","L":"8","D":1.0,"N@odata.type":"Edm.Double","N":"NaN","B":true}"#;

    #[test]
    fn rows_are_those_of_storage_explorer() {
        let entity = JsonEntity::parse(ENTITY).unwrap();
        let mut columns = Columns::default();
        columns.add_all(&entity);
        columns.add_all(&JsonEntity::parse(r#"{"RowKey":"x","Other":1}"#).unwrap());
        let mut out = Vec::new();
        columns.write_header(&mut out);
        assert_eq!(columns.write_row(&mut out, &entity), Ok(vec![]));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "PartitionKey,RowKey,Timestamp,S,S@type,I,I@type,L,L@type,D,D@type,N,N@type,B,B@type,Other,Other@type\r\n\
             \"a,b\",,t,,Edm.String,7,Edm.Int32,8,Edm.Int64,1.0,Edm.Double,NaN,Edm.Double,true,Edm.Boolean,,\r\n"
        );
    }

    #[test]
    fn a_property_without_a_column_is_named() {
        let columns = Columns::new(["S".to_owned(), "RowKey".to_owned(), "S".to_owned()]);
        assert_eq!(columns.names(), ["S"]);
        let without_column = columns.write_row(&mut Vec::new(), &JsonEntity::parse(ENTITY).unwrap());
        assert_eq!(without_column.unwrap(), ["I", "L", "D", "N", "B"]);
    }

    fn header(names: &str) -> Result<CsvHeader, HeaderError> {
        CsvHeader::read(&csv::read_record(names).unwrap())
    }

    fn body(names: &str, record: &str) -> Result<String, RowError> {
        let mut out = Vec::new();
        header(names).unwrap().write_body(&mut out, &csv::read_record(record).unwrap())?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn types_decide_what_a_cell_is() {
        let check = |value: &str, kind: &str, expected: Result<&str, &str>| {
            let got = body("RowKey,X,X@type,PartitionKey,Timestamp", &format!("r,{value},{kind},p,t"));
            let expected = match expected {
                Ok("") => Ok(r#"{"PartitionKey":"p","RowKey":"r"}"#.to_owned()),
                Ok(json) => Ok(format!(r#"{{"PartitionKey":"p","RowKey":"r",{json}}}"#)),
                Err(text) => Err(text.to_owned()),
            };
            assert_eq!(got.map_err(|error| error.to_string()), expected, "{value} {kind}");
        };
        check("", "", Ok(""));
        check("", "Edm.String", Ok(r#""X":"""#));
        check("1", "", Ok(r#""X":"1""#));
        check("1", "String", Ok(r#""X":"1""#));
        check("1", "int32", Ok(r#""X":1"#));
        check("True", "Edm.Boolean", Ok(r#""X":true"#));
        check("1", "Edm.Int64", Ok(r#""X@odata.type":"Edm.Int64","X":"1""#));
        check("1", "Double", Ok(r#""X@odata.type":"Edm.Double","X":1"#));
        check("-1E+300", "Double", Ok(r#""X@odata.type":"Edm.Double","X":-1E+300"#));
        check("NaN", "Double", Ok(r#""X@odata.type":"Edm.Double","X":"NaN""#));
        check("", "Edm.Binary", Ok(r#""X@odata.type":"Edm.Binary","X":"""#));
        check("1.5", "Edm.Int32", Err(r#"X is "1.5", which is not a value of Edm.Int32"#));
        check("1", "Edm.Boolean", Err(r#"X is "1", which is not a value of Edm.Boolean"#));
        check(
            "1",
            "Edm.Byte",
            Err(
                "X@type is \"Edm.Byte\"; the types are Edm.String, Edm.Boolean, Edm.Int32, Edm.Int64, Edm.Double, \
                 Edm.DateTime, Edm.Guid, Edm.Binary",
            ),
        );
    }

    #[test]
    fn columns_that_do_not_make_entities_are_refused() {
        assert_eq!(header("PartitionKey,A").unwrap_err(), HeaderError::NoKey { name: "RowKey" });
        let same = HeaderError::SameName { name: "A".to_owned() };
        assert_eq!(header("PartitionKey,RowKey,A,A").unwrap_err(), same);
        assert_eq!(body("PartitionKey,RowKey", "a"), Err(RowError::Width { fields: 1, columns: 2 }));
    }
}
