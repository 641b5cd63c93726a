//! A database file of Azurite: LokiJS collections in one JSON document, read record by record.

use std::fmt;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::AzuriteError;
use super::bounded::{Bounded, Bounds};
use crate::plain_file;

/// Records that wait to be imported.
const WAITING_MAX: usize = 64;
/// The longest record, and what all that wait may have together. A blob of 50,000 blocks is one of about 10 MiB.
const RECORD_BYTES_MAX: u32 = 64 * 1024 * 1024;

/// One file; it may be missing.
#[derive(Clone, Debug)]
pub struct Database {
    path: PathBuf,
    record_bytes_max: u32,
}

/// A record of a collection.
#[derive(Debug)]
pub struct Record {
    pub collection: String,
    pub json: Box<RawValue>,
    /// Its part of the memory for records.
    _memory: OwnedSemaphorePermit,
}

impl Database {
    /// `table`, `queue`, `blob`, or one of these with `_extent`.
    pub fn of(folder: &Path, service: &str) -> Self {
        let path = folder.join(format!("__azurite_db_{service}__.json"));
        Self { path, record_bytes_max: RECORD_BYTES_MAX }
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
        let database = self.clone();
        tokio::task::spawn_blocking(move || {
            if let Err(error) = database.read(&send) {
                // Nobody may be there any more to hear it.
                let _ = send.blocking_send(Err(error));
            }
        });
        Records { receive }
    }

    fn read(&self, send: &Send) -> Result<(), AzuriteError> {
        let path = &self.path;
        let file = match plain_file::open(path.parent().unwrap_or(path), path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(AzuriteError::Unreadable { path: path.clone(), source }),
        };
        let bounds = Bounds::new(u64::from(self.record_bytes_max));
        let reader = Bounded::new(BufReader::with_capacity(256 * 1024, file), &bounds);
        let mut json = serde_json::Deserializer::from_reader(reader);
        let memory = Arc::new(Semaphore::new(self.record_bytes_max as usize));
        let walk = Walk(Reading { send, bounds: &bounds, memory: &memory, most: self.record_bytes_max });
        let done = walk.deserialize(&mut json).and_then(|()| json.end());
        match done {
            // The importer has stopped.
            Err(_) if send.is_closed() => Ok(()),
            Err(source) => Err(AzuriteError::Damaged { path: path.clone(), source }),
            Ok(()) => Ok(()),
        }
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

/// What every part of the reader needs.
#[derive(Clone, Copy)]
struct Reading<'a> {
    send: &'a Send,
    bounds: &'a Bounds,
    memory: &'a Arc<Semaphore>,
    most: u32,
}

impl Reading<'_> {
    fn key<'de, A: MapAccess<'de>>(self, map: &mut A) -> Result<Option<String>, A::Error> {
        self.bounds.begin_part();
        map.next_key()
    }

    fn skip<'de, A: MapAccess<'de>>(self, map: &mut A) -> Result<(), A::Error> {
        self.bounds.begin_skipped();
        map.next_value::<IgnoredAny>().map(drop)
    }

    /// Waits while the records that wait have too many bytes.
    fn send(self, collection: &str, json: Box<RawValue>) -> Result<(), &'static str> {
        const STOPPED: &str = "the importer has stopped";
        let bytes = u32::try_from(json.get().len()).unwrap_or(self.most).min(self.most);
        let memory = self.memory.clone().acquire_many_owned(bytes);
        let memory = Handle::current().block_on(memory).map_err(|_| STOPPED)?;
        let record = Record { collection: collection.to_owned(), json, _memory: memory };
        self.send.blocking_send(Ok(record)).map_err(|_| STOPPED)
    }
}

/// The document: an object with `collections`.
struct Walk<'a>(Reading<'a>);

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
        while let Some(name) = self.0.key(&mut map)? {
            if name == "collections" {
                map.next_value_seed(Collections(self.0))?;
                found = true;
            } else {
                self.0.skip(&mut map)?;
            }
        }
        if found { Ok(()) } else { Err(serde::de::Error::custom("it has no collections")) }
    }
}

struct Collections<'a>(Reading<'a>);

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

struct Collection<'a>(Reading<'a>);

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
        while let Some(key) = self.0.key(&mut map)? {
            match (key.as_str(), &collection) {
                ("name", _) => collection = Some(map.next_value::<String>()?),
                ("data", Some(name)) => map.next_value_seed(Data { reading: self.0, collection: name })?,
                // LokiJS writes the name first.
                ("data", None) => {
                    return Err(serde::de::Error::custom("a collection has records before its name"));
                }
                _ => self.0.skip(&mut map)?,
            }
        }
        Ok(())
    }
}

struct Data<'a> {
    reading: Reading<'a>,
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
        loop {
            self.reading.bounds.begin_part();
            let Some(json) = seq.next_element::<Box<RawValue>>()? else { return Ok(()) };
            self.reading.send(self.collection, json).map_err(serde::de::Error::custom)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &str) -> Result<Vec<(String, String)>, String> {
        let folder = tempfile::tempdir().unwrap();
        let database = Database { record_bytes_max: 1000, ..Database::of(folder.path(), "table") };
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
    async fn a_record_has_a_longest_length_and_what_is_skipped_has_none() {
        let long = "x".repeat(1000);
        for text in [
            format!(r#"{{"collections":[{{"name":"a","data":["{long}"]}}]}}"#),
            format!(r#"{{"collections":[{{"name":"{long}","data":[]}}]}}"#),
            format!(r#"{{"{long}":1,"collections":[]}}"#),
        ] {
            let error = all(&text).await.unwrap_err();
            assert!(error.contains("__azurite_db_table__.json is damaged"), "{error}");
            assert!(error.contains("more than 1000 bytes"), "{error}");
        }
        let skipped = format!(r#"{{"x":"{long}","collections":[{{"name":"a","y":"{long}","data":[1]}}]}}"#);
        assert_eq!(all(&skipped).await.unwrap(), [("a".to_owned(), "1".to_owned())]);
    }

    #[tokio::test]
    async fn records_that_wait_share_the_memory_of_one() {
        let record = format!("\"{}\"", "x".repeat(600));
        let text = format!(r#"{{"collections":[{{"name":"a","data":[{}]}}]}}"#, vec![record; 50].join(","));
        assert_eq!(all(&text).await.unwrap().len(), 50);
    }

    #[tokio::test]
    async fn deep_nesting_is_refused_wherever_it_is() {
        let deep = "[".repeat(800);
        for start in [r#"{"x":"#, r#"{"collections":[{"name":"a","data":["#, r#"{"collections":[{"z":"#] {
            let error = all(&format!("{start}{deep}")).await.unwrap_err();
            assert!(error.contains("nested more than 100 levels"), "{error}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::of(folder.path(), "table");
        std::fs::write(folder.path().join("other"), r#"{"collections":[]}"#).unwrap();
        std::os::unix::fs::symlink("other", database.path()).unwrap();
        let error = database.records().next().await.unwrap_err().to_string();
        assert!(error.contains("__azurite_db_table__.json: links are not followed"), "{error}");
    }

    #[tokio::test]
    async fn a_missing_file_has_no_records() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::of(folder.path(), "queue");
        assert!(!database.exists() && database.records().next().await.unwrap().is_none());
    }
}
