//! Adds the counts to the metrics tables every minute, has the request logs stored, and deletes logs and metrics past their
//! retention.

use std::sync::Arc;
use std::time::Duration;

use common::{AccountName, DateTime};
use model::{EntityKey, Key, TableName};
use protocol::service_properties::{Logging, Metrics};
use store::TableRef;
use tokio::sync::watch;

use super::log_store::LogHour;
use super::metrics_tables::MetricsTables;
use super::request_tally::RequestTally;
use super::{Analytics, Window, minute_of};
use crate::account::SharedAccounts;
use crate::properties_store::PropertiesStore;
use common::ServiceKind;

const MINUTES_PER_HOUR: i64 = 60;
const SECONDS_PER_DAY: u64 = 86_400;
/// The row of all operations together.
const ALL: &str = "All";

#[derive(Debug)]
pub struct Keeper {
    pub analytics: Arc<Analytics>,
    pub tables: MetricsTables,
    /// The services whose requests are counted.
    pub services: Vec<ServiceKind>,
    pub properties: Arc<PropertiesStore>,
    pub accounts: SharedAccounts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grain {
    Hour,
    Minute,
}

impl Keeper {
    /// Runs until told to stop, then stores the last counts.
    pub async fn run(self, mut stopped: watch::Receiver<()>) {
        let logging = self.analytics.log.clone().map(|log| tokio::spawn(log.run()));
        let mut hour_begun = None;
        loop {
            let now = DateTime::now();
            self.make_tables().await;
            self.make_logs().await;
            let hour = minute_of(now).div_euclid(MINUTES_PER_HOUR);
            if hour_begun != Some(hour) {
                hour_begun = Some(hour);
                self.begin_hour(now).await;
                // What is old can be any number of logs: a stop does not wait for them.
                tokio::select! {
                    _ = stopped.changed() => break,
                    () = self.expire(now) => {}
                }
            }
            self.flush(minute_of(now)).await;
            let next_minute = 60 - now.unix_seconds().rem_euclid(60);
            tokio::select! {
                // An error, as nothing is ever sent: the sender was dropped.
                _ = stopped.changed() => break,
                () = self.properties.changed() => {}
                () = tokio::time::sleep(Duration::from_secs(next_minute.unsigned_abs())) => {}
            }
        }
        // Metrics may have been turned on since the last round.
        self.make_tables().await;
        self.flush(i64::MAX).await;
        if let (Some(log), Some(logging)) = (&self.analytics.log, logging) {
            log.close();
            // It ends when the last lines are stored. A panic of it is already on standard error.
            let _ = logging.await;
        }
    }

    /// Every service of every account.
    fn owners(&self) -> Vec<(AccountName, ServiceKind)> {
        let accounts = self.accounts.current();
        let each =
            accounts.names().flat_map(|account| self.services.iter().map(move |service| (account, service)));
        each.map(|(account, service)| (account.clone(), *service)).collect()
    }

    async fn make_tables(&self) {
        for (account, service) in self.owners() {
            let properties = self.properties.of(&account, service).await;
            for (grain, metrics) in grains(&properties) {
                for secondary in [false, true] {
                    let Some(table) = table(&account, service, grain, secondary) else { continue };
                    if metrics.enabled
                        && let Err(error) = self.tables.ensure(&table).await
                    {
                        failed(&table, &error);
                    }
                }
            }
        }
    }

    /// Makes the container of logs of each account that turns them on.
    async fn make_logs(&self) {
        let Some(log) = &self.analytics.log else { return };
        for (account, service) in self.owners() {
            let Logging { read, write, delete, .. } = self.properties.of(&account, service).await.logging;
            if (read || write || delete)
                && let Err(error) = log.store().prepare(&account).await
            {
                tracing::warn!(%account, %error, "can't make the place of request logs");
            }
        }
    }

    /// Writes the rows of the new hour: an hour without requests has rows too.
    async fn begin_hour(&self, now: DateTime) {
        for (account, service) in self.owners() {
            let properties = self.properties.of(&account, service).await;
            if properties.hour_metrics.enabled {
                let window = Window { account, service, secondary: false, minute: minute_of(now) };
                for name in ["user", "system"] {
                    self.add(&window, Grain::Hour, (name, ALL), &RequestTally::default()).await;
                }
            }
        }
    }

    /// Adds the counts of the minutes before this one to their rows.
    async fn flush(&self, before: i64) {
        for (window, counted) in self.analytics.take_before(before) {
            let mut all = RequestTally::default();
            counted.values().for_each(|tally| all.add(tally));
            let properties = self.properties.of(&window.account, window.service).await;
            for (grain, metrics) in grains(&properties) {
                if !metrics.enabled {
                    continue;
                }
                self.add(&window, grain, ("user", ALL), &all).await;
                if metrics.include_apis {
                    for (name, tally) in &counted {
                        self.add(&window, grain, ("user", name), tally).await;
                    }
                }
            }
        }
    }

    async fn add(&self, window: &Window, grain: Grain, (who, name): (&str, &str), tally: &RequestTally) {
        let Window { account, service, secondary, minute } = window;
        let Some(table) = table(account, *service, grain, *secondary) else { return };
        let partition = match grain {
            Grain::Hour => partition(minute - minute.rem_euclid(MINUTES_PER_HOUR)),
            Grain::Minute => partition(*minute),
        };
        let Ok(key) = EntityKey::parse(&partition, &format!("{who};{name}")) else { return };
        let change = self.tables.change(&table, &key, |present| {
            let mut sum = present.map_or_else(RequestTally::default, RequestTally::from_row);
            sum.add(tally);
            sum.to_row()
        });
        if let Err(error) = change.await {
            failed(&table, &error);
        }
    }

    /// Deletes what is past its retention, also of logs and metrics that are turned off now.
    async fn expire(&self, now: DateTime) {
        for (account, service) in self.owners() {
            let properties = self.properties.of(&account, service).await;
            for (grain, metrics) in grains(&properties) {
                let Some(days) = metrics.retention_days else { continue };
                let Ok(before) = Key::parse(partition(minute_of(days_before(now, days)))) else { continue };
                for secondary in [false, true] {
                    let Some(table) = table(&account, service, grain, secondary) else { continue };
                    match self.tables.expire(&table, &before).await {
                        Ok(_) | Err(store::Error::TableNotFound) => {}
                        Err(error) => failed(&table, &error),
                    }
                }
            }
            if let (Some(days), Some(log)) = (properties.logging.retention_days, &self.analytics.log) {
                // The hour in which that time lies has not ended then.
                let before = LogHour::of(account, service, days_before(now, days));
                if let Err(error) = log.store().expire(&before).await {
                    tracing::warn!(account = %before.account, %error, "can't delete old request logs");
                }
            }
        }
    }
}

fn failed(table: &TableRef, error: &store::Error) {
    tracing::warn!(account = %table.account, table = %table.name, %error, "could not store metrics");
}

fn grains(properties: &protocol::service_properties::ServiceProperties) -> [(Grain, &Metrics); 2] {
    [(Grain::Hour, &properties.hour_metrics), (Grain::Minute, &properties.minute_metrics)]
}

fn table(account: &AccountName, service: ServiceKind, grain: Grain, secondary: bool) -> Option<TableRef> {
    let grain = match grain {
        Grain::Hour => "Hour",
        Grain::Minute => "Minute",
    };
    let location = if secondary { "Secondary" } else { "Primary" };
    let name = format!("$Metrics{grain}{location}Transactions{}", service.title());
    Some(TableRef::table(account.clone(), TableName::parse(&name).ok()?))
}

/// `YYYYMMddThhmm`.
fn partition(minute: i64) -> String {
    let since_1970 = Duration::from_secs(u64::try_from(minute * 60).unwrap_or_default());
    let text = DateTime::from(std::time::UNIX_EPOCH + since_1970).to_fixed_string();
    // `YYYY-MM-DDThh:mm:…`: ASCII of fixed width.
    [&text[0..4], &text[5..7], &text[8..13], &text[14..16]].concat()
}

fn days_before(now: DateTime, days: u16) -> DateTime {
    let seconds = u64::from(days) * SECONDS_PER_DAY;
    let ticks = i64::try_from(seconds * 10_000_000).unwrap_or(i64::MAX);
    DateTime::from_ticks(now.ticks().saturating_sub(ticks)).unwrap_or(DateTime::MIN)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use protocol::service_properties::Update;
    use store::{Gate, MemoryEngine};

    use super::super::{LogLines, LogStore, LogStoreError};
    use super::*;
    use crate::account::{Account, Accounts};

    /// Remembers what it was told to do.
    #[derive(Default)]
    struct Told(Mutex<Vec<String>>);

    #[async_trait]
    impl LogStore for Told {
        async fn prepare(&self, account: &AccountName) -> Result<(), LogStoreError> {
            self.0.lock().unwrap().push(format!("prepare {account}"));
            Ok(())
        }

        async fn append(&self, _: LogLines) -> Result<(), LogStoreError> {
            Ok(())
        }

        async fn expire(&self, before: &LogHour) -> Result<u64, LogStoreError> {
            self.0.lock().unwrap().push(format!("expire before {}", before.folder()));
            Ok(0)
        }
    }

    #[tokio::test]
    async fn logs_are_kept_as_long_as_their_service_says_also_once_they_are_turned_off() {
        let (engine, gate) = (Arc::new(MemoryEngine::new()), Arc::new(Gate::default()));
        let told = Arc::new(Told::default());
        let properties = Arc::new(PropertiesStore::new(engine.clone(), gate.clone()));
        let keeper = Keeper {
            analytics: Analytics::new(Some(told.clone())),
            tables: MetricsTables { engine, gate },
            services: vec![ServiceKind::Table, ServiceKind::Queue],
            properties: properties.clone(),
            accounts: SharedAccounts::new(Accounts::new([Account::development()])),
        };
        let account = Account::development().name;
        let now = DateTime::parse("2026-03-01T05:59:59Z").unwrap();
        keeper.make_logs().await;
        keeper.expire(now).await;
        assert_eq!(*told.0.lock().unwrap(), [""; 0], "nobody has asked for logs");
        let set = async |service, write, days| {
            let logging = Logging { write, retention_days: Some(days), ..Logging::default() };
            let update = Update { logging: Some(logging), ..Update::default() };
            properties.change(&account, service, &update).await.unwrap();
        };
        set(ServiceKind::Table, true, 2).await;
        set(ServiceKind::Queue, false, 365).await;
        keeper.make_logs().await;
        keeper.expire(now).await;
        let expected = [
            "prepare devstoreaccount1",
            "expire before table/2026/02/27/0500/",
            "expire before queue/2025/03/01/0500/",
        ];
        assert_eq!(*told.0.lock().unwrap(), expected);
    }
}
