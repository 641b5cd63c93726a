//! The map of a table: which segment of the directory holds which part of its partition keys.
//!
//! All of a table's map is one Cassandra partition with a version. It is changed only by conditional batches
//! on that version, so two readings with one version are the same map, and it was that map in between.

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
    /// The segment that counts: a partition with a row is listed in it.
    pub id: Uuid,
    pub state: State,
    /// What this segment was made from, as long as it may still lie in the directory.
    pub retired: Vec<Uuid>,
}

/// Whether a segment's keys are on their way to other segments. What is listed or struck off meanwhile is so
/// in both the old and the new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Active,
    /// Keys below the cut go to `low`, the others to `high`.
    Splitting {
        low: Uuid,
        high: Uuid,
        cut: KeyBytes,
    },
    /// All keys go to `into`. Two neighbours that move into one are being merged.
    Moving {
        into: Uuid,
    },
}

const ACTIVE: i8 = 1;
const SPLITTING: i8 = 2;
const MOVING: i8 = 3;

impl Segment {
    pub fn active(start: KeyBytes, id: Uuid, retired: Vec<Uuid>) -> Self {
        Self { start, id, state: State::Active, retired }
    }

    /// Whether some janitor has begun what any may go on with.
    pub fn is_under_way(&self) -> bool {
        self.state != State::Active || !self.retired.is_empty()
    }

    /// The segment that the key is on its way to, if it is.
    pub fn destination(&self, key: &KeyBytes) -> Option<Uuid> {
        match &self.state {
            State::Active => None,
            State::Splitting { low, high, cut } => Some(if key < cut { *low } else { *high }),
            State::Moving { into } => Some(*into),
        }
    }

    /// Every segment in the directory that this part of the map names.
    pub fn names(&self) -> impl Iterator<Item = Uuid> {
        let under_way = match &self.state {
            State::Active => [None, None],
            State::Splitting { low, high, .. } => [Some(*low), Some(*high)],
            State::Moving { into } => [Some(*into), None],
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

    /// Where the key is listed: in the segment that counts, and in the one it is on its way to.
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
            (Some(ACTIVE), ..) => State::Active,
            (Some(SPLITTING), Some(low), Some(high), Some(cut)) => {
                State::Splitting { low, high, cut: KeyBytes::stored(cut) }
            }
            (Some(MOVING), Some(into), ..) => State::Moving { into },
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
        _ => {
            Err(Trouble::damaged(format!("a directory map of version {version} does not begin at its start")))
        }
    }
}

impl Cluster {
    /// `None` for a table that has none: it never was made, or is gone.
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
            // Parts are of one map if it is the same after the last as in each.
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

    /// Moves the map from one version to the next, with these segments put in place and those at `gone` taken
    /// out; false if it is no longer at the first.
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
                State::Active => (ACTIVE, None, None, None),
                State::Splitting { low, high, cut } => (SPLITTING, Some(*low), Some(*high), Some(cut)),
                State::Moving { into } => (MOVING, Some(*into), None, None),
            };
            let retired = segment.retired.iter().copied().map(CqlValue::Uuid).collect();
            // What a state does not have is written all the same: a null would be a tombstone in the map.
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
        let splitting = State::Splitting { low: id(21), high: id(22), cut: KeyBytes::of("k") };
        let segments = vec![
            Segment::active(KeyBytes::lowest(), id(1), vec![]),
            Segment { start: KeyBytes::of("f"), id: id(2), state: splitting, retired: vec![] },
            Segment {
                start: KeyBytes::of("p"),
                id: id(3),
                state: State::Moving { into: id(5) },
                retired: vec![],
            },
        ];
        Map { version: 7, segments }
    }

    #[test]
    fn a_key_is_listed_where_it_counts_and_where_it_is_going() {
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
    fn a_map_that_does_not_begin_at_the_start_is_damaged() {
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
