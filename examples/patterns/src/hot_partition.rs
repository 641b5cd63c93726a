//! Anti-pattern: all events are appended to one partition. The solution: buckets, and what it costs to read them.
//!
//! In the cloud one machine serves a partition, with a limit of 2,000 entities a second; `partita serve --throttle
//! azure` has the same limit. Without it, one server on one machine may show no difference, and the output then says
//! so.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use partita_client::{DateTime, Entity, Table, Transaction, partition_key};
use partita_client_patterns::keys::{self, Spread};

use crate::cost::{Class, Cost};
use crate::stage::{Outcome, ReadResult, Stage, read};

const WRITERS: u32 = 8;
/// Transactions of each writer in each of two rounds, and events in each.
const TRANSACTIONS: u32 = 6;
const EVENTS_EACH: u32 = 50;
const EVENTS: u32 = 2 * WRITERS * TRANSACTIONS * EVENTS_EACH;
const BUCKETS: u16 = 16;

/// The results of all rounds.
#[derive(Default)]
struct Run {
    time: Duration,
    busy: u32,
}

impl Run {
    fn rate(&self) -> f64 {
        f64::from(EVENTS) / self.time.as_secs_f64()
    }
}

pub async fn run(stage: &Stage) -> Outcome {
    stage.say(&format!("{EVENTS} events by {WRITERS} writers at once, {EVENTS_EACH} in a transaction"));
    let (one, many) = (stage.table("OnePartition").await?, stage.table("Buckets").await?);
    let spread = Spread::new("events", BUCKETS)?;
    let (to_one, to_many) = (stage.impatient(&one)?, stage.impatient(&many)?);
    let (mut hot, mut cool) = (Run::default(), Run::default());
    // One runs before and after the other, so that a machine that becomes slower or faster favours neither.
    append(&mut cool, 1, &to_many, |id| spread.of(id)).await?;
    append(&mut hot, 1, &to_one, |_| "events".to_owned()).await?;
    append(&mut hot, 2, &to_one, |_| "events".to_owned()).await?;
    append(&mut cool, 2, &to_many, |id| spread.of(id)).await?;
    for (what, run) in [("one partition", &hot), (&format!("{BUCKETS} buckets"), &cool)] {
        stage.say(&format!(
            "{what:<14} {:>7.0} events/s, told to come back (503) {} times",
            run.rate(),
            run.busy
        ));
    }
    stage.say(&format!("buckets took {:.2} times the events per second", cool.rate() / hot.rate()));

    let all = one.query().filter(partition_key().eq("events"));
    let hot = stage.look::<Entity>(Class::Range, "all in order, from one partition", &all).await?;
    stage.scanned("one partition", hot.cost, EVENTS.into())?;
    let cool = all_buckets(&many, &spread).await?;
    stage.tell(Class::Range, "all in order, from every bucket at once, sorted here", cool.cost);
    stage.scanned("all buckets", cool.cost, EVENTS.into())?;
    let order =
        |found: &ReadResult<Entity>| found.entities.iter().map(|row| row.row_key.clone()).collect::<Vec<_>>();
    stage.same("no event is lost or doubled", order(&hot).len() as u32, EVENTS)?;
    stage.same("order and number in the buckets", order(&cool).is_sorted(), true)?;
    stage.same("events in the buckets", order(&cool).len() as u32, EVENTS)?;
    let largest = largest_bucket(&cool);
    stage.holds("no bucket holds a quarter of them", largest < EVENTS / 4)
}

/// Appends events, with the present time in their keys.
async fn append(run: &mut Run, round: u32, table: &Table, partition: impl Fn(&str) -> String) -> Outcome {
    let (busy, start) = (AtomicU32::new(0), Instant::now());
    let writer = async |writer: u32| {
        for number in 0..TRANSACTIONS {
            let id = format!("{round}-{writer:02}-{number:04}");
            let bucket = partition(&id);
            let mut transaction = Transaction::new();
            for event in 0..EVENTS_EACH {
                let row = keys::join([keys::oldest_first(DateTime::now()), format!("{id}-{event}")]);
                transaction.insert(&Entity::new(&bucket, row).with("Text", "something happened"))?;
            }
            loop {
                match table.submit(transaction.clone()).await {
                    Ok(_) => break,
                    Err(error) if error.status() == Some(503) => {
                        busy.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    };
    try_join_all((0..WRITERS).map(writer)).await?;
    run.time += start.elapsed();
    run.busy += busy.into_inner();
    Ok(())
}

async fn all_buckets(table: &Table, spread: &Spread) -> Outcome<ReadResult<Entity>> {
    let start = Instant::now();
    let queries: Vec<_> =
        spread.all().map(|bucket| table.query().filter(partition_key().eq(bucket))).collect();
    let buckets: Vec<ReadResult<Entity>> = try_join_all(queries.iter().map(read)).await?;
    let cost = Cost::sum(buckets.iter().map(|bucket| bucket.cost));
    let mut entities: Vec<_> = buckets.into_iter().flat_map(|bucket| bucket.entities).collect();
    entities.sort_by(|a, b| a.row_key.cmp(&b.row_key));
    Ok(ReadResult { entities, cost: Cost { time: start.elapsed(), ..cost } })
}

fn largest_bucket(found: &ReadResult<Entity>) -> u32 {
    let mut sizes = std::collections::BTreeMap::new();
    for row in &found.entities {
        *sizes.entry(row.partition_key.as_str()).or_insert(0) += 1;
    }
    sizes.into_values().max().unwrap_or(0)
}
