//! Entities as rows of a table with columns: `PartitionKey,RowKey,Timestamp,Name,Name@type,...`, the form that Azure
//! Storage Explorer writes and reads.
//!
//! A type tells an empty text from no text: a property that an entity lacks has neither value nor type.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use model::EdmType;
use wire::names::{PARTITION_KEY, ROW_KEY, TIMESTAMP};

use crate::csv;
use crate::entity::{self, Entity, Keys};

const TYPE_SUFFIX: &str = "@type";
const SYSTEM: [&str; 3] = [PARTITION_KEY, ROW_KEY, TIMESTAMP];

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

    /// Makes room for everything that an entity has.
    pub fn add_all(&mut self, entity: &Entity<'_>) {
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

    /// Adds an entity's row; gives the properties that have no column.
    pub fn write_row(&self, out: &mut Vec<u8>, entity: &Entity<'_>) -> Result<Vec<String>, String> {
        let mut cells = vec![Cow::Borrowed(""); SYSTEM.len() + 2 * self.names.len()];
        let mut homeless = Vec::new();
        for (name, json) in entity.properties() {
            let (value, kind) = cell(json, entity.annotated_type(name))
                .map_err(|why| format!("the value of {name} {why}; --format jsonl holds it"))?;
            if let Some(place) = SYSTEM.iter().position(|system| *system == name) {
                cells[place] = value;
            } else if let Some(place) = self.places.get(name) {
                let place = SYSTEM.len() + 2 * place;
                cells[place] = value;
                cells[place + 1] = Cow::Borrowed(kind);
            } else {
                homeless.push(name.to_owned());
            }
        }
        csv::write_record(out, cells.iter().map(|cell| &**cell));
        Ok(homeless)
    }
}

/// A value's text and its type.
fn cell<'a>(json: &'a str, annotated: Option<&'a str>) -> Result<(Cow<'a, str>, &'a str), &'static str> {
    let kind = |kind: EdmType| annotated.unwrap_or(kind.name());
    if json.starts_with('"') {
        let text = entity::text(json).ok_or("holds half of a character")?;
        return Ok((text, kind(EdmType::String)));
    }
    let own = match json {
        "true" | "false" => EdmType::Boolean,
        number if number.contains(['.', 'e', 'E']) => EdmType::Double,
        _ => EdmType::Int32,
    };
    Ok((Cow::Borrowed(json), kind(own)))
}

/// What each column of a file that is read holds.
#[derive(Debug)]
pub struct Header {
    width: usize,
    partition: usize,
    row: usize,
    properties: Vec<Property>,
}

#[derive(Debug)]
struct Property {
    name: String,
    value: usize,
    kind: Option<usize>,
}

impl Header {
    pub fn read(names: &[String]) -> Result<Self, String> {
        let mut seen = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(format!("two columns are called {twice:?}"));
        }
        let place = |wanted: &str| names.iter().position(|name| name == wanted);
        let key = |name: &str| {
            place(name).ok_or_else(|| format!("no column is called {name}; the first line names the columns"))
        };
        let (partition, row) = (key(PARTITION_KEY)?, key(ROW_KEY)?);
        let is_property =
            |name: &str| !name.ends_with(TYPE_SUFFIX) && !SYSTEM.contains(&name) && !name.is_empty();
        let properties = names.iter().enumerate().filter(|(_, name)| is_property(name));
        let properties = properties.map(|(value, name)| {
            let kind = place(&format!("{name}{TYPE_SUFFIX}"));
            Property { name: name.clone(), value, kind }
        });
        Ok(Self { width: names.len(), partition, row, properties: properties.collect() })
    }

    /// Writes the entity of a row as a request's body, and says its keys.
    pub fn write_body(&self, out: &mut Vec<u8>, cells: &[String]) -> Result<Keys, String> {
        if cells.len() != self.width {
            return Err(format!("it has {} fields where the first line has {}", cells.len(), self.width));
        }
        let keys = Keys { partition: cells[self.partition].clone(), row: cells[self.row].clone() };
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

fn write_property(out: &mut Vec<u8>, name: &str, value: &str, kind: &str) -> Result<(), String> {
    let bad = || format!("{name} is {value:?}, which is no {kind}");
    // Storage Explorer has written types with and without `Edm.`; what has none is text.
    let known = EdmType::ALL.into_iter().find(|known| {
        let short = known.name().trim_start_matches("Edm.");
        kind.eq_ignore_ascii_case(known.name()) || kind.eq_ignore_ascii_case(short)
    });
    let known = match known {
        Some(known) => known,
        None if kind.is_empty() => EdmType::String,
        None => return Err(format!("{name}{TYPE_SUFFIX} is {kind:?}; there are {}", type_names())),
    };
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
        // NaN and the infinities are text.
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

fn type_names() -> String {
    EdmType::ALL.map(EdmType::name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTITY: &str = r#"{"PartitionKey":"a,b","RowKey":"","Timestamp":"t","S":"","I":7,"L@odata.type":"Edm.Int64","L":"8","D":1.0,"N@odata.type":"Edm.Double","N":"NaN","B":true}"#;

    #[test]
    fn rows_are_those_of_storage_explorer() {
        let entity = Entity::parse(ENTITY).unwrap();
        let mut columns = Columns::default();
        columns.add_all(&entity);
        columns.add_all(&Entity::parse(r#"{"RowKey":"x","Other":1}"#).unwrap());
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
        let homeless = columns.write_row(&mut Vec::new(), &Entity::parse(ENTITY).unwrap());
        assert_eq!(homeless.unwrap(), ["I", "L", "D", "N", "B"]);
    }

    fn body(header: &str, record: &str) -> Result<String, String> {
        let header = Header::read(&csv::read_record(header)?)?;
        let mut out = Vec::new();
        header.write_body(&mut out, &csv::read_record(record)?)?;
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
            assert_eq!(got, expected, "{value} {kind}");
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
        check("1.5", "Edm.Int32", Err(r#"X is "1.5", which is no Edm.Int32"#));
        check("1", "Edm.Boolean", Err(r#"X is "1", which is no Edm.Boolean"#));
        check(
            "1",
            "Edm.Byte",
            Err(
                "X@type is \"Edm.Byte\"; there are Edm.String, Edm.Boolean, Edm.Int32, Edm.Int64, Edm.Double, \
                 Edm.DateTime, Edm.Guid, Edm.Binary",
            ),
        );
    }

    #[test]
    fn what_is_no_table_of_entities_is_refused() {
        let check = |header: &str, record: &str, expected: &str| {
            let error = body(header, record).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check("PartitionKey,A", "a,b", "no column is called RowKey");
        check("PartitionKey,RowKey,A,A", "a,b,c,d", "two columns are called \"A\"");
        check("PartitionKey,RowKey", "a", "it has 1 fields where the first line has 2");
    }
}
