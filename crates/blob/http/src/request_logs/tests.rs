use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blob_model::{BlobKind, ContainerName, DateTime};
use blob_service::{
    BlobEntry, BlobQuery, BlobRef, ContainerRef, DeleteBlob, GetBlob, ListedEntry, Request, Which,
};
use front::{Class, ServiceKind};
use store::{Engine, MemoryEngine, MemoryObjects, TableRef, Transaction};
use store_suite::{EngineDouble, TestEngine};

use super::*;

fn account() -> AccountName {
    AccountName::parse("devstoreaccount1").unwrap()
}

fn lines(service: ServiceKind, time: &str, text: &str) -> LogLines {
    let time = DateTime::parse(time).unwrap();
    LogLines {
        of: LogHour::of(account(), service, time),
        text: text.to_owned().into(),
        facts: LogFacts::of(time, Class::Write, false),
    }
}

fn at_three(text: &str) -> LogLines {
    lines(ServiceKind::Table, "2026-01-02T03:10:00Z", text)
}

fn service() -> BlobService {
    BlobService::new(Arc::new(MemoryEngine::new()), Arc::new(MemoryObjects::new()))
}

fn container() -> ContainerRef {
    ContainerRef::new(&account(), &ContainerName::logs())
}

async fn content(service: &BlobService, name: &str) -> String {
    let blob = BlobRef::new(container(), BlobName::parse(name).unwrap());
    let download = service.get_blob(&blob, Which::Current, GetBlob::default(), &Request::plain()).await;
    let mut content = download.unwrap().content;
    let mut text = Vec::new();
    while let Some(piece) = std::future::poll_fn(|context| content.as_mut().poll_next(context)).await {
        text.extend_from_slice(&piece.unwrap());
    }
    String::from_utf8(text).unwrap()
}

async fn listed(service: &BlobService) -> Vec<ListedEntry> {
    let all = BlobQuery { limit: 100, ..BlobQuery::default() };
    let page = service.list_blobs(&container(), &all).await.unwrap();
    let entry = |entry| match entry {
        BlobEntry::Blob(listed) => *listed,
        BlobEntry::Prefix(prefix) => panic!("{prefix}"),
    };
    page.entries.into_iter().map(entry).collect()
}

/// Names, each with its content.
async fn all(service: &BlobService) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for ListedEntry { name, .. } in listed(service).await {
        let text = content(service, &name).await;
        all.push((name, text));
    }
    all
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[tokio::test]
async fn lines_of_an_hour_are_one_log_and_each_server_has_its_own() {
    let service = service();
    for server in ["first", "second"] {
        let logs = RequestLogs::new(service.clone());
        for n in 0..2 {
            logs.append(at_three(&format!("{server} {n}\n"))).await.unwrap();
            let queue = lines(ServiceKind::Queue, "2026-01-02T04:00:00Z", &format!("{server} {n}\n"));
            logs.append(queue).await.unwrap();
        }
    }
    let expected = pairs(&[
        ("queue/2026/01/02/0400/000000.log", "first 0\nfirst 1\n"),
        ("queue/2026/01/02/0400/000001.log", "second 0\nsecond 1\n"),
        ("table/2026/01/02/0300/000000.log", "first 0\nfirst 1\n"),
        ("table/2026/01/02/0300/000001.log", "second 0\nsecond 1\n"),
    ]);
    assert_eq!(all(&service).await, expected);
}

#[tokio::test]
async fn two_servers_that_begin_at_once_take_different_numbers() {
    let service = service();
    let servers: Vec<_> = (0..8).map(|_| Arc::new(RequestLogs::new(service.clone()))).collect();
    let begun: Vec<_> = servers
        .iter()
        .enumerate()
        .map(|(n, logs)| {
            let logs = logs.clone();
            tokio::spawn(
                async move { logs.append(at_three(&format!("{n}\n"))).await.map_err(|e| e.to_string()) },
            )
        })
        .collect();
    for begun in begun {
        begun.await.unwrap().unwrap();
    }
    let mut texts: Vec<String> = all(&service).await.into_iter().map(|(_, text)| text).collect();
    texts.sort();
    assert_eq!(texts, (0..8).map(|n| format!("{n}\n")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_log_says_what_it_has() {
    let service = service();
    let logs = RequestLogs::new(service.clone());
    let of = |time: &str, class| {
        let mut lines = lines(ServiceKind::Blob, time, "x\n");
        lines.facts = LogFacts::of(DateTime::parse(time).unwrap(), class, false);
        lines
    };
    logs.append(of("2026-01-02T03:10:00Z", Class::Write)).await.unwrap();
    logs.append(of("2026-01-02T03:09:00Z", Class::Delete)).await.unwrap();
    let found = listed(&service).await.remove(0).properties.unwrap();
    let said: Vec<(&str, &str)> = found.metadata.iter().collect();
    let expected = [
        ("LogType", "write,delete"),
        ("StartTime", "2026-01-02T03:09:00Z"),
        ("EndTime", "2026-01-02T03:10:00Z"),
        ("LogVersion", "1.0"),
    ];
    assert_eq!(said, expected);
    assert!(matches!(found.kind, BlobKind::Block { .. }));
}

#[tokio::test]
async fn a_log_that_is_full_or_deleted_is_followed_by_the_next() {
    let service = service();
    let logs = RequestLogs::new(service.clone());
    let large = "x".repeat(usize::try_from(LOG_BYTES_MAX).unwrap());
    for text in [&large, "next\n", "more\n"] {
        logs.append(at_three(text)).await.unwrap();
    }
    let folder = "table/2026/01/02/0300";
    let second = format!("{folder}/000001.log");
    assert_eq!(content(&service, &second).await, "next\nmore\n");
    let blob = BlobRef::new(container(), BlobName::parse(&second).unwrap());
    service.delete_blob(&blob, DeleteBlob::default(), &Request::plain()).await.unwrap();
    logs.append(at_three("after\n")).await.unwrap();
    assert_eq!(content(&service, &format!("{folder}/000002.log")).await, "after\n");
    assert_eq!(listed(&service).await.len(), 2);
}

#[tokio::test]
async fn logs_of_hours_that_are_over_are_forgotten() {
    let logs = RequestLogs::new(service());
    for hour in 0..5 {
        logs.append(lines(ServiceKind::Table, &format!("2026-01-02T{hour:02}:00:00Z"), "x\n")).await.unwrap();
    }
    assert_eq!(logs.open.lock().len(), 2);
}

#[tokio::test]
async fn logs_past_their_time_are_deleted() {
    let service = service();
    let logs = RequestLogs::new(service.clone());
    let times = ["2025-12-31T23:00:00Z", "2026-01-01T05:00:00Z", "2026-01-01T06:00:00Z"];
    for time in times {
        logs.append(lines(ServiceKind::Table, time, "x\n")).await.unwrap();
        logs.append(lines(ServiceKind::Blob, time, "x\n")).await.unwrap();
    }
    let before = LogHour::of(account(), ServiceKind::Table, DateTime::parse("2026-01-01T05:30:00Z").unwrap());
    assert_eq!(logs.expire(&before).await.unwrap(), 1);
    let names: Vec<String> = listed(&service).await.into_iter().map(|listed| listed.name).collect();
    assert_eq!(names.len(), 5);
    assert_eq!(names[3], "table/2026/01/01/0500/000000.log");
}

/// Does what it is told, and fails to say so now and then.
struct Mute {
    engine: MemoryEngine,
    writes: AtomicU64,
}

#[async_trait]
impl EngineDouble for Mute {
    fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    async fn apply(&self, table: &TableRef, transaction: Transaction) -> Result<Vec<DateTime>, store::Error> {
        let done = self.engine.apply(table, transaction).await;
        // Never the first, which creates the log.
        match self.writes.fetch_add(1, Ordering::SeqCst) % 3 {
            1 => Err(store::Error::OutcomeUnknown),
            _ => done,
        }
    }
}

#[tokio::test]
async fn lines_whose_outcome_was_unknown_are_stored_once() {
    let engine = TestEngine(Mute { engine: MemoryEngine::new(), writes: AtomicU64::new(0) });
    let service = BlobService::new(Arc::new(engine), Arc::new(MemoryObjects::new()));
    let logs = RequestLogs::new(service.clone());
    let mut unknown = 0;
    let mut expected = String::new();
    for n in 0..20 {
        let text = format!("{n}\n");
        while logs.append(at_three(&text)).await.is_err() {
            unknown += 1;
        }
        expected.push_str(&text);
    }
    assert!(unknown > 3);
    assert_eq!(all(&service).await, pairs(&[("table/2026/01/02/0300/000000.log", &expected)]));
}
