//! `GET /api/tables` and `GET /api/queues`: what an account has, and about how much of it.
//!
//! The services list it, so that a session sees what its credential may list. Only then is it estimated.

use common::ServiceKind;
use front::Arrival;
use model::{KeyRange, TableName};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use protocol::QueryString;
use serde::{Deserialize, Serialize};
use store::TableRef;

use crate::door::Admin;
use crate::refusal::Refusal;
use crate::reply::{self, Reply};
use crate::service_answer;
use crate::sessions::Member;

/// Rows that are read to count those of one table, and those of a page of tables. Beyond, tables are estimated by their
/// size.
const COUNTED_ROWS_OF_TABLE: u64 = 5_000;
const COUNTED_ROWS: u64 = 50_000;
const QUEUES_OF_PAGE: u32 = 100;
const NEXT: &str = "next";
const NEXT_TABLE: &str = "x-ms-continuation-nexttablename";
const MESSAGES: &str = "x-ms-approximate-messages-count";

#[derive(Debug, Serialize)]
struct TablesShown {
    tables: Vec<TableShown>,
    next: Option<String>,
}

#[derive(Debug, Serialize)]
struct TableShown {
    name: String,
    /// `None` if the engine can't tell.
    estimated_rows: Option<u64>,
    estimated_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
struct QueuesShown {
    queues: Vec<QueueShown>,
    next: Option<String>,
}

#[derive(Debug, Serialize)]
struct QueueShown {
    name: String,
    /// `None` if the credential may not see it.
    approximate_messages: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct TablesListed {
    value: Vec<TableListed>,
}

#[derive(Debug, Deserialize)]
struct TableListed {
    #[serde(rename = "TableName")]
    name: String,
}

pub(crate) async fn tables(admin: &Admin, member: &Member, arrival: &Arrival<'_>) -> Result<Reply, Refusal> {
    let query = match next_of(arrival) {
        Some(next) => format!("NextTableName={}", encoded(&next)),
        None => String::new(),
    };
    let answer = service_answer::get(admin, member, arrival, (ServiceKind::Table, "/Tables", &query)).await?;
    let listed: TablesListed = serde_json::from_slice(&answer.body).map_err(|_| Refusal::ServiceBroken)?;
    let next = answer.headers.get(NEXT_TABLE).and_then(|next| next.to_str().ok()).map(str::to_owned);
    let _turn = admin.counting.acquire().await;
    let mut tables = Vec::with_capacity(listed.value.len());
    let mut left = RowsLeft(COUNTED_ROWS);
    for TableListed { name } in listed.value {
        let estimate = match TableName::parse(&name) {
            Ok(parsed) => {
                let table = TableRef::table(member.account.clone(), parsed);
                let rows_max = left.of_table();
                // A table that was dropped meanwhile, or that can't be read now, is shown without numbers.
                let engine = &admin.services.front().engine;
                engine.estimate_table(&table, &KeyRange::all(), rows_max).await.ok().flatten()
            }
            Err(_) => None,
        };
        left.take(estimate.map_or(0, |estimate| estimate.read));
        let (rows, bytes) = (estimate.map(|of| of.rows), estimate.map(|of| of.bytes));
        tables.push(TableShown { name, estimated_rows: rows, estimated_bytes: bytes });
    }
    Ok(reply::ok(&TablesShown { tables, next }))
}

pub(crate) async fn queues(admin: &Admin, member: &Member, arrival: &Arrival<'_>) -> Result<Reply, Refusal> {
    let marker = next_of(arrival).map(|next| format!("&marker={}", encoded(&next))).unwrap_or_default();
    let query = format!("comp=list&maxresults={QUEUES_OF_PAGE}{marker}");
    let answer = service_answer::get(admin, member, arrival, (ServiceKind::Queue, "/", &query)).await?;
    let page = queue_wire::queue_list::read(&answer.body).ok_or(Refusal::ServiceBroken)?;
    let _turn = admin.counting.acquire().await;
    let mut queues = Vec::with_capacity(page.queues.len());
    for queue in page.queues {
        let path = format!("/{}", queue.name);
        let counted =
            service_answer::get(admin, member, arrival, (ServiceKind::Queue, &path, "comp=metadata")).await;
        let count = counted.ok().and_then(|answer| answer.headers.get(MESSAGES)?.to_str().ok()?.parse().ok());
        queues.push(QueueShown { name: queue.name, approximate_messages: count });
    }
    Ok(reply::ok(&QueuesShown { queues, next: Some(page.next_marker).filter(|next| !next.is_empty()) }))
}

/// Rows that may still be read to count those of a page of tables.
struct RowsLeft(u64);

impl RowsLeft {
    /// For the next table.
    fn of_table(&self) -> u64 {
        self.0.min(COUNTED_ROWS_OF_TABLE)
    }

    fn take(&mut self, read: u64) {
        self.0 = self.0.saturating_sub(read);
    }
}

/// Where the page begins.
fn next_of(arrival: &Arrival<'_>) -> Option<String> {
    let query = QueryString::parse(arrival.head.uri.query().unwrap_or_default())?;
    query.get(NEXT).filter(|next| !next.is_empty()).map(str::to_owned)
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_tables_reads_no_more_than_its_rows_however_large_they_are() {
        let (mut left, mut read) = (RowsLeft(COUNTED_ROWS), 0);
        for _ in 0..1_000 {
            assert!(left.of_table() <= COUNTED_ROWS_OF_TABLE);
            // A table that has more than may be read.
            read += left.of_table();
            left.take(left.of_table());
        }
        assert_eq!(read, COUNTED_ROWS);
    }
}
