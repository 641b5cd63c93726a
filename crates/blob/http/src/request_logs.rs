//! Request logs as blobs in `$logs`: `SERVICE/YYYY/MM/DD/hh00/nnnnnn.log`.
//!
//! Each server writes to logs of its own, so that none waits for another. A log grows until its hour is over or it is large
//! enough; after a restart the next number is begun.

use std::collections::HashMap;
use std::fmt;

use async_trait::async_trait;
use blob_model::{AccountName, BlobName, Metadata};
use blob_service::{BlobService, Error};
use front::analytics::{LogFacts, LogHour, LogLines, LogStore, LogStoreError};
use parking_lot::Mutex;

/// A log that has so many bytes is not appended to. Clients that read a blob in parts begin again if it grows meanwhile.
const LOG_BYTES_MAX: u64 = 16 * 1024 * 1024;
const LOGS_PER_HOUR_MAX: u32 = 1_000_000;

pub struct RequestLogs {
    service: BlobService,
    /// The logs that this server writes to.
    open: Mutex<HashMap<LogHour, OpenLog>>,
}

#[derive(Clone, Copy, Debug)]
struct OpenLog {
    number: u32,
    length: u64,
    facts: LogFacts,
}

impl RequestLogs {
    pub fn new(service: BlobService) -> Self {
        Self { service, open: Mutex::default() }
    }

    /// Puts lines into the log that is open, if it is still there.
    async fn append_to(&self, log: OpenLog, lines: &LogLines) -> Result<Option<OpenLog>, Error> {
        if log.length >= LOG_BYTES_MAX {
            return Ok(None);
        }
        let (facts, name) = (log.facts.and(lines.facts), name(&lines.of, log.number)?);
        let (account, text) = (&lines.of.account, lines.text.clone());
        let is_there = self.service.append_log(account, &name, log.length, text, &metadata(&facts)?).await?;
        let grown = OpenLog { length: log.length + lines.text.len() as u64, facts, ..log };
        Ok(is_there.then_some(grown))
    }

    /// Puts lines into a new log: the first free number from this one on.
    async fn create(&self, from: u32, lines: &LogLines) -> Result<OpenLog, LogStoreError> {
        let metadata = metadata(&lines.facts)?;
        for number in from..LOGS_PER_HOUR_MAX {
            let name = name(&lines.of, number)?;
            let (account, text) = (&lines.of.account, lines.text.clone());
            if self.service.create_log(account, &name, text, metadata.clone()).await? {
                return Ok(OpenLog { number, length: lines.text.len() as u64, facts: lines.facts });
            }
        }
        Err("the hour already has a million logs".into())
    }

    /// The number after those that the hour has.
    async fn next_number(&self, of: &LogHour) -> Result<u32, Error> {
        let folder = of.folder();
        let last = self.service.last_log(&of.account, &folder).await?;
        let number = |name: &str| name.strip_prefix(&folder)?.strip_suffix(".log")?.parse::<u32>().ok();
        Ok(last.as_deref().and_then(number).map_or(0, |last| last.saturating_add(1)))
    }
}

#[async_trait]
impl LogStore for RequestLogs {
    async fn prepare(&self, account: &AccountName) -> Result<(), LogStoreError> {
        Ok(self.service.make_logs(account).await?)
    }

    async fn append(&self, lines: LogLines) -> Result<(), LogStoreError> {
        let open = self.open.lock().get(&lines.of).copied();
        let grown = match open {
            Some(log) => self.append_to(log, &lines).await?,
            None => None,
        };
        let log = match (grown, open) {
            (Some(grown), _) => grown,
            (None, Some(full)) => self.create(full.number + 1, &lines).await?,
            (None, None) => {
                self.service.make_logs(&lines.of.account).await?;
                self.create(self.next_number(&lines.of).await?, &lines).await?
            }
        };
        let mut open = self.open.lock();
        open.retain(|hour, _| !hour.is_over_in(&lines.of));
        open.insert(lines.of, log);
        Ok(())
    }

    async fn expire(&self, before: &LogHour) -> Result<u64, LogStoreError> {
        let all = format!("{}/", before.service.name());
        Ok(self.service.expire_logs(&before.account, &all, &before.folder()).await?)
    }
}

fn name(of: &LogHour, number: u32) -> Result<BlobName, Error> {
    Ok(BlobName::parse(&format!("{}{number:06}.log", of.folder()))?)
}

fn metadata(facts: &LogFacts) -> Result<Metadata, Error> {
    let pairs = facts.metadata().into_iter().map(|(name, value)| (name.to_owned(), value));
    Ok(Metadata::new(pairs.collect())?)
}

impl fmt::Debug for RequestLogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestLogs")
    }
}

#[cfg(test)]
mod tests;
