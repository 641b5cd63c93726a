//! The first reading of the files: which accounts they have, and the snapshots of blobs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::AzuriteError;
use super::database::Database;
use super::records::{self, BlobRecord, ContainerRecord, MessageRecord, OfAccount, QueueRecord, TableRecord};

/// Snapshots by container and blob, the oldest first.
pub type Snapshots = HashMap<(String, String), Vec<BlobRecord>>;

#[derive(Debug, Default)]
pub struct Survey {
    tables: BTreeSet<String>,
    queues: BTreeSet<String>,
    containers: BTreeSet<String>,
    snapshots: BTreeMap<String, Snapshots>,
}

impl Survey {
    pub async fn of(tables: &Database, queues: &Database, blobs: &Database) -> Result<Self, AzuriteError> {
        let mut survey = Self::default();
        let mut records = tables.records();
        while let Some(record) = records.next().await? {
            if record.collection == records::TABLES {
                survey.tables.insert(tables.parse::<TableRecord>(&record)?.account);
            }
        }
        let mut records = queues.records();
        while let Some(record) = records.next().await? {
            match record.collection.as_str() {
                records::QUEUES => {
                    survey.queues.insert(queues.parse::<QueueRecord>(&record)?.account_name);
                }
                records::MESSAGES => drop(queues.parse::<MessageRecord>(&record)?),
                _ => {}
            }
        }
        let mut records = blobs.records();
        while let Some(record) = records.next().await? {
            match record.collection.as_str() {
                records::CONTAINERS => {
                    survey.containers.insert(blobs.parse::<ContainerRecord>(&record)?.account_name);
                }
                records::BLOBS => {
                    let blob: BlobRecord = blobs.parse(&record)?;
                    if !blob.snapshot.is_empty() && !blob.deleted {
                        let of_account = survey.snapshots.entry(blob.account_name.clone()).or_default();
                        let key = (blob.container_name.clone(), blob.name.clone());
                        of_account.entry(key).or_default().push(blob);
                    }
                }
                records::BLOCKS => drop(blobs.parse::<OfAccount>(&record)?),
                _ => {}
            }
        }
        for list in survey.snapshots.values_mut().flat_map(HashMap::values_mut) {
            list.sort_by(|one, other| one.snapshot.cmp(&other.snapshot));
        }
        Ok(survey)
    }

    /// The account that is asked for, or the only one.
    pub fn account(&self, asked: Option<&str>) -> Result<String, AzuriteError> {
        let all: BTreeSet<&String> = self.tables.iter().chain(&self.queues).chain(&self.containers).collect();
        let accounts = || all.iter().map(|account| (*account).clone()).collect::<Vec<_>>();
        match (asked, all.first()) {
            (Some(asked), _) if all.iter().any(|account| *account == asked) => Ok(asked.to_owned()),
            (Some(asked), Some(_)) => {
                Err(AzuriteError::NoAccount { account: asked.to_owned(), accounts: accounts() })
            }
            (None, Some(only)) if all.len() == 1 => Ok((*only).clone()),
            (None, Some(_)) => Err(AzuriteError::WhichAccount { accounts: accounts() }),
            (asked, None) => Ok(asked.unwrap_or("devstoreaccount1").to_owned()),
        }
    }

    pub fn has_tables(&self, account: &str) -> bool {
        self.tables.contains(account)
    }

    pub fn has_queues(&self, account: &str) -> bool {
        self.queues.contains(account)
    }

    pub fn has_containers(&self, account: &str) -> bool {
        self.containers.contains(account)
    }

    pub fn snapshots(mut self, account: &str) -> Snapshots {
        self.snapshots.remove(account).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_chosen_or_is_the_only_one() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let survey = |tables: &[&str], queues: &[&str]| Survey {
            tables: set(tables),
            queues: set(queues),
            ..Survey::default()
        };
        assert_eq!(survey(&["a"], &["a"]).account(None).unwrap(), "a");
        assert_eq!(survey(&["a"], &["b"]).account(Some("b")).unwrap(), "b");
        let error = survey(&["a"], &["b"]).account(None).unwrap_err().to_string();
        assert!(error.contains("a, b") && error.contains("--azurite-account"), "{error}");
        let error = survey(&["a"], &[]).account(Some("c")).unwrap_err().to_string();
        assert!(error.contains("no account c"), "{error}");
    }
}
