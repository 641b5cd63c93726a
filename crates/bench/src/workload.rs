//! The workloads, and the data that they need.

use connection::ServiceKind;

use crate::error::{BenchError, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    Insert,
    InsertOnePartition,
    Batch,
    Get,
    Page,
    PageSelect,
    PartitionScan,
    TableScan,
    Merge,
    Mixed,
    QueuePut,
    QueuePeek,
    QueueGetDelete,
    QueueUpdate,
    QueueMixed,
    BlobGet,
    BlobRange,
    BlobList,
    BlobFolders,
    BlobMixed,
    BlobPut,
    BlobBlocks,
    BlobAppend,
}

/// Names of several workloads.
pub const LISTS: [&str; 4] = ["all", "tables", "queues", "blobs"];

impl Workload {
    pub const ALL: [Self; 23] = [
        Self::Insert,
        Self::InsertOnePartition,
        Self::Batch,
        Self::Get,
        Self::Page,
        Self::PageSelect,
        Self::PartitionScan,
        Self::TableScan,
        Self::Merge,
        Self::Mixed,
        // Reads first, because puts add messages.
        Self::QueuePeek,
        Self::QueueUpdate,
        Self::QueueGetDelete,
        Self::QueueMixed,
        Self::QueuePut,
        Self::BlobGet,
        Self::BlobRange,
        Self::BlobList,
        Self::BlobFolders,
        Self::BlobMixed,
        Self::BlobPut,
        Self::BlobBlocks,
        Self::BlobAppend,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::InsertOnePartition => "insert-one-partition",
            Self::Batch => "batch",
            Self::Get => "get",
            Self::Page => "page",
            Self::PageSelect => "page-select",
            Self::PartitionScan => "partition-scan",
            Self::TableScan => "table-scan",
            Self::Merge => "merge",
            Self::Mixed => "mixed",
            Self::QueuePut => "queue-put",
            Self::QueuePeek => "queue-peek",
            Self::QueueGetDelete => "queue-get-delete",
            Self::QueueUpdate => "queue-update",
            Self::QueueMixed => "queue-mixed",
            Self::BlobGet => "blob-get",
            Self::BlobRange => "blob-range",
            Self::BlobList => "blob-list",
            Self::BlobFolders => "blob-folders",
            Self::BlobMixed => "blob-mixed",
            Self::BlobPut => "blob-put",
            Self::BlobBlocks => "blob-blocks",
            Self::BlobAppend => "blob-append",
        }
    }

    pub const fn service(self) -> ServiceKind {
        match self {
            Self::QueuePut
            | Self::QueuePeek
            | Self::QueueGetDelete
            | Self::QueueUpdate
            | Self::QueueMixed => ServiceKind::Queue,
            Self::BlobGet
            | Self::BlobRange
            | Self::BlobList
            | Self::BlobFolders
            | Self::BlobMixed
            | Self::BlobPut
            | Self::BlobBlocks
            | Self::BlobAppend => ServiceKind::Blob,
            _ => ServiceKind::Table,
        }
    }

    /// Whether it is one of what this name stands for.
    fn is_named(self, name: &str) -> bool {
        match name {
            "all" => true,
            "tables" => self.service() == ServiceKind::Table,
            "queues" => self.service() == ServiceKind::Queue,
            "blobs" => self.service() == ServiceKind::Blob,
            name => name == self.name(),
        }
    }

    /// Whether a workload of tables or blobs uses the loaded data set.
    pub const fn needs_data(self) -> bool {
        !matches!(
            self,
            Self::Insert
                | Self::InsertOnePartition
                | Self::Batch
                | Self::BlobPut
                | Self::BlobBlocks
                | Self::BlobAppend
        )
    }

    /// Whether it fills a table or a container of its own.
    pub const fn writes_own(self) -> bool {
        !self.needs_data() || matches!(self, Self::BlobMixed)
    }

    /// Parses names of workloads or lists, separated by commas. Keeps their order, each once.
    pub fn parse_list(text: &str) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let named: Vec<Self> = Self::ALL.into_iter().filter(|workload| workload.is_named(name)).collect();
            if named.is_empty() {
                return Err(BenchError::UnknownWorkload { name: name.to_owned() });
            }
            found.extend(named.into_iter().filter(|workload| !found.contains(workload)).collect::<Vec<_>>());
        }
        if found.is_empty() { Err(BenchError::NoWorkload) } else { Ok(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_their_order_and_errors_name_the_wrong_name() {
        let check = |text: &str, expected: &str| {
            let shown = Workload::parse_list(text).map_or_else(
                |error| error.to_string(),
                |list| list.into_iter().map(Workload::name).collect::<Vec<_>>().join(" "),
            );
            assert_eq!(shown, expected, "{text}");
        };
        check("get", "get");
        check("mixed, insert,mixed", "mixed insert");
        check(
            "get,tables",
            "get insert insert-one-partition batch page page-select partition-scan table-scan merge mixed",
        );
        check("queue-put,queues", "queue-put queue-peek queue-update queue-get-delete queue-mixed");
        check(
            "blob-put,blobs",
            "blob-put blob-get blob-range blob-list blob-folders blob-mixed blob-blocks blob-append",
        );
        check(
            "gets",
            "\"gets\" is not a workload; there are all, tables, queues, blobs, insert, insert-one-partition, batch, get, \
             page, page-select, partition-scan, table-scan, merge, mixed, queue-peek, queue-update, \
             queue-get-delete, queue-mixed, queue-put, blob-get, blob-range, blob-list, blob-folders, blob-mixed, \
             blob-put, blob-blocks, blob-append",
        );
        check(" , ", "no workload is named; all runs every one");
        assert_eq!(
            Workload::parse_list("all").map_err(|error| error.to_string()),
            Ok(Workload::ALL.to_vec())
        );
    }
}
