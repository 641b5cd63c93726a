//! Storage Analytics: request logs in files and metrics in tables, as an account's service properties say.

mod exchange;
mod files;
mod keeper;
mod line;
mod metrics_tables;
mod outcome;
mod request_tally;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use common::{AccountName, DateTime};

pub use exchange::{Ending, Exchange, Observations};
use files::LogFiles;
pub use keeper::Keeper;
pub use metrics_tables::MetricsTables;
use protocol::service_properties::ServiceProperties;
use request_tally::RequestTally;
use thiserror::Error;

use crate::operation_info::Class;
use common::ServiceKind;

/// Requests of the same minute to one service of an account, at its primary or its secondary.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Window {
    account: AccountName,
    service: ServiceKind,
    secondary: bool,
    /// Minutes since 1970.
    minute: i64,
}

/// The thread that writes the request log can't be started.
#[derive(Debug, Error)]
#[error("can't start the thread of the request log: {0}; raise the system's limit on threads")]
pub struct RequestLogError(#[source] io::Error);

/// By the name of the operation.
type OperationTallies = BTreeMap<&'static str, RequestTally>;

#[derive(Debug)]
pub struct Analytics {
    counted: Mutex<BTreeMap<Window, OperationTallies>>,
    log: Option<LogFiles>,
}

impl Analytics {
    /// Without a directory, requests are counted but not logged.
    pub fn new(log: Option<PathBuf>) -> Result<Arc<Self>, RequestLogError> {
        let log = log.map(LogFiles::new).transpose().map_err(RequestLogError)?;
        Ok(Arc::new(Self { counted: Mutex::default(), log }))
    }

    fn count(&self, window: &Window, operation: &'static str, change: impl FnOnce(&mut RequestTally)) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        match counted.get_mut(window) {
            Some(counts) => change(counts.entry(operation).or_default()),
            // The window is copied only once a minute.
            None => change(counted.entry(window.clone()).or_default().entry(operation).or_default()),
        }
    }

    /// Takes out what was counted in minutes before this one.
    fn take_before(&self, minute: i64) -> Vec<(Window, OperationTallies)> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = Vec::new();
        counted.retain(|window, tallies| {
            let is_over = window.minute < minute;
            if is_over {
                taken.push((window.clone(), std::mem::take(tallies)));
            }
            !is_over
        });
        taken
    }

    fn logs(&self, properties: &ServiceProperties, class: Class) -> bool {
        let logging = &properties.logging;
        self.log.is_some()
            && match class {
                Class::Read => logging.read,
                Class::Write => logging.write,
                Class::Delete => logging.delete,
            }
    }
}

fn minute_of(time: DateTime) -> i64 {
    time.unix_seconds().div_euclid(60)
}
