//! Reads entities and table names from the bodies of answers.

use model::{DateTime, Value, ValueCow};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::entity::{Entity, StoredEntity};
use crate::error::{Error, Result};
use crate::etag::ETag;

/// The members that a service adds to an entity.
#[derive(Deserialize)]
struct Added {
    #[serde(rename = "odata.etag")]
    etag: Option<String>,
    #[serde(rename = "Timestamp")]
    timestamp: Option<String>,
}

#[derive(Deserialize)]
struct Entities<'a> {
    #[serde(borrow)]
    value: Vec<&'a RawValue>,
}

/// The entities of a page.
pub fn entities(body: &[u8]) -> Result<Vec<StoredEntity<Entity>>> {
    let page: Entities<'_> = json(body)?;
    page.value.into_iter().map(|entity| read(entity.get().as_bytes(), None)).collect()
}

/// The only entity of a body. `etag` is the header's, for services that leave it out of the body.
pub fn entity(body: &[u8], etag: Option<&str>) -> Result<StoredEntity<Entity>> {
    read(body, etag)
}

fn read(body: &[u8], etag: Option<&str>) -> Result<StoredEntity<Entity>> {
    let added: Added = json(body)?;
    let said = wire::entity_json::read_entity(body)
        .map_err(|refusal| Error::Unreadable(format!("an entity in the answer can't be read: {refusal}")))?;
    let properties = said.properties.into_iter().map(|(name, value)| {
        let value = match value {
            ValueCow::Borrowed(value) => value.to_owned(),
            ValueCow::Owned(value) => value,
        };
        (name.into_owned(), value)
    });
    let entity = Entity {
        partition_key: said.partition_key.unwrap_or_default(),
        row_key: said.row_key.unwrap_or_default(),
        properties: properties.collect::<std::collections::BTreeMap<String, Value>>(),
    };
    let timestamp = added.timestamp.as_deref().and_then(DateTime::parse);
    let etag = added.etag.as_deref().or(etag).unwrap_or_default();
    Ok(StoredEntity::new(entity, ETag::new(etag), timestamp))
}

/// The names in a list of tables.
pub fn tables(body: &[u8]) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Tables {
        value: Vec<Named>,
    }
    #[derive(Deserialize)]
    struct Named {
        #[serde(rename = "TableName")]
        name: String,
    }
    let tables: Tables = json(body)?;
    Ok(tables.value.into_iter().map(|table| table.name).collect())
}

fn json<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|error| Error::Unreadable(format!("the answer is no table JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_read_with_what_the_service_adds() {
        let body = br#"{"odata.metadata":"x","value":[{"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"r",
            "Timestamp":"2021-05-06T07:08:09Z","I":1,"L@odata.type":"Edm.Int64","L":"2","D":1.0,"S":"s","B":true,
            "T@odata.type":"Edm.DateTime","T":"2021-01-01T00:00:00Z","Y@odata.type":"Edm.Binary","Y":"AQI=","N":null}]}"#;
        let [stored] = &entities(body).unwrap()[..] else { panic!("one entity") };
        let expected = Entity::new("p", "r")
            .with("I", 1)
            .with("L", 2_i64)
            .with("D", 1.0)
            .with("S", "s")
            .with("B", true)
            .with("T", DateTime::parse("2021-01-01T00:00:00Z").unwrap())
            .with("Y", vec![1, 2]);
        assert_eq!(stored.entity, expected);
        assert_eq!(stored.etag.as_str(), "W/\"1\"");
        assert_eq!(stored.timestamp, DateTime::parse("2021-05-06T07:08:09Z"));
    }

    #[test]
    fn what_is_no_answer_is_named() {
        for body in ["", "<html>", "{}", r#"{"value":[{"A@odata.type":"Edm.Int64","A":"x"}]}"#] {
            assert!(matches!(entities(body.as_bytes()), Err(Error::Unreadable(_))), "{body}");
        }
    }
}
