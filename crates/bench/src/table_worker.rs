//! One connection to tables: sends the operations of a workload, and checks the answers.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

use crate::batch::{self, BatchWriter};
use crate::data::{BUCKETS, DataSet, EntityKeys, PAGE_ROWS};
use crate::random::{Random, mix};
use crate::tally::OperationFailure;
use crate::verify::{self, Pages};
use crate::workload::Workload;
use connection::{Client, Response, UnsignedRequest};

const READ: &str = "Accept: application/json;odata=nometadata\r\n";
const INSERT: &str = "Accept: application/json;odata=nometadata\r\nContent-Type: application/json\r\n\
                      Prefer: return-no-content\r\n";
const REPLACE: &str = "Accept: application/json;odata=nometadata\r\nContent-Type: application/json\r\n";
const MERGE: &str =
    "Accept: application/json;odata=nometadata\r\nContent-Type: application/json\r\nIf-Match: *\r\n";
/// The number of written entities that each connection reads back.
const REMEMBERED_MAX: u64 = 8;
/// One of so many operations of `mixed` is a write.
const MIXED_WRITES: u64 = 10;

/// What all connections to the tables of one endpoint share.
#[derive(Debug)]
pub struct TableContext {
    pub data: DataSet,
    /// The table that is read.
    pub data_table: String,
    /// The table that inserts fill.
    pub written_table: String,
    /// The prefix of all written partition keys, so that runs don't collide.
    pub run: String,
    /// The next number to write. Each is used once.
    pub next: AtomicU64,
    /// Do not check bodies.
    pub trust: bool,
}

#[derive(Debug)]
pub struct TableWorker {
    client: Client,
    shared: Arc<TableContext>,
    random: Random,
    path: String,
    query: String,
    body: Vec<u8>,
    key: EntityKeys,
    batch_url: String,
    insert_path: String,
    answers: u64,
    written: Vec<(Workload, u64)>,
}

impl TableWorker {
    pub fn new(client: Client, shared: Arc<TableContext>, seed: u64) -> Self {
        let batch_url = format!("{}/{}", client.endpoint().url(), shared.written_table);
        let insert_path = format!("/{}", shared.written_table);
        Self {
            client,
            shared,
            random: Random::new(seed),
            path: String::new(),
            query: String::new(),
            body: Vec::new(),
            key: EntityKeys::default(),
            batch_url,
            insert_path,
            answers: 0,
            written: Vec::new(),
        }
    }

    /// Does one operation and checks it. Returns how many entities it wrote, returned or examined.
    pub async fn operate(&mut self, workload: Workload, now: Instant) -> Result<u64, OperationFailure> {
        match workload {
            Workload::Insert | Workload::InsertOnePartition => self.insert(workload, now).await,
            Workload::Batch => self.batch(now).await,
            Workload::Get => self.get(now).await,
            Workload::Page => self.page(false, now).await,
            Workload::PageSelect => self.page(true, now).await,
            Workload::PartitionScan => self.partition_scan(now).await,
            Workload::TableScan => self.table_scan(now).await,
            Workload::Merge => self.merge(now).await,
            Workload::Mixed if self.random.below(MIXED_WRITES) == 0 => self.replace(now).await,
            Workload::Mixed => self.get(now).await,
            _ => Err(OperationFailure::bug("a workload of another service was given to tables")),
        }
    }

    async fn insert(&mut self, workload: Workload, now: Instant) -> Result<u64, OperationFailure> {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        self.written_key(workload, number, 0);
        self.body.clear();
        self.shared.data.write_entity(&mut self.body, &self.key, number);
        let request = UnsignedRequest {
            method: "POST",
            path: &self.insert_path,
            query: "",
            headers: INSERT,
            body: Some(&self.body),
        };
        check_written(&self.client.send(request, now).await?)?;
        self.remember(workload, number);
        Ok(1)
    }

    async fn batch(&mut self, now: Instant) -> Result<u64, OperationFailure> {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let operations = batch::operations(&self.shared.data);
        let url = std::mem::take(&mut self.batch_url);
        let mut body = std::mem::take(&mut self.body);
        let mut writer = BatchWriter::new(&mut body, &url);
        for row in 0..operations {
            self.written_key(Workload::Batch, number, row);
            writer.insert(&self.shared.data, &self.key, number + row);
        }
        writer.finish();
        (self.body, self.batch_url) = (body, url);
        self.send_batch(operations, now).await?;
        self.remember(Workload::Batch, number);
        Ok(operations)
    }

    /// Loads one batch of the data set: entities with these numbers, all of one partition.
    pub async fn load(&mut self, numbers: std::ops::Range<u64>) -> Result<(), OperationFailure> {
        let url = format!("{}/{}", self.client.endpoint().url(), self.shared.data_table);
        let mut writer = BatchWriter::new(&mut self.body, &url);
        let operations = numbers.end - numbers.start;
        for number in numbers {
            self.key.of(&self.shared.data, number);
            writer.insert(&self.shared.data, &self.key, number);
        }
        writer.finish();
        self.send_batch(operations, Instant::now()).await
    }

    async fn send_batch(&mut self, operations: u64, now: Instant) -> Result<(), OperationFailure> {
        let request = UnsignedRequest {
            method: "POST",
            path: "/$batch",
            query: "",
            headers: batch::HEADERS,
            body: Some(&self.body),
        };
        let response = self.client.send(request, now).await?;
        batch::check(&response, operations, self.shared.trust)
    }

    async fn get(&mut self, now: Instant) -> Result<u64, OperationFailure> {
        let number = self.any_entity();
        self.read_and_check(number, now).await
    }

    /// Reads the entity at `path` and `key`, which has this number.
    async fn read_and_check(&mut self, number: u64, now: Instant) -> Result<u64, OperationFailure> {
        let request =
            UnsignedRequest { method: "GET", path: &self.path, query: "", headers: READ, body: None };
        let response = self.client.send(request, now).await?;
        if response.status != 200 {
            return Err(OperationFailure::status(&response));
        }
        if !self.shared.trust {
            verify::entity(response.body, &self.key, &self.shared.data, number)?;
        }
        Ok(1)
    }

    async fn page(&mut self, select: bool, now: Instant) -> Result<u64, OperationFailure> {
        let shared = self.shared.clone();
        let partition = self.random.below(shared.data.partitions);
        let row = self.random.below(shared.data.rows - PAGE_ROWS + 1);
        let number = partition * shared.data.rows + row;
        self.key.of(&shared.data, number);
        self.query_path();
        self.query.clear();
        let EntityKeys { partition, row } = &self.key;
        let select = if select { "&$select=Sequence" } else { "" };
        let _ = write!(
            self.query,
            "$filter=PartitionKey%20eq%20'{partition}'%20and%20RowKey%20ge%20'{row}'{select}"
        );
        let parses = self.answers.is_multiple_of(verify::PARSED_ONE_IN);
        self.answers += 1;
        let response = query(&mut self.client, &self.path, &self.query, now).await?;
        if !shared.trust {
            let sequence = shared.data.sequence(number).to_string();
            let (name, first) = if select.is_empty() { ("RowKey", row) } else { ("Sequence", &sequence) };
            verify::page(response.body, PAGE_ROWS, name, first, parses)?;
        }
        Ok(PAGE_ROWS)
    }

    async fn partition_scan(&mut self, now: Instant) -> Result<u64, OperationFailure> {
        let shared = self.shared.clone();
        let partition = self.random.below(shared.data.partitions);
        let bucket = self.random.below(BUCKETS);
        self.key.of(&shared.data, partition * shared.data.rows);
        let filter =
            format!("$filter=PartitionKey%20eq%20'{}'%20and%20Bucket%20eq%20{bucket}", self.key.partition);
        let found = self.follow(&filter, now).await?;
        found.expect(shared.data.rows_in_bucket(bucket), shared.trust)?;
        Ok(shared.data.rows)
    }

    async fn table_scan(&mut self, now: Instant) -> Result<u64, OperationFailure> {
        let found = self.follow("$filter=Bucket%20eq%20-1", now).await?;
        found.expect(0, self.shared.trust)?;
        Ok(self.shared.data.entities())
    }

    /// Reads all pages of a query.
    async fn follow(&mut self, filter: &str, now: Instant) -> Result<Pages, OperationFailure> {
        let mut pages = Pages::default();
        self.query_path();
        self.query.clear();
        self.query.push_str(filter);
        loop {
            let response = query(&mut self.client, &self.path, &self.query, now).await?;
            pages.add(response.body);
            let Some(partition) = response.next_partition_key else { return Ok(pages) };
            self.query.clear();
            self.query.push_str(filter);
            let encoded = percent_encode(partition, NON_ALPHANUMERIC);
            let _ = write!(self.query, "&NextPartitionKey={encoded}");
            if let Some(row) = response.next_row_key {
                let _ = write!(self.query, "&NextRowKey={}", percent_encode(row, NON_ALPHANUMERIC));
            }
        }
    }

    /// Changes a property that reads do not check.
    async fn merge(&mut self, now: Instant) -> Result<u64, OperationFailure> {
        self.any_entity();
        self.body.clear();
        let ratio = 100 + self.random.below(900);
        self.body.extend_from_slice(format!("{{\"Ratio\":{ratio}.125}}").as_bytes());
        let request = UnsignedRequest {
            method: "PATCH",
            path: &self.path,
            query: "",
            headers: MERGE,
            body: Some(&self.body),
        };
        check_written(&self.client.send(request, now).await?)?;
        Ok(1)
    }

    async fn replace(&mut self, now: Instant) -> Result<u64, OperationFailure> {
        let number = self.any_entity();
        self.body.clear();
        self.shared.data.write_entity(&mut self.body, &self.key, number);
        let request = UnsignedRequest {
            method: "PUT",
            path: &self.path,
            query: "",
            headers: REPLACE,
            body: Some(&self.body),
        };
        check_written(&self.client.send(request, now).await?)?;
        Ok(1)
    }

    /// Checks that the table has the data set: it has the last entity, and none after it.
    pub async fn expect_loaded(&mut self) -> Result<(), OperationFailure> {
        let shared = self.shared.clone();
        let last = shared.data.entities() - 1;
        self.key.of(&shared.data, last);
        self.entity_path(|shared| &shared.data_table);
        self.read_and_check(last, Instant::now()).await?;
        for (partition, row) in [(shared.data.partitions, 0), (shared.data.partitions - 1, shared.data.rows)]
        {
            self.key.at(partition, row);
            self.entity_path(|shared| &shared.data_table);
            let request =
                UnsignedRequest { method: "GET", path: &self.path, query: "", headers: READ, body: None };
            let response = self.client.send(request, Instant::now()).await?;
            if response.status != 404 && !shared.trust {
                return Err(OperationFailure::wrong("there are more entities".to_owned(), response.body));
            }
        }
        Ok(())
    }

    /// Reads back the last written entities, outside of measurements.
    pub async fn read_back(&mut self) -> Result<(), OperationFailure> {
        for (workload, number) in std::mem::take(&mut self.written) {
            if self.shared.trust {
                continue;
            }
            self.written_key(workload, number, 0);
            self.entity_path(|shared| &shared.written_table);
            self.read_and_check(number, Instant::now()).await?;
        }
        Ok(())
    }

    fn remember(&mut self, workload: Workload, number: u64) {
        if (self.written.len() as u64) < REMEMBERED_MAX {
            self.written.push((workload, number));
        } else {
            let place = self.random.below(REMEMBERED_MAX);
            self.written[place as usize] = (workload, number);
        }
    }

    /// Chooses an entity of the data set, and sets `key` and `path`.
    fn any_entity(&mut self) -> u64 {
        let number = self.random.below(self.shared.data.entities());
        self.key.of(&self.shared.data, number);
        self.entity_path(|shared| &shared.data_table);
        number
    }

    fn entity_path(&mut self, table: impl Fn(&TableContext) -> &String) {
        self.path.clear();
        let EntityKeys { partition, row } = &self.key;
        for piece in ["/", table(&self.shared), "(PartitionKey='", partition, "',RowKey='", row, "')"] {
            self.path.push_str(piece);
        }
    }

    fn query_path(&mut self) {
        self.path.clear();
        for piece in ["/", &self.shared.data_table, "()"] {
            self.path.push_str(piece);
        }
    }

    /// Sets the key for the insert of this number.
    fn written_key(&mut self, workload: Workload, number: u64, row: u64) {
        self.key.clear();
        let EntityKeys { partition, row: row_key } = &mut self.key;
        let run = &self.shared.run;
        // Writing into a string can't fail.
        let _ = match workload {
            Workload::InsertOnePartition => write!(partition, "{run}one"),
            _ => write!(partition, "{run}{:016x}", mix(number)),
        };
        let _ = match workload {
            Workload::Batch => write!(row_key, "{row:04}"),
            _ => write!(row_key, "{number:012}"),
        };
    }
}

async fn query<'a>(
    client: &'a mut Client,
    path: &str,
    query: &str,
    now: Instant,
) -> Result<Response<'a>, OperationFailure> {
    let response =
        client.send(UnsignedRequest { method: "GET", path, query, headers: READ, body: None }, now).await?;
    if response.status == 200 { Ok(response) } else { Err(OperationFailure::status(&response)) }
}

fn check_written(response: &Response<'_>) -> Result<(), OperationFailure> {
    match (response.status, response.etag) {
        (201 | 204, Some(_)) => Ok(()),
        (201 | 204, None) => {
            Err(OperationFailure::wrong("a write's answer has no ETag".to_owned(), response.body))
        }
        _ => Err(OperationFailure::status(response)),
    }
}
