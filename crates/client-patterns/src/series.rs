//! Data series: many values over time in few entities.
//!
//! With one value per hour, a day is one entity with 24 properties instead of 24 entities. A point read gets a day, a range
//! query of 31 rows gets a month, and a merge adds a value without a read.

use std::collections::BTreeMap;

use model::{DateTime, Value, limits};

use super::keys;
use partita_client::{Entity, Error, Result, StoredEntity, Table, partition_key, row_key};

/// Values at equal steps of a day. Each source has one entity per day: the source is the partition key, the day (`20260131`,
/// in UTC) is the row key, and the values are properties such as `H00` to `H23`. Other properties of the entities are not
/// changed.
///
/// ```no_run
/// # async fn run(table: partita_client::Table) -> partita_client::Result<()> {
/// use partita_client::{DateTime, Value};
/// use partita_client_patterns::series::Series;
///
/// let power = Series::hourly(&table);
/// power.put("meter-7", DateTime::now(), 1.25).await?;
/// let (from, until) = (DateTime::parse("2026-01-01").unwrap(), DateTime::parse("2026-02-01").unwrap());
/// for (time, value) in power.between("meter-7", from, until).await? {
///     println!("{time} {value:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Series {
    table: Table,
    prefix: String,
    slots: u16,
}

const SECONDS_PER_DAY: u32 = 86_400;

impl Series {
    /// One value per hour, in `H00` to `H23`.
    pub fn hourly(table: &Table) -> Self {
        Self { table: table.clone(), prefix: "H".to_owned(), slots: 24 }
    }

    /// `slots` values per day, in properties whose names are the prefix and a number. Steps must be whole seconds, and an
    /// entity has at most 252 properties. `("Q", 96)` is one value every quarter of an hour.
    pub fn new(table: &Table, prefix: &str, slots: u16) -> Result<Self> {
        let fits = (1..=limits::CUSTOM_PROPERTIES_MAX).contains(&usize::from(slots));
        if !fits || !SECONDS_PER_DAY.is_multiple_of(u32::from(slots)) {
            return Err(Error::Invalid(format!(
                "a series of {slots} values a day; it takes up to {}, at steps of whole seconds",
                limits::CUSTOM_PROPERTIES_MAX
            )));
        }
        if !model::is_property_name(prefix) {
            return Err(Error::Invalid(format!(
                "{prefix:?} can't begin the name of a property; it takes letters"
            )));
        }
        Ok(Self { table: table.clone(), prefix: prefix.to_owned(), slots })
    }

    /// Sets the value of the step that contains a time.
    pub async fn put(&self, source: &str, time: DateTime, value: impl Into<Value>) -> Result<()> {
        self.put_all(source, [(time, value)]).await
    }

    /// Sets many values, with one write for each day. Of two values for the same step, the later wins. After a failure, the
    /// values of some days may be written; it can be repeated without harm.
    pub async fn put_all<V: Into<Value>>(
        &self,
        source: &str,
        values: impl IntoIterator<Item = (DateTime, V)>,
    ) -> Result<()> {
        let mut days: BTreeMap<String, Entity> = BTreeMap::new();
        for (time, value) in values {
            let day = keys::day(time);
            let entity = days.entry(day.clone()).or_insert_with(|| Entity::new(source, day));
            entity.set(self.name(self.slot(time)), value);
        }
        for entity in days.values() {
            self.table.upsert_merge(entity).await?;
        }
        Ok(())
    }

    /// The values of the day that contains a time, one for each step.
    pub async fn day(&self, source: &str, time: DateTime) -> Result<Vec<Option<Value>>> {
        let found: Option<StoredEntity<Entity>> = self.table.find(source, &keys::day(time)).await?;
        let mut entity = found.map(StoredEntity::into_inner).unwrap_or_default();
        Ok((0..self.slots).map(|slot| entity.remove(&self.name(slot))).collect())
    }

    /// The values of the steps that begin at `from` or later and before `until`, with the times at which they begin, in
    /// order. One range query of a row for each day.
    pub async fn between(
        &self,
        source: &str,
        from: DateTime,
        until: DateTime,
    ) -> Result<Vec<(DateTime, Value)>> {
        let days = partition_key().eq(source);
        let days = days.and(row_key().ge(keys::day(from))).and(row_key().le(keys::day(until)));
        let rows: Vec<StoredEntity<Entity>> = self.table.query().filter(days).all().await?;
        let mut values = Vec::new();
        for row in rows {
            let mut row = row.into_inner();
            // Skips other rows, such as totals.
            let Ok(day) = keys::day_start(&row.row_key) else { continue };
            for slot in 0..self.slots {
                let time = self.start(day, slot);
                if (from..until).contains(&time)
                    && let Some(value) = row.remove(&self.name(slot))
                {
                    values.push((time, value));
                }
            }
        }
        Ok(values)
    }

    fn step(&self) -> i64 {
        keys::TICKS_PER_DAY / i64::from(self.slots)
    }

    fn slot(&self, time: DateTime) -> u16 {
        let slot = time.ticks() % keys::TICKS_PER_DAY / self.step();
        // Never fails: the number is less than `slots`, a `u16`.
        u16::try_from(slot).unwrap_or(u16::MAX)
    }

    fn start(&self, day: DateTime, slot: u16) -> DateTime {
        // Never fails: the time is within its day.
        DateTime::from_ticks(day.ticks() + self.step() * i64::from(slot)).unwrap_or(DateTime::MAX)
    }

    /// All numbers have the width of the last, at least two digits, so that names sort as their times do.
    fn name(&self, slot: u16) -> String {
        let width = (self.slots - 1).to_string().len().max(2);
        format!("{}{slot:0width$}", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use partita_client::TableService;

    static TABLE: LazyLock<Table> = LazyLock::new(|| {
        TableService::from_connection_string("UseDevelopmentStorage=true").unwrap().table("Series").unwrap()
    });

    #[test]
    fn every_step_has_its_property() {
        let check = |slots, time: &str, expected: &str| {
            let series = Series::new(&TABLE, "V", slots).unwrap();
            assert_eq!(series.name(series.slot(DateTime::parse(time).unwrap())), expected);
        };
        check(24, "2026-01-31T00:00:00Z", "V00");
        check(24, "2026-01-31T23:59:59.9999999Z", "V23");
        check(96, "2026-01-31T10:15:00Z", "V41");
        check(96, "2026-01-31T10:14:59Z", "V40");
        check(240, "2026-01-31T23:59:00Z", "V239");
        check(1, "2026-01-31T23:59:00Z", "V00");
    }

    #[test]
    fn a_day_that_does_not_divide_is_refused() {
        for (prefix, slots) in [("V", 0), ("V", 253), ("V", 288), ("V", 7), ("", 24), ("a b", 24)] {
            assert!(Series::new(&TABLE, prefix, slots).is_err(), "{prefix:?} {slots}");
        }
    }

    proptest! {
        #[test]
        fn a_time_is_in_the_step_that_begins_before_it(
            ticks in 0..=DateTime::MAX.ticks(),
            slots in proptest::sample::select(vec![1_u16, 2, 24, 48, 96, 144, 240]),
        ) {
            let time = DateTime::from_ticks(ticks).unwrap();
            let series = Series::new(&TABLE, "V", slots).unwrap();
            let start = series.start(keys::start_of_day(time), series.slot(time));
            prop_assert!(start <= time && time.ticks() - start.ticks() < series.step());
        }
    }
}
