//! A database file of Azurite: LokiJS collections in one JSON document, read record by record.

use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::AzuriteError;

/// Records that wait to be imported.
const WAITING_MAX: usize = 64;

/// One file; it may be missing.
#[derive(Clone, Debug)]
pub struct Database {
    path: PathBuf,
}

/// A record of a collection.
#[derive(Debug)]
pub struct Record {
    pub collection: String,
    pub json: Box<RawValue>,
}

impl Database {
    /// `table`, `queue`, `blob`, or one of these with `_extent`.
    pub fn of(folder: &Path, service: &str) -> Self {
        Self { path: folder.join(format!("__azurite_db_{service}__.json")) }
    }

    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The records of all collections, in the order of the file; none if the file is missing. The reader runs on a thread of
    /// its own and waits while too many records wait.
    pub fn records(&self) -> Records {
        let (send, receive) = mpsc::channel(WAITING_MAX);
        let path = self.path.clone();
        tokio::task::spawn_blocking(move || {
            if let Err(error) = read(&path, &send) {
                // Nobody may be there any more to hear it.
                let _ = send.blocking_send(Err(error));
            }
        });
        Records { receive }
    }

    /// A record as what it should be.
    pub fn parse<T: serde::de::DeserializeOwned>(&self, record: &Record) -> Result<T, AzuriteError> {
        let damaged = |error: serde_json::Error| AzuriteError::Record {
            path: self.path.clone(),
            what: format!("a record of {}", record.collection),
            why: error.to_string(),
        };
        serde_json::from_str(record.json.get()).map_err(damaged)
    }
}

pub struct Records {
    receive: mpsc::Receiver<Result<Record, AzuriteError>>,
}

impl Records {
    pub async fn next(&mut self) -> Result<Option<Record>, AzuriteError> {
        self.receive.recv().await.transpose()
    }
}

type Send = mpsc::Sender<Result<Record, AzuriteError>>;

fn read(path: &Path, send: &Send) -> Result<(), AzuriteError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(AzuriteError::Unreadable { path: path.to_owned(), source }),
    };
    let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(256 * 1024, file));
    let done = Walk(send).deserialize(&mut json).and_then(|()| json.end());
    match done {
        // The importer has stopped.
        Err(_) if send.is_closed() => Ok(()),
        Err(source) => Err(AzuriteError::Damaged { path: path.to_owned(), source }),
        Ok(()) => Ok(()),
    }
}

/// The document: an object with `collections`.
struct Walk<'a>(&'a Send);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a database of LokiJS")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(name) = map.next_key::<String>()? {
            if name == "collections" {
                map.next_value_seed(Collections(self.0))?;
                found = true;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if found { Ok(()) } else { Err(serde::de::Error::custom("it has no collections")) }
    }
}

struct Collections<'a>(&'a Send);

impl<'de> DeserializeSeed<'de> for Collections<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Collections<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of collections")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Collection(self.0))?.is_some() {}
        Ok(())
    }
}

struct Collection<'a>(&'a Send);

impl<'de> DeserializeSeed<'de> for Collection<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Collection<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a collection of records")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut collection = None;
        while let Some(key) = map.next_key::<String>()? {
            match (key.as_str(), &collection) {
                ("name", _) => collection = Some(map.next_value::<String>()?),
                ("data", Some(name)) => map.next_value_seed(Data { send: self.0, collection: name })?,
                // LokiJS writes the name first.
                ("data", None) => {
                    return Err(serde::de::Error::custom("a collection has records before its name"));
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

struct Data<'a> {
    send: &'a Send,
    collection: &'a str,
}

impl<'de> DeserializeSeed<'de> for Data<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Data<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(json) = seq.next_element::<Box<RawValue>>()? {
            let record = Record { collection: self.collection.to_owned(), json };
            if self.send.blocking_send(Ok(record)).is_err() {
                return Err(serde::de::Error::custom("the importer has stopped"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &str) -> Result<Vec<(String, String)>, String> {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::of(folder.path(), "table");
        std::fs::write(database.path(), text).unwrap();
        let (mut records, mut found) = (database.records(), Vec::new());
        while let Some(record) = records.next().await.map_err(|error| error.to_string())? {
            found.push((record.collection, record.json.get().to_owned()));
        }
        Ok(found)
    }

    #[tokio::test]
    async fn records_come_in_order_with_their_collections() {
        let text = r#"{"filename":"x","collections":[{"name":"a","data":[{"n":1.0},{"n":2}],"idIndex":null},
            {"name":"b","data":[]},{"name":"c","data":[{"s":"é"}]}],"databaseVersion":1.5}"#;
        let expected = [("a", r#"{"n":1.0}"#), ("a", r#"{"n":2}"#), ("c", r#"{"s":"é"}"#)];
        let expected: Vec<_> = expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!(all(text).await.unwrap(), expected);
    }

    #[tokio::test]
    async fn a_damaged_file_is_named() {
        for text in [
            "",
            "{}",
            "[]",
            r#"{"collections":[{"name":"a","data":[{"n":1}"#,
            r#"{"collections":[{"data":[1]}]}"#,
        ] {
            let error = all(text).await.unwrap_err();
            assert!(error.contains("__azurite_db_table__.json is damaged"), "{text}: {error}");
        }
    }

    #[tokio::test]
    async fn a_missing_file_has_no_records() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::of(folder.path(), "queue");
        assert!(!database.exists() && database.records().next().await.unwrap().is_none());
    }
}
