//! Reads the rows of one partition so that no transaction is seen in part.
//!
//! One read of the cluster sees one state of a partition. Several reads see the same state if the stamp of the
//! partition's last write, which comes with every row, is the same in all of them: every write changes it, and no
//! stamp recurs. If it changed, the rows are discarded and read again, unless some were already returned. Then the
//! page ends before the first row of the new state.

use bytes::Bytes;
use scylla::response::query_result::QueryRowsResult;
use uuid::Uuid;

use super::pace::ReadPace;
use super::span::Stretch;
use super::visits::Visit;
use crate::cluster::Cluster;
use crate::keys::KeyBytes;
use crate::narrow;
use crate::partition::PartitionId;
use crate::trouble::{Trouble, undecodable};

/// Bytes of one partition that are held before they are returned.
const HELD_BYTES: usize = 4 * 1024 * 1024;
/// Single rows asked for in one read.
const POINTS_MAX: usize = 64;
/// How often a partition that changes meanwhile is read from the start.
const RESTARTS: usize = 4;
/// How often a failed read is tried again with half the rows: they may be too large.
const HALVINGS: usize = 3;
/// Pieces above which a stretch is not divided any more.
const PIECES_MAX: usize = 10_000;

#[derive(Debug)]
pub struct PartitionReading<'a> {
    cluster: &'a Cluster,
    id: PartitionId,
    /// Whether this is one of many partitions, and whether all its rows are wanted.
    listed: bool,
    whole: bool,
    pieces: Vec<Piece>,
    /// The piece to read next, and where in a stretch to go on.
    at: usize,
    from: Option<KeyBytes>,
    /// Rows that were read and not returned yet.
    rows: Vec<ScannedRow>,
    bytes: usize,
    /// The stamp of the partition's last write, the same in all reads; `None` if no read has shown it yet.
    state: Option<Option<i64>>,
    /// The last read found no rows, so its state is not known.
    blind: bool,
    first_read: bool,
    given: bool,
}

/// What one read asks for.
#[derive(Debug)]
enum Piece {
    Stretch(Stretch),
    Points(Vec<KeyBytes>),
}

#[derive(Debug)]
pub struct ScannedRow {
    pub key: KeyBytes,
    pub body: Bytes,
}

impl ScannedRow {
    fn bytes(&self) -> usize {
        self.key.as_bytes().len() + self.body.len()
    }
}

/// Rows of one state of the partition.
#[derive(Debug)]
pub struct Portion {
    pub rows: Vec<ScannedRow>,
    pub then: Then,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Then {
    /// That was all of them.
    Done,
    /// This row comes next, and there may be more.
    More(KeyBytes),
    /// From this row on the partition has changed: the page has to end before it.
    End(KeyBytes),
}

impl<'a> PartitionReading<'a> {
    /// With the first read, of so many rows, done.
    pub async fn begin(
        cluster: &'a Cluster,
        table: Uuid,
        visit: Visit,
        rows: usize,
    ) -> Result<Self, Trouble> {
        let mut reading = Self::new(cluster, table, visit);
        if !reading.read(rows).await? {
            reading.restart();
        }
        Ok(reading)
    }

    fn new(cluster: &'a Cluster, table: Uuid, visit: Visit) -> Self {
        Self {
            cluster,
            id: PartitionId { table, key: visit.partition },
            listed: visit.listed,
            whole: matches!(visit.stretches.as_slice(), [stretch] if stretch.is_all()),
            pieces: pieces(visit.stretches),
            at: 0,
            from: None,
            rows: Vec::new(),
            bytes: 0,
            state: None,
            blind: false,
            first_read: true,
            given: false,
        }
    }

    pub fn id(&self) -> &PartitionId {
        &self.id
    }

    /// Whether all of the partition was asked for, by way of the directory, and nothing was there.
    pub fn found_empty(&self) -> bool {
        self.listed && self.whole && !self.given && self.rows.is_empty()
    }

    /// About so many rows more, or all there are.
    pub async fn fill(&mut self, pace: &mut ReadPace, wanted: usize) -> Result<Portion, Trouble> {
        if self.given && wanted <= 1 {
            return self.portion(Then::End);
        }
        if !self.given {
            pace.saw(self.rows.len(), self.bytes);
        }
        let mut restarts = 0;
        loop {
            let enough = self.rows.len() >= wanted || self.bytes >= HELD_BYTES;
            if enough && self.rows.len() > 1 {
                break;
            }
            let same = if self.at < self.pieces.len() {
                let (rows, bytes) = (self.rows.len(), self.bytes);
                let same = self.read(pace.rows(wanted.saturating_sub(rows))).await?;
                pace.saw(self.rows.len() - rows, self.bytes - bytes);
                same
            } else if self.blind {
                self.blind = false;
                Some(self.cluster.partition_state(&self.id).await?.written) == self.state
            } else {
                break;
            };
            if same {
                continue;
            }
            restarts += 1;
            if self.given || restarts > RESTARTS {
                return self.portion(Then::End);
            }
            self.restart();
        }
        if self.at < self.pieces.len() {
            return self.portion(Then::More);
        }
        self.given |= !self.rows.is_empty();
        Ok(Portion { rows: std::mem::take(&mut self.rows), then: Then::Done })
    }

    /// The rows up to the last, which is kept back as the place to go on from, in this page or the next.
    fn portion(&mut self, then: impl FnOnce(KeyBytes) -> Then) -> Result<Portion, Trouble> {
        let last = self.rows.pop().ok_or_else(|| {
            Trouble::refused(format!("partition {:?} changed faster than it could be read", self.id))
        })?;
        let then = then(last.key.clone());
        self.given |= !self.rows.is_empty();
        self.bytes = last.bytes();
        Ok(Portion { rows: std::mem::replace(&mut self.rows, vec![last]), then })
    }

    fn restart(&mut self) {
        (self.at, self.from) = (0, None);
        self.rows.clear();
        (self.bytes, self.state, self.blind) = (0, None, false);
    }

    /// One read; false, with nothing taken from it, if the partition is no longer as the reads before saw it.
    async fn read(&mut self, limit: usize) -> Result<bool, Trouble> {
        let mut limit = limit;
        let mut halvings = 0;
        let found = loop {
            if self.pieces.len() > 1 && self.state.is_none() {
                // The first piece may find nothing, and still has to be of the same state as the others.
                self.state = Some(self.cluster.partition_state(&self.id).await?.written);
            }
            match self.ask(limit).await {
                Err(trouble @ Trouble::Tombstones(_)) => self.divide(trouble)?,
                Err(Trouble::Refused(_) | Trouble::Unknown(_)) if halvings < HALVINGS && limit > 2 => {
                    limit = (limit / 2).max(2);
                    halvings += 1;
                }
                answer => break answer?,
            }
        };
        self.first_read = false;
        let Some((last, _, written)) = found.last() else {
            self.blind = self.state.is_some();
            self.at += 1;
            self.from = None;
            return Ok(true);
        };
        if self.state.is_some_and(|state| state != *written) {
            return Ok(false);
        }
        (self.state, self.blind) = (Some(*written), false);
        match &self.pieces[self.at] {
            Piece::Stretch(_) if found.len() >= limit => self.from = Some(last.successor()),
            Piece::Stretch(_) | Piece::Points(_) => {
                self.at += 1;
                self.from = None;
            }
        }
        for (key, body, _) in found {
            // A row without one was never written whole.
            let Some(body) = body else { continue };
            let row = ScannedRow { key, body };
            self.bytes += row.bytes();
            self.rows.push(row);
        }
        Ok(true)
    }

    /// The stretch to read next in parts, each of which holds fewer tombstones.
    fn divide(&mut self, trouble: Trouble) -> Result<(), Trouble> {
        let Some(Piece::Stretch(stretch)) = self.pieces.get(self.at) else { return Err(trouble) };
        let from = self.from.as_ref().unwrap_or(&stretch.from);
        let above_all = KeyBytes::above_all();
        let to = stretch.to.as_ref().unwrap_or(&above_all);
        let parts = narrow::parts(from.as_bytes(), to.as_bytes());
        if parts.len() < 2 || self.pieces.len() > PIECES_MAX {
            return Err(trouble);
        }
        let parts = parts.into_iter().map(|(from, to)| (KeyBytes::stored(from), KeyBytes::stored(to)));
        // What was read of it already comes first, should all be read again.
        let before = self.from.clone().map(|from| (stretch.from.clone(), from));
        let next = self.at + usize::from(before.is_some());
        let pieces: Vec<Piece> = before
            .into_iter()
            .chain(parts)
            .map(|(from, to)| Piece::Stretch(Stretch { from, to: Some(to) }))
            .collect();
        drop(self.pieces.splice(self.at..=self.at, pieces));
        (self.at, self.from) = (next, None);
        Ok(())
    }

    async fn ask(&self, limit: usize) -> Result<Vec<DecodedRow>, Trouble> {
        let (table, key) = (self.id.table, self.id.key.as_bytes());
        let statements = &self.cluster.statements;
        match &self.pieces[self.at] {
            Piece::Points(points) => {
                let points: Vec<&[u8]> = points.iter().map(KeyBytes::as_bytes).collect();
                let rows = self.cluster.read(&statements.rows_of, (table, key, points)).await?;
                decode(rows, |(row, _, body, _, _, written, _): PointColumns| {
                    (KeyBytes::stored(row), body, written)
                })
            }
            Piece::Stretch(stretch) => {
                // A partition that takes one read is seen in one state either way. The others are read at the
                // level that sees what earlier reads saw.
                let ranges =
                    if self.listed && self.first_read { &statements.range_quorum } else { &statements.range };
                let from = self.from.as_ref().unwrap_or(&stretch.from).as_bytes();
                let limit = i32::try_from(limit).unwrap_or(i32::MAX);
                let rows = match &stretch.to {
                    None => self.cluster.read(&ranges.from, (table, key, from, limit)).await?,
                    Some(to) => {
                        self.cluster.read(&ranges.between, (table, key, from, to.as_bytes(), limit)).await?
                    }
                };
                decode(rows, |(row, body, written): RangeColumns| (KeyBytes::stored(row), body, written))
            }
        }
    }
}

type DecodedRow = (KeyBytes, Option<Bytes>, Option<i64>);
type RangeColumns = (Vec<u8>, Option<Bytes>, Option<i64>);
type PointColumns = (Vec<u8>, Option<i64>, Option<Bytes>, Option<i64>, Option<i8>, Option<i64>, Option<i64>);

fn decode<C>(rows: QueryRowsResult, found: impl Fn(C) -> DecodedRow) -> Result<Vec<DecodedRow>, Trouble>
where
    C: for<'r> scylla::deserialize::row::DeserializeRow<'r, 'r>,
{
    let rows = rows.rows::<C>().map_err(undecodable("rows of a partition"))?;
    rows.map(|row| row.map(&found).map_err(undecodable("rows of a partition"))).collect()
}

/// Single rows that follow each other are asked for together, so that they are seen in one state at once.
fn pieces(stretches: Vec<Stretch>) -> Vec<Piece> {
    let several = stretches.len() > 1;
    let mut pieces: Vec<Piece> = Vec::with_capacity(stretches.len());
    for stretch in stretches {
        match (stretch.point().filter(|_| several), pieces.last_mut()) {
            (Some(point), Some(Piece::Points(points))) if points.len() < POINTS_MAX => {
                points.push(point.clone());
            }
            (Some(point), _) => pieces.push(Piece::Points(vec![point.clone()])),
            (None, _) => pieces.push(Piece::Stretch(stretch)),
        }
    }
    pieces
}
