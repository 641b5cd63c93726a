//! Adds the counts to the metrics tables every minute, and deletes logs and metrics past their retention.

use std::sync::Arc;
use std::time::Duration;

use common::{AccountName, DateTime};
use model::{EntityKey, Key, TableName};
use protocol::service_properties::Metrics;
use store::TableRef;
use tokio::sync::watch;

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
        let mut hour_begun = None;
        loop {
            let now = DateTime::now();
            self.make_tables().await;
            let hour = minute_of(now).div_euclid(MINUTES_PER_HOUR);
            if hour_begun != Some(hour) {
                hour_begun = Some(hour);
                self.begin_hour(now).await;
                self.expire(now).await;
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
        if let Some(log) = &self.analytics.log {
            log.close();
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
            if let (Some(days), true) = (properties.logging.retention_days, self.analytics.log.is_some()) {
                let (analytics, before) = (self.analytics.clone(), days_before(now, days));
                let expire =
                    move || analytics.log.as_ref().map(|log| log.expire(&(account, service), before));
                if let Ok(Some(Err(error))) = tokio::task::spawn_blocking(expire).await {
                    tracing::warn!(%error, "can't delete old request logs");
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
