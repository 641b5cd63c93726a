//! How many rows and partitions to read at a time, from the sizes seen so far.

/// The bytes that one read should return, and that all reads in flight may.
const READ_BYTES: usize = 1024 * 1024;
const AHEAD_BYTES: usize = 8 * 1024 * 1024;
/// The rows of the first read, before their size is known, and the most rows of any read.
const ROWS_AT_FIRST: usize = 16;
const ROWS_MAX: usize = 1000;
/// With fewer, a page could be ended before the one row that it read (`reading`).
const ROWS_MIN: usize = 2;
const PARALLEL_MAX: usize = 16;

#[derive(Debug)]
pub struct ReadPace {
    /// The average size of rows, biased to the larger ones; `None` before the first.
    row_bytes: Option<usize>,
    /// The average number of rows in a partition, likewise.
    partition_rows: usize,
    parallel: usize,
}

impl Default for ReadPace {
    fn default() -> Self {
        Self { row_bytes: None, partition_rows: ROWS_AT_FIRST, parallel: 1 }
    }
}

impl ReadPace {
    /// The number of rows for one read if this many are wanted.
    pub fn rows(&self, wanted: usize) -> usize {
        let fitting = self.row_bytes.map_or(ROWS_AT_FIRST, |bytes| READ_BYTES / bytes);
        fitting.min(wanted).clamp(ROWS_MIN, ROWS_MAX)
    }

    /// The number of partitions to read concurrently if this many rows are wanted.
    pub fn parallel(&self, wanted: usize) -> usize {
        let needed = wanted / self.partition_rows.max(1);
        let each =
            self.rows(wanted).min(self.partition_rows.max(1)) * self.row_bytes.unwrap_or(READ_BYTES / 4);
        let affordable = AHEAD_BYTES / each.max(1);
        self.parallel.min(needed).min(affordable).max(1)
    }

    /// Updates the averages after a read. They grow at once and shrink slowly.
    pub fn saw(&mut self, rows: usize, bytes: usize) {
        let slowly = |known: usize, seen: usize| seen.max((3 * known + seen) / 4);
        if let Some(average) = bytes.checked_div(rows) {
            let average = average.max(1);
            self.row_bytes = Some(self.row_bytes.map_or(average, |known| slowly(known, average)));
        }
        self.partition_rows = slowly(self.partition_rows, rows);
        self.parallel = (2 * self.parallel).min(PARALLEL_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_one_read_is_limited_whatever_the_rows() {
        for row in [1, 100, 1000, 65_536, 1_048_576] {
            let mut pace = ReadPace::default();
            assert!(pace.rows(1001) <= ROWS_AT_FIRST, "nothing is known yet");
            for _ in 0..20 {
                let rows = pace.rows(1001);
                pace.saw(rows, rows * row);
            }
            assert!(pace.rows(1001) * row <= (2 * row).max(READ_BYTES), "rows of {row}");
            assert!(
                pace.parallel(1001) * pace.rows(1001) * row <= AHEAD_BYTES.max(READ_BYTES),
                "rows of {row}"
            );
        }
    }

    #[test]
    fn many_small_partitions_are_read_concurrently_and_few_large_ones_are_not() {
        let mut pace = ReadPace::default();
        assert_eq!(pace.parallel(1000), 1, "nothing is known yet");
        (0..30).for_each(|_| pace.saw(1, 200));
        assert_eq!(pace.parallel(1000), PARALLEL_MAX);
        assert_eq!(pace.parallel(3), 3, "no more than is wanted");
        pace.saw(1000, 200_000);
        assert_eq!(pace.parallel(1000), 1);
    }
}
