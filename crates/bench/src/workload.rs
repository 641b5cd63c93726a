//! The workloads, and the data that they need.

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
}

impl Workload {
    pub const ALL: [Self; 10] = [
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
        }
    }

    /// Whether it uses the loaded data set; otherwise it fills its own table.
    pub const fn needs_data(self) -> bool {
        !matches!(self, Self::Insert | Self::InsertOnePartition | Self::Batch)
    }

    /// Parses names separated by commas, or `all`. Keeps their order, each once.
    pub fn parse_list(text: &str) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let named: Vec<Self> =
                Self::ALL.into_iter().filter(|w| name == "all" || name == w.name()).collect();
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
            "get,all",
            "get insert insert-one-partition batch page page-select partition-scan table-scan merge mixed",
        );
        check(
            "gets",
            "\"gets\" is not a workload; the workloads are all, insert, insert-one-partition, batch, get, page, \
             page-select, partition-scan, table-scan, merge, mixed",
        );
        check(" , ", "no workload is named; all runs every one");
    }
}
