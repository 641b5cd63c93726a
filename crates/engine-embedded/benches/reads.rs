//! What reading costs, in CPU time: `cargo bench -p partita-engine-embedded --bench reads`.
//!
//! CPU time of the whole process and not the clock, because the machine is shared; the clock is shown beside it to
//! tell whether two cores were at work. A part of a name as an argument leaves out the others. Rows are read through
//! the service, so that filters are the real ones.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine_embedded::{EmbeddedEngine, Options};
use model::{DateTime, Guid, Key, UnreadValue as _, Value};
use rustix::time::{ClockId, clock_gettime};
use service::{EntityQuery, Service};
use store::{
    Change, Condition, Engine, EntityViews, MemoryShare, RequestMemory, RowDraft, RowOperation,
    ShownProperties, TableRef, Transaction,
};
use store_suite::{draft, key, table};
use tempfile::TempDir;

const MIB: usize = 1024 * 1024;
const ROUNDS: usize = 10;
const GROUP: usize = 100;

#[tokio::main]
async fn main() {
    let small = Kind { name: "100 B", table: "Small", rows: 1_000_000, row: small };
    let large = Kind { name: "1 KiB", table: "Large", rows: 100_000, row: large };

    let directory = TempDir::new().unwrap();
    // Small write buffers, so that loading flushes often and compaction has run before anything is measured.
    let engine = open(directory.path(), 16 * MIB);
    for kind in [&small, &large] {
        load(&engine, kind, kind.rows).await;
    }
    engine.close().await;
    drop(engine);

    let engine = open(directory.path(), 128 * MIB);
    settle().await;
    let service = Service::new(engine.clone());
    for kind in [&small, &large] {
        measure_table(&service, kind, "in files").await;
    }
    println!("{} of these scans were shared by two threads", engine.counters().shared_scans);
    measure_pages(&service, &large).await;
    measure_gets(&service, &large).await;
    engine.close().await;

    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), 512 * MIB);
    let service = Service::new(engine.clone());
    for kind in [&small, &large] {
        let kind = Kind { rows: kind.rows / 10, ..*kind };
        load(&engine, &kind, kind.rows).await;
        measure_table(&service, &kind, "in the memtable").await;
    }
    engine.close().await;
}

#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    table: &'static str,
    rows: usize,
    row: fn(usize) -> RowDraft,
}

fn open(directory: &Path, write_buffer_bytes: usize) -> Arc<EmbeddedEngine> {
    let options = Options { block_cache_bytes: 1024 * MIB, write_buffer_bytes, ..Options::new(directory) };
    Arc::new(EmbeddedEngine::open(options).unwrap())
}

fn small(n: usize) -> RowDraft {
    draft(&[
        ("Name", Value::String(format!("name of {n:08}"))),
        ("Score", Value::Double(n as f64)),
        ("City", Value::String("Amsterdam".to_owned())),
        ("Age", Value::Int32((n % 100) as i32)),
    ])
}

fn large(n: usize) -> RowDraft {
    // Letters by chance, so that the files are not much smaller than what is read of them.
    let mut state = n as u64;
    let mut text = || -> Value {
        let letter = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + (state >> 33) as u8 % 26)
        };
        Value::String((0..140).map(letter).collect())
    };
    draft(&[
        ("Address", text()),
        ("Active", Value::Boolean(true)),
        ("Biography", text()),
        ("Created", Value::DateTime(DateTime::MIN_STORED)),
        ("Description", text()),
        ("Identity", Value::Guid(Guid([7; 16]))),
        ("Motto", text()),
        ("Notes", text()),
        ("Score", Value::Double(n as f64)),
        ("Title", text()),
        ("Age", Value::Int32((n % 100) as i32)),
    ])
}

/// In partitions of ten thousand rows.
async fn load(engine: &Arc<EmbeddedEngine>, kind: &Kind, rows: usize) {
    const TASKS: usize = 16;
    let table = table(kind.table);
    engine.create_table(&table, None).await.unwrap();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (engine, table, row) = (engine.clone(), table.clone(), kind.row);
            tokio::spawn(async move {
                for first in (task * GROUP..rows).step_by(TASKS * GROUP) {
                    let operations = (first..first + GROUP).map(|n| RowOperation {
                        row: Key::parse(format!("row{n:08}")).unwrap(),
                        condition: Condition::Anything,
                        change: Change::Put(row(n)),
                    });
                    let partition = Key::parse(format!("part{:03}", first / 10_000)).unwrap();
                    let group = Transaction::new(partition, operations.collect()).unwrap();
                    engine.apply(&table, group).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Waits until background work no longer takes time of its own.
async fn settle() {
    loop {
        let before = cpu();
        tokio::time::sleep(Duration::from_millis(500)).await;
        if cpu() - before < Duration::from_millis(5) {
            return;
        }
    }
}

async fn measure_table(service: &Service, kind: &Kind, place: &str) {
    for (what, filter) in [
        ("no match, last property", "Age gt 1000"),
        ("no match, no such property", "Missing eq 5"),
        ("no match, two properties", "Name eq 'x' and Age gt 1000"),
        ("no match, by row key", "RowKey eq 'none'"),
    ] {
        let name = format!("{} {place}: scan, {what}", kind.name);
        report(&name, kind.rows, async || assert_eq!(count(service, kind.table, Some(filter)).await, 0))
            .await;
    }
}

async fn measure_pages(service: &Service, kind: &Kind) {
    let one_per_cent = "PartitionKey eq 'part003' and Age eq 7";
    let name = format!("{}: partition scan, 1 % of 10,000", kind.name);
    report(&name, 10_000 * 10, async || {
        for _ in 0..10 {
            assert_eq!(count(service, kind.table, Some(one_per_cent)).await, 100);
        }
    })
    .await;
    let name = format!("{}: page of 1,000", kind.name);
    report(&name, 1_000 * 50, async || {
        for _ in 0..50 {
            assert_eq!(count(service, kind.table, None).await, 1000);
        }
    })
    .await;
    let name = format!("{}: page of 1,000, each property read", kind.name);
    report(&name, 1_000 * 50, async || {
        for _ in 0..50 {
            let page = service
                .query_entities(&table(kind.table), EntityQuery::default(), &mut unbounded())
                .await
                .unwrap();
            let read = |entities: EntityViews<'_>| entities.map(|e| read_all(e.properties)).sum::<usize>();
            assert_eq!(page.entities.show(read).unwrap(), 11_000);
        }
    })
    .await;
}

async fn measure_gets(service: &Service, kind: &Kind) {
    const GETS: usize = 50_000;
    let table = table(kind.table);
    let name = format!("{}: point get", kind.name);
    report(&name, GETS, async || {
        for i in 0..GETS {
            let n = i * 7919 % kind.rows;
            let key = key(&format!("part{:03}", n / 10_000), &format!("row{n:08}"));
            let row = service.get_entity(&table, &key).await.unwrap();
            assert!(row.raw().bytes().len() > 50);
        }
    })
    .await;
}

async fn count(service: &Service, name: &str, filter: Option<&str>) -> usize {
    let table: TableRef = table(name);
    let query = EntityQuery { filter, ..EntityQuery::default() };
    service.query_entities(&table, query, &mut unbounded()).await.unwrap().entities.len()
}

/// How many there are, once each was read.
fn read_all(properties: ShownProperties<'_>) -> usize {
    properties.filter_map(|(_, value)| black_box(value.value())).count()
}

/// Memory for a query, as much as it takes.
fn unbounded() -> MemoryShare {
    RequestMemory::new(usize::MAX).nothing()
}

/// The best of some rounds: what disturbs only ever adds.
async fn report(name: &str, rows: usize, mut round: impl AsyncFnMut()) {
    // Cargo adds arguments of its own.
    if let Some(part) = std::env::args().skip(1).find(|argument| !argument.starts_with("--"))
        && !name.contains(&part)
    {
        return;
    }
    round().await;
    let (mut least_cpu, mut least_clock) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let (cpu_before, started) = (cpu(), Instant::now());
        round().await;
        least_clock = least_clock.min(started.elapsed());
        least_cpu = least_cpu.min(cpu() - cpu_before);
    }
    let per_row = |time: Duration| time.as_secs_f64() * 1e9 / rows as f64;
    println!("{name:55} {:8.1} ns CPU {:8.1} ns clock a row", per_row(least_cpu), per_row(least_clock));
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
