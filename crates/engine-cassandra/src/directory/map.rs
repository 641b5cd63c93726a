//! The map of a table: which segment of the directory holds which part of its partition keys.
//!
//! The map of a table is one Cassandra partition with a version. It is changed only by batches that are conditional
//! on the version. So two readings with the same version show the same map, and it did not change in between.

use scylla::value::CqlValue;
use uuid::Uuid;

use super::ATTEMPTS;
use crate::cluster::{Cluster, Conditional};
use crate::keys::KeyBytes;
use crate::narrow::Narrow;
use crate::trouble::{Trouble, undecodable};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    pub version: i64,
    /// In order. The first starts at the lowest key, and each ends where the next begins.
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub start: KeyBytes,
    /// The current segment: every partition with a row is listed in it.
    pub id: Uuid,
    pub state: SegmentState,
    /// The segments that this one was made from, until they are deleted.
    pub retired: Vec<Uuid>,
}

/// Whether the keys of a segment are being copied to other segments. Meanwhile entries are written to both the old
/// and the new segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentState {
    Active,
    /// Keys below the cut go to `low`, the others to `high`.
    Splitting {
        low: Uuid,
        high: Uuid,
        cut: KeyBytes,
    },
    /// All keys go to `into`. Two adjacent segments that move to the same one are being merged.
    Moving {
        into: Uuid,
    },
}

const ACTIVE: i8 = 1;
const SPLITTING: i8 = 2;
const MOVING: i8 = 3;

impl Segment {
    pub fn active(start: KeyBytes, id: Uuid, retired: Vec<Uuid>) -> Self {
        Self { start, id, state: SegmentState::Active, retired }
    }

    /// Whether a janitor has begun a change that any janitor may continue.
    pub fn is_under_way(&self) -> bool {
        self.state != SegmentState::Active || !self.retired.is_empty()
    }

    /// The segment that the key is being copied to, if it is.
    pub fn destination(&self, key: &KeyBytes) -> Option<Uuid> {
        match &self.state {
            SegmentState::Active => None,
            SegmentState::Splitting { low, high, cut } => Some(if key < cut { *low } else { *high }),
            SegmentState::Moving { into } => Some(*into),
        }
    }

    /// All segments that this part of the map names.
    pub fn names(&self) -> impl Iterator<Item = Uuid> {
        let under_way = match &self.state {
            SegmentState::Active => [None, None],
            SegmentState::Splitting { low, high, .. } => [Some(*low), Some(*high)],
            SegmentState::Moving { into } => [Some(*into), None],
        };
        [Some(self.id)].into_iter().chain(under_way).flatten().chain(self.retired.clone())
    }
}

impl Map {
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The segment whose part of the keys this one lies in, and where that part ends.
    pub fn covering(&self, key: &KeyBytes) -> (&Segment, Option<&KeyBytes>) {
        // The first segment starts at or below every key (`assemble`), so at least one is not above this one.
        let at = self.segments.partition_point(|segment| segment.start <= *key).saturating_sub(1);
        (&self.segments[at], self.segments.get(at + 1).map(|next| &next.start))
    }

    /// The segments in which the key is listed: the current one, and the one that it is being copied to.
    pub fn targets(&self, key: &KeyBytes) -> impl Iterator<Item = Uuid> {
        let (segment, _) = self.covering(key);
        [Some(segment.id), segment.destination(key)].into_iter().flatten()
    }
}

type Columns = (
    Option<i64>,
    Option<Vec<u8>>,
    Option<Uuid>,
    Option<i8>,
    Option<Uuid>,
    Option<Uuid>,
    Option<Vec<u8>>,
    Option<Vec<Uuid>>,
);

fn assemble(rows: Vec<Columns>) -> Result<Option<Map>, Trouble> {
    let Some(version) = rows.first().and_then(|row| row.0) else { return Ok(None) };
    let mut segments = Vec::with_capacity(rows.len());
    for (_, start, id, state, low, high, cut, retired) in rows {
        let (Some(start), Some(id)) = (start, id) else { continue };
        let state = match (state, low, high, cut) {
            (Some(ACTIVE), ..) => SegmentState::Active,
            (Some(SPLITTING), Some(low), Some(high), Some(cut)) => {
                SegmentState::Splitting { low, high, cut: KeyBytes::stored(cut) }
            }
            (Some(MOVING), Some(into), ..) => SegmentState::Moving { into },
            unknown => {
                let message = format!("segment {id} is in a state this program does not know: {unknown:?}");
                return Err(Trouble::damaged(message));
            }
        };
        segments.push(Segment {
            start: KeyBytes::stored(start),
            id,
            state,
            retired: retired.unwrap_or_default(),
        });
    }
    match segments.first() {
        Some(first) if first.start <= KeyBytes::lowest() => Ok(Some(Map { version, segments })),
        _ => Err(Trouble::damaged(format!(
            "a directory map of version {version} does not begin at the lowest key"
        ))),
    }
}

impl Cluster {
    /// `None` if there is no map: the table was never created or is dropped.
    pub async fn read_map(&self, table: Uuid) -> Result<Option<Map>, Trouble> {
        for _ in 0..ATTEMPTS {
            let mut narrow = Narrow::new(KeyBytes::lowest().as_bytes(), KeyBytes::above_all().as_bytes());
            let mut segments: Vec<Columns> = Vec::new();
            while let Some((from, to)) = narrow.next() {
                match self.read(&self.statements.map, (table, from, to)).await {
                    Ok(rows) => {
                        let rows = rows.rows::<Columns>().map_err(undecodable("a table's directory map"))?;
                        for row in rows {
                            segments.push(row.map_err(undecodable("a table's directory map"))?);
                        }
                        narrow.passed();
                    }
                    Err(trouble) => narrow.failed(trouble)?,
                }
            }
            // The parts belong to one map if the version is the same in each and after the last.
            let version = segments.first().and_then(|row| row.0);
            let one = segments.iter().all(|row| row.0 == version);
            if !narrow.was_divided() || (one && self.read_map_version(table).await? == version) {
                return assemble(segments);
            }
        }
        Err(super::restless(table))
    }

    pub async fn read_map_version(&self, table: Uuid) -> Result<Option<i64>, Trouble> {
        let rows = self.read(&self.statements.map_version, (table,)).await?;
        let row: Option<(Option<i64>,)> =
            rows.maybe_first_row().map_err(undecodable("a table's directory map"))?;
        Ok(row.and_then(|(version,)| version))
    }

    /// Changes the map: stores these segments and removes those at `gone`. False if the version has changed.
    pub async fn change_map(
        &self,
        table: Uuid,
        version: Option<i64>,
        segments: &[Segment],
        gone: &[&KeyBytes],
    ) -> Result<bool, Trouble> {
        let table = || Some(CqlValue::Uuid(table));
        let mut steps = vec![Conditional {
            statement: &self.statements.set_map_version,
            values: vec![
                Some(CqlValue::BigInt(version.unwrap_or(0) + 1)),
                table(),
                version.map(CqlValue::BigInt),
            ],
        }];
        steps.extend(segments.iter().map(|segment| {
            let (state, low, high, cut) = match &segment.state {
                SegmentState::Active => (ACTIVE, None, None, None),
                SegmentState::Splitting { low, high, cut } => (SPLITTING, Some(*low), Some(*high), Some(cut)),
                SegmentState::Moving { into } => (MOVING, Some(*into), None, None),
            };
            let retired = segment.retired.iter().copied().map(CqlValue::Uuid).collect();
            // Unused columns get a value too: a null would leave a tombstone in the map.
            let values = vec![
                Some(CqlValue::Uuid(segment.id)),
                Some(CqlValue::TinyInt(state)),
                Some(CqlValue::Uuid(low.unwrap_or_default())),
                Some(CqlValue::Uuid(high.unwrap_or_default())),
                Some(CqlValue::Blob(cut.map_or(Vec::new(), |cut| cut.as_bytes().to_vec()))),
                Some(CqlValue::Set(retired)),
                table(),
                Some(CqlValue::Blob(segment.start.as_bytes().to_vec())),
            ];
            Conditional { statement: &self.statements.set_segment, values }
        }));
        steps.extend(gone.iter().map(|start| Conditional {
            statement: &self.statements.remove_segment,
            values: vec![table(), Some(CqlValue::Blob(start.as_bytes().to_vec()))],
        }));
        Ok(self.compare_and_set(steps).await?.is_applied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    fn map() -> Map {
        let splitting = SegmentState::Splitting { low: id(21), high: id(22), cut: KeyBytes::of("k") };
        let segments = vec![
            Segment::active(KeyBytes::lowest(), id(1), vec![]),
            Segment { start: KeyBytes::of("f"), id: id(2), state: splitting, retired: vec![] },
            Segment {
                start: KeyBytes::of("p"),
                id: id(3),
                state: SegmentState::Moving { into: id(5) },
                retired: vec![],
            },
        ];
        Map { version: 7, segments }
    }

    #[test]
    fn a_key_is_listed_in_the_current_segment_and_in_the_one_it_is_copied_to() {
        for (key, targets) in [
            ("", vec![1]),
            ("ezzz", vec![1]),
            ("f", vec![2, 21]),
            ("jzzz", vec![2, 21]),
            ("k", vec![2, 22]),
            ("p", vec![3, 5]),
            ("\u{ffff}", vec![3, 5]),
        ] {
            let found: Vec<Uuid> = map().targets(&KeyBytes::of(key)).collect();
            assert_eq!(found, targets.into_iter().map(id).collect::<Vec<_>>(), "{key:?}");
        }
    }

    #[test]
    fn a_part_ends_where_the_next_begins() {
        let map = map();
        for (key, end) in [("a", Some("f")), ("f", Some("p")), ("q", None)] {
            assert_eq!(map.covering(&KeyBytes::of(key)).1, end.map(KeyBytes::of).as_ref(), "{key:?}");
        }
    }

    #[test]
    fn a_map_that_does_not_begin_at_the_lowest_key_is_damaged() {
        let row = |start: &str, state| {
            let start = Some(KeyBytes::of(start).as_bytes().to_vec());
            (Some(1), start, Some(id(1)), Some(state), None, None, None, None)
        };
        assert!(assemble(vec![]).unwrap().is_none());
        assert!(assemble(vec![row("", ACTIVE)]).unwrap().is_some());
        assert!(assemble(vec![row("b", ACTIVE)]).is_err());
        assert!(assemble(vec![row("", SPLITTING)]).is_err(), "without its children");
        assert!(assemble(vec![row("", 9)]).is_err());
    }
}
