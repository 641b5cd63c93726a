//! Where the data is: in memory, in a directory or in a cluster.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::error::SettingsError;
use super::file::File;
use super::flags::Flags;
use super::memory::default_cache_mib;
use super::{DATA, STORE_WAIT_SECONDS, positive};

#[derive(Debug, PartialEq, Eq)]
pub enum Storage {
    Memory,
    Directory {
        path: PathBuf,
        cache_bytes: usize,
        accept_loss: bool,
        accept_migration: bool,
    },
    /// A cluster that other servers may share.
    Cluster {
        address: StoreAddress,
        /// How long to wait for it at start.
        wait: Duration,
    },
}

/// The address as the operator wrote it, not parsed yet. Its `Debug` hides it, because it may contain a password.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct StoreAddress(String);

impl StoreAddress {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for StoreAddress {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreAddress(..)")
    }
}

impl Storage {
    /// Its name for clients.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Directory { .. } => "embedded",
            Self::Cluster { .. } => "cassandra",
        }
    }

    /// If flags or variables name a place, whatever the file names is ignored.
    pub(super) fn choose(flags: &Flags, file: &File) -> Result<Self, SettingsError> {
        let cluster = |address: &StoreAddress| Self::Cluster {
            address: address.clone(),
            wait: Duration::from_secs(
                flags.store_wait_seconds.or(file.store_wait_seconds).unwrap_or(STORE_WAIT_SECONDS),
            ),
        };
        let conflict = |other: &'static str| Err(SettingsError::TwoStores { other });
        match (&flags.store, &flags.data, flags.in_memory) {
            (Some(_), Some(_), _) => return conflict("data in a directory"),
            (Some(_), None, true) => return conflict("in-memory to keep none"),
            (Some(address), None, false) => return Ok(cluster(address)),
            _ => {}
        }
        if flags.data.is_none() && !flags.in_memory {
            match (&file.store, &file.data, file.in_memory) {
                (Some(_), Some(_), _) => return conflict("data in a directory"),
                (Some(_), None, true) => return conflict("in-memory to keep none"),
                (Some(address), None, false) => return Ok(cluster(address)),
                _ => {}
            }
        }
        let cache_mib = flags.cache_mib.or(file.cache_mib).unwrap_or_else(default_cache_mib);
        let cache_mib = positive("cache-mib", cache_mib)?;
        if flags.in_memory || (file.in_memory && flags.data.is_none()) {
            return Ok(Self::Memory);
        }
        Ok(Self::Directory {
            path: flags.data.as_ref().or(file.data.as_ref()).cloned().unwrap_or_else(|| DATA.into()),
            cache_bytes: cache_mib.saturating_mul(1024 * 1024),
            // Not from the file: the operator must accept each loss, not all later ones.
            accept_loss: flags.accept_loss,
            accept_migration: flags.accept_migration || file.accept_migration,
        })
    }
}
