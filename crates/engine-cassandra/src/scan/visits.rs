//! Which partitions a scan visits, in order, and which rows of each.

use std::collections::VecDeque;

use uuid::Uuid;

use super::span::{Span, Stretch};
use crate::directory::Directory;
use crate::keys::KeyBytes;
use crate::trouble::Trouble;

/// Partitions read from the directory at a time: first this many, then twice as many each time, up to `PAGE_MAX`.
const PAGE_AT_FIRST: usize = 32;
const PAGE_MAX: usize = 512;

/// One partition, and the stretches of it to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    pub partition: KeyBytes,
    pub stretches: Vec<Stretch>,
    /// Whether the directory lists it. Otherwise the scan's ranges name it.
    pub listed: bool,
}

/// How far the directory was read for the first span.
#[derive(Debug)]
enum ListingProgress {
    NotYet,
    UpTo(KeyBytes),
    ToTheEnd,
}

#[derive(Debug)]
pub struct Visits<'a> {
    directory: &'a Directory,
    table: Uuid,
    spans: VecDeque<Span>,
    /// Partitions of the first span that the directory lists.
    found: VecDeque<KeyBytes>,
    asked: ListingProgress,
    page: usize,
    /// The next visit to return. It is joined with the one after it if both are of the same partition.
    held: Option<Visit>,
}

impl<'a> Visits<'a> {
    pub fn new(directory: &'a Directory, table: Uuid, spans: VecDeque<Span>) -> Self {
        Self {
            directory,
            table,
            spans,
            found: VecDeque::new(),
            asked: ListingProgress::NotYet,
            page: PAGE_AT_FIRST,
            held: None,
        }
    }

    /// `None` after the last. May be called again after trouble, or when an earlier call was cancelled.
    pub async fn next(&mut self) -> Result<Option<Visit>, Trouble> {
        loop {
            let Some(visit) = self.produce().await? else { return Ok(self.held.take()) };
            match &mut self.held {
                Some(held) if held.partition == visit.partition => {
                    held.stretches.extend(visit.stretches);
                    held.listed &= visit.listed;
                }
                held => {
                    let before = held.replace(visit);
                    if before.is_some() {
                        return Ok(before);
                    }
                }
            }
        }
    }

    async fn produce(&mut self) -> Result<Option<Visit>, Trouble> {
        loop {
            let Some(span) = self.spans.front() else { return Ok(None) };
            if let Some(partition) = span.partition() {
                let stretches = span.rows_in(partition).into_iter().collect();
                let visit = Visit { partition: partition.clone(), stretches, listed: false };
                self.spans.pop_front();
                return Ok(Some(visit));
            }
            if let Some(partition) = self.found.pop_front() {
                if let Some(stretch) = span.rows_in(&partition) {
                    return Ok(Some(Visit { partition, stretches: vec![stretch], listed: true }));
                }
                self.next_span();
                continue;
            }
            let from = match &self.asked {
                ListingProgress::NotYet => span.first_partition(),
                // Behind the span, a whole table may be listed that the scan does not need.
                ListingProgress::UpTo(from) if span.rows_in(from).is_some() => from,
                ListingProgress::UpTo(_) | ListingProgress::ToTheEnd => {
                    self.next_span();
                    continue;
                }
            };
            let listing = self.directory.page(self.table, from, self.page).await?;
            self.page = (2 * self.page).min(PAGE_MAX);
            self.found.extend(listing.partitions.into_iter().map(|listed| listed.key));
            self.asked = listing.next.map_or(ListingProgress::ToTheEnd, ListingProgress::UpTo);
        }
    }

    fn next_span(&mut self) {
        self.spans.pop_front();
        self.found.clear();
        self.asked = ListingProgress::NotYet;
    }
}
