//! A table for each day: dropping a table is one request, deleting its rows takes many.

use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use model::{DateTime, limits};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::keys;
use partita_client::{ETag, Error, Filter, Result, StoredEntity, Table, TableService, property};

/// Tables `Logs20260130`, `Logs20260131` and so on, one for each day in UTC, created by the first write.
///
/// ```no_run
/// # async fn run(service: partita_client::TableService) -> partita_client::Result<()> {
/// use partita_client_patterns::{daily::Daily, keys};
/// use partita_client::{DateTime, Entity};
///
/// let logs = Daily::new(&service, "Logs")?;
/// let now = DateTime::now();
/// logs.insert(now, &Entity::new("web", keys::log_tail(now)).with("Text", "started")).await?;
/// let dropped = logs.retain(30, now).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Daily {
    service: TableService,
    name: String,
}

impl Daily {
    /// Tables whose names are this prefix and eight digits.
    pub fn new(service: &TableService, name: &str) -> Result<Self> {
        let daily = Self { service: service.clone(), name: name.to_owned() };
        match daily.table(DateTime::MAX) {
            Ok(_) if name.starts_with(|first: char| first.is_ascii_alphabetic()) => Ok(daily),
            _ => Err(Error::Invalid(format!(
                "{name:?} can't begin the names of tables; it takes up to {} letters and digits, a letter first",
                limits::TABLE_NAME_MAX - keys::day(DateTime::MAX).len()
            ))),
        }
    }

    /// The table of the day of a time; it does not have to exist.
    ///
    /// ```
    /// use partita_client_patterns::daily::Daily;
    /// use partita_client::{DateTime, TableService};
    ///
    /// let service = TableService::from_connection_string("UseDevelopmentStorage=true")?;
    /// let time = DateTime::parse("2026-01-31T23:59:59Z").unwrap();
    /// assert_eq!(Daily::new(&service, "Logs")?.table(time)?.name(), "Logs20260131");
    /// # Ok::<(), partita_client::Error>(())
    /// ```
    pub fn table(&self, time: DateTime) -> Result<Table> {
        self.service.table(&format!("{}{}", self.name, keys::day(time)))
    }

    /// Inserts an entity into the table of a time. Creates the table if it is missing.
    pub async fn insert<T: Serialize + ?Sized>(&self, time: DateTime, entity: &T) -> Result<ETag> {
        let table = self.table(time)?;
        match table.insert(entity).await {
            Err(error) if is_table_missing(&error) => {
                table.create_if_missing().await?;
                table.insert(entity).await
            }
            outcome => outcome,
        }
    }

    /// The existing tables of the days from one time to another, in order.
    pub async fn tables(&self, from: DateTime, to: DateTime) -> Result<Vec<Table>> {
        let mut tables = Vec::new();
        for (day, name) in self.list().await? {
            if (keys::start_of_day(from)..=to).contains(&day) {
                tables.push(self.service.table(&name)?);
            }
        }
        Ok(tables)
    }

    /// The entities of those days, optionally with a filter: day after day, each in the order of its keys. If a table is
    /// dropped while it is read, its remaining entities are skipped.
    ///
    /// ```no_run
    /// # async fn run(logs: partita_client_patterns::daily::Daily) -> partita_client::Result<()> {
    /// use futures_util::TryStreamExt as _;
    /// use partita_client::{DateTime, Entity, partition_key};
    ///
    /// let (from, to) = (DateTime::parse("2026-01-01").unwrap(), DateTime::now());
    /// let mut lines = std::pin::pin!(logs.query::<Entity>(from, to, Some(partition_key().eq("web"))));
    /// while let Some(line) = lines.try_next().await? {
    ///     println!("{:?}", line.text("Text"));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn query<T: DeserializeOwned + Send + 'static>(
        &self,
        from: DateTime,
        to: DateTime,
        filter: Option<Filter>,
    ) -> impl Stream<Item = Result<StoredEntity<T>>> + Send + use<T> {
        let daily = self.clone();
        let tables = stream::once(async move { daily.tables(from, to).await });
        let entities = tables.map_ok(move |tables| {
            let filter = filter.clone();
            stream::iter(tables).flat_map(move |table| {
                let query = table.query();
                let query = match &filter {
                    Some(filter) => query.filter(filter.clone()),
                    None => query,
                };
                query.stream::<T>().filter(|found| {
                    let gone = found.as_ref().is_err_and(is_table_missing);
                    std::future::ready(!gone)
                })
            })
        });
        entities.try_flatten()
    }

    /// Drops the tables of days that are more than `days` before `now`: with 0, keeps only those of today and later. Returns
    /// the names of the dropped tables. After a failure, call it again.
    pub async fn retain(&self, days: u32, now: DateTime) -> Result<Vec<String>> {
        let oldest = keys::start_of_day(now).ticks() - i64::from(days) * keys::TICKS_PER_DAY;
        let mut dropped = Vec::new();
        for (day, name) in self.list().await? {
            if day.ticks() >= oldest {
                continue;
            }
            match self.service.table(&name)?.drop().await {
                Ok(()) => dropped.push(name),
                // Another process has dropped it.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(dropped)
    }

    /// The days that have a table, with its name, in order.
    async fn list(&self) -> Result<Vec<(DateTime, String)>> {
        let ours = property(wire::names::TABLE_NAME).starts_with(&self.name);
        let names: Vec<String> = self.service.tables(Some(ours)).try_collect().await?;
        let mut days: Vec<_> =
            names.into_iter().filter_map(|name| Some((day_of(&self.name, &name)?, name))).collect();
        days.sort();
        Ok(days)
    }
}

/// The day in a table's name, such as `Logs20260131`; `None` for others, such as `LogsOld` and `LogsOld20260131`.
fn day_of(prefix: &str, name: &str) -> Option<DateTime> {
    keys::day_start(name.strip_prefix(prefix)?).ok()
}

fn is_table_missing(error: &Error) -> bool {
    error.code() == Some("TableNotFound")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_of_a_day_only_if_its_name_is_the_prefix_and_a_day() {
        let check = |name, expected: Option<&str>| {
            assert_eq!(day_of("Logs", name).map(keys::day).as_deref(), expected, "{name}");
        };
        check("Logs20260131", Some("20260131"));
        check("Logs20260231", None);
        check("Logs2026013", None);
        check("Logs202601311", None);
        check("LogsOld20260131", None);
        check("Logs", None);
        check("Log20260131", None);
    }

    #[test]
    fn a_prefix_that_names_no_table_is_refused() {
        let service = TableService::from_connection_string("UseDevelopmentStorage=true").unwrap();
        for name in ["", "1", "a-b", "é", "$Metrics"] {
            assert!(Daily::new(&service, name).is_err(), "{name}");
        }
        let fault = Daily::new(&service, &"a".repeat(56)).unwrap_err().to_string();
        assert!(fault.contains("up to 55 letters"), "{fault}");
        assert!(Daily::new(&service, &"a".repeat(55)).is_ok());
        assert!(Daily::new(&service, "L").is_ok());
    }
}
