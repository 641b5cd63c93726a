//! The first reading of the files: which accounts they have, and the snapshots of blobs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::AzuriteError;
use super::database::Database;
use super::records::{self, BlobRecord, ContainerRecord, MessageRecord, OfAccount, QueueRecord, TableRecord};

/// Snapshots by container and blob, the oldest first.
pub type Snapshots = HashMap<(String, String), Vec<BlobRecord>>;

/// What the records of snapshots may have together, because they wait in memory.
const SNAPSHOT_BYTES_MAX: usize = 256 * 1024 * 1024;
const ACCOUNTS_MAX: usize = 10_000;
const ACCOUNT_BYTES_MAX: usize = 256;
/// Accounts that an error names.
const SHOWN_MAX: usize = 20;

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
        let mut snapshot_bytes = 0;
        let mut records = tables.records();
        while let Some(record) = records.next().await? {
            if record.collection == records::TABLES {
                note(&mut survey.tables, tables.parse::<TableRecord>(&record)?.account, tables)?;
            }
        }
        let mut records = queues.records();
        while let Some(record) = records.next().await? {
            match record.collection.as_str() {
                records::QUEUES => {
                    note(&mut survey.queues, queues.parse::<QueueRecord>(&record)?.account_name, queues)?;
                }
                records::MESSAGES => drop(queues.parse::<MessageRecord>(&record)?),
                _ => {}
            }
        }
        let mut records = blobs.records();
        while let Some(record) = records.next().await? {
            match record.collection.as_str() {
                records::CONTAINERS => {
                    let of: ContainerRecord = blobs.parse(&record)?;
                    note(&mut survey.containers, of.account_name, blobs)?;
                }
                records::BLOBS => {
                    let blob: BlobRecord = blobs.parse(&record)?;
                    if !blob.snapshot.is_empty() && !blob.deleted {
                        snapshot_bytes += record.json.get().len();
                        if snapshot_bytes > SNAPSHOT_BYTES_MAX {
                            let why = format!("together they have more than {SNAPSHOT_BYTES_MAX} bytes");
                            return Err(unreadable(blobs, "the snapshots", why));
                        }
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

fn note(accounts: &mut BTreeSet<String>, account: String, of: &Database) -> Result<(), AzuriteError> {
    if account.len() > ACCOUNT_BYTES_MAX {
        return Err(unreadable(of, "an account", format!("its name has {} bytes", account.len())));
    }
    accounts.insert(account);
    match accounts.len() > ACCOUNTS_MAX {
        true => Err(unreadable(of, "the accounts", format!("there are more than {ACCOUNTS_MAX}"))),
        false => Ok(()),
    }
}

fn unreadable(database: &Database, what: &str, why: String) -> AzuriteError {
    AzuriteError::Record { path: database.path().to_owned(), what: what.to_owned(), why }
}

/// Names for an error.
pub fn shown(accounts: &[String]) -> String {
    let mut text = accounts.iter().take(SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    if let Some(more) = accounts.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        text += &format!(" and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_some_accounts() {
        let names = |count: usize| (0..count).map(|at| at.to_string()).collect::<Vec<_>>();
        assert_eq!(shown(&names(3)), "0, 1, 2");
        assert!(shown(&names(20)).ends_with("18, 19"));
        assert!(shown(&names(22)).ends_with("18, 19 and 2 more"));
    }

    #[test]
    fn accounts_have_bounds() {
        let database = Database::of(std::path::Path::new("folder"), "queue");
        let mut accounts = (1..ACCOUNTS_MAX).map(|at| at.to_string()).collect::<BTreeSet<_>>();
        assert!(note(&mut accounts, "a".repeat(ACCOUNT_BYTES_MAX), &database).is_ok());
        assert!(note(&mut accounts, "1".to_owned(), &database).is_ok(), "it is known");
        let error = note(&mut accounts, "b".to_owned(), &database).unwrap_err().to_string();
        assert!(error.contains("__azurite_db_queue__.json: the accounts can't be read"), "{error}");
        assert!(note(&mut BTreeSet::new(), "a".repeat(ACCOUNT_BYTES_MAX + 1), &database).is_err());
    }

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
