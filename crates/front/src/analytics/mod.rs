//! Storage Analytics: request logs in blobs and metrics in tables, as an account's service properties say.

mod exchange;
mod keeper;
mod line;
mod log_store;
mod metrics_tables;
mod outcome;
mod request_log;
mod request_tally;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use common::{AccountName, DateTime};

pub use exchange::{Ending, Exchange, Observations};
pub use keeper::Keeper;
pub use log_store::{LogFacts, LogHour, LogLines, LogStore, LogStoreError};
pub use metrics_tables::MetricsTables;
use protocol::service_properties::ServiceProperties;
use request_log::RequestLog;
use request_tally::RequestTally;

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

/// By the name of the operation.
type OperationTallies = BTreeMap<&'static str, RequestTally>;

#[derive(Debug)]
pub struct Analytics {
    counted: Mutex<BTreeMap<Window, OperationTallies>>,
    log: Option<Arc<RequestLog>>,
}

impl Analytics {
    /// Without a store of logs, requests are counted but not logged.
    pub fn new(logs: Option<Arc<dyn LogStore>>) -> Arc<Self> {
        Arc::new(Self { counted: Mutex::default(), log: logs.map(RequestLog::new) })
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
