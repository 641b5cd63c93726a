//! Reads the commits of a log, also behind places that can't be read.
//!
//! RocksDB stops at the first damaged record. The records behind it are intact and have their own sequence numbers,
//! so they are read here, and the caller is told where something is missing.

use crate::block::{take_text, take_varint};
use crate::entry::Tombstone;
use crate::log_tail::{self, BLOCK, HEADER};

const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;
/// Unknown kinds with this bit may be ignored.
const PASSED_OVER: u8 = 0x80;

/// A part of a log.
#[derive(Debug, PartialEq, Eq)]
pub enum LogPart<'a> {
    /// A batch as RocksDB wrote it.
    Batch(&'a [u8]),
    /// Nothing can be read from here to the next block of the log. It is torn if the file ends there: zeros, or a
    /// record whose rest was never written.
    Unreadable { at: u64, is_torn: bool },
}

/// Passes all parts of a log to `take`, in order. What a crash leaves at the end, zeros or half a record, is
/// unreadable too.
pub fn read(log: &[u8], mut take: impl FnMut(LogPart<'_>)) {
    let mut pending: Option<Vec<u8>> = None;
    for (index, block) in log.chunks(BLOCK).enumerate() {
        let mut at = 0;
        while at + HEADER <= block.len() {
            let place = (index * BLOCK + at) as u64;
            let Some((kind, payload)) = log_tail::record(&block[at..]) else {
                pending = None;
                let is_torn = place as usize + block.len() - at == log.len() && is_torn(&block[at..]);
                take(LogPart::Unreadable { at: place, is_torn });
                break;
            };
            at += HEADER + payload.len();
            match (kind, pending.take()) {
                (FULL, None) => take(LogPart::Batch(payload)),
                (FIRST, None) => pending = Some(payload.to_vec()),
                (MIDDLE, Some(mut begun)) => {
                    begun.extend_from_slice(payload);
                    pending = Some(begun);
                }
                (LAST, Some(begun)) => take(LogPart::Batch(&[&begun, payload].concat())),
                (kind, begun) if kind >= PASSED_OVER => pending = begun,
                // A part of a batch whose other part is lost.
                (kind, _) => {
                    take(LogPart::Unreadable { at: place, is_torn: false });
                    match kind {
                        FULL => take(LogPart::Batch(payload)),
                        FIRST => pending = Some(payload.to_vec()),
                        _ => {}
                    }
                }
            }
        }
    }
    if pending.is_some() {
        take(LogPart::Unreadable { at: log.len() as u64, is_torn: true });
    }
}

fn is_torn(tail: &[u8]) -> bool {
    let length = tail.get(4..6).map_or(0, |length| usize::from(u16::from_le_bytes([length[0], length[1]])));
    HEADER + length > tail.len() || tail.iter().all(|byte| *byte == 0)
}

/// One change of a batch, in the column family with this number.
#[derive(Debug, PartialEq, Eq)]
pub enum LogChange<'a> {
    Put { family: u32, key: &'a [u8], value: &'a [u8] },
    Delete { family: u32, key: &'a [u8] },
    Hide { family: u32, start: &'a [u8], end: &'a [u8] },
}

/// The changes of a batch with the sequence number of each; `None` if it is not one that `engine-embedded` writes.
pub fn changes(batch: &[u8]) -> Option<Vec<(u64, LogChange<'_>)>> {
    let (sequence, rest) = batch.split_first_chunk::<8>()?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let (mut sequence, count) = (u64::from_le_bytes(*sequence), u32::from_le_bytes(*count));
    let mut changes = Vec::new();
    while let Some((kind, tail)) = rest.split_first() {
        rest = tail;
        let change = match *kind {
            5 => LogChange::Put {
                family: take_family(&mut rest)?,
                key: take_text(&mut rest)?,
                value: take_text(&mut rest)?,
            },
            4 => LogChange::Delete { family: take_family(&mut rest)?, key: take_text(&mut rest)? },
            14 => LogChange::Hide {
                family: take_family(&mut rest)?,
                start: take_text(&mut rest)?,
                end: take_text(&mut rest)?,
            },
            // Has no content and no sequence number.
            13 => continue,
            _ => return None,
        };
        changes.push((sequence, change));
        sequence = sequence.checked_add(1)?;
    }
    (changes.len() == count as usize).then_some(changes)
}

fn take_family(bytes: &mut &[u8]) -> Option<u32> {
    u32::try_from(take_varint(bytes)?).ok()
}

impl LogChange<'_> {
    pub fn family(&self) -> u32 {
        match self {
            Self::Put { family, .. } | Self::Delete { family, .. } | Self::Hide { family, .. } => *family,
        }
    }

    pub fn tombstone(&self, sequence: u64) -> Option<Tombstone> {
        let Self::Hide { start, end, .. } = self else { return None };
        Some(Tombstone { start: start.to_vec(), end: end.to_vec(), sequence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches, and the places between them that can't be read.
    fn parts(log: &[u8]) -> Vec<Result<Vec<u8>, (u64, bool)>> {
        let mut parts = Vec::new();
        read(log, |part| {
            parts.push(match part {
                LogPart::Batch(batch) => Ok(batch.to_vec()),
                LogPart::Unreadable { at, is_torn } => Err((at, is_torn)),
            });
        });
        parts
    }

    /// As RocksDB writes them: in blocks, and a record that does not fit into one goes on in the next.
    fn log(batches: &[Vec<u8>]) -> Vec<u8> {
        let mut log = Vec::new();
        for batch in batches {
            let (mut rest, mut first) = (&batch[..], true);
            loop {
                let left = BLOCK - log.len() % BLOCK;
                if left < HEADER {
                    log.extend(vec![0; left]);
                    continue;
                }
                let (now, later) = rest.split_at(rest.len().min(left - HEADER));
                let kind = match (first, later.is_empty()) {
                    (true, true) => FULL,
                    (true, false) => FIRST,
                    (false, true) => LAST,
                    (false, false) => MIDDLE,
                };
                log.extend(log_tail::tests::record(kind, now));
                (rest, first) = (later, false);
                if rest.is_empty() {
                    break;
                }
            }
        }
        log
    }

    #[test]
    fn batches_of_any_size_are_read_back() {
        let batches: Vec<Vec<u8>> =
            [10, 40_000, 3, 100_000, 32_700, 1, 32_761, 5].map(|size| vec![size as u8; size]).into();
        assert_eq!(parts(&log(&batches)), batches.into_iter().map(Ok).collect::<Vec<_>>());
    }

    #[test]
    fn an_end_that_was_never_written_is_told_from_one_that_was_changed() {
        let batches: Vec<Vec<u8>> = (0..3).map(|n| vec![n; 100]).collect();
        let whole = log(&batches);
        let last = |bytes: &[u8]| parts(bytes).pop();
        let at = 2 * (HEADER + 100) as u64;
        for torn in [&whole[..whole.len() - 1], &whole[..whole.len() - 90]] {
            assert_eq!(last(torn), Some(Err((at, true))));
        }
        let zeros = [&whole[..at as usize], &[0; 300]].concat();
        assert_eq!(last(&zeros), Some(Err((at, true))));
        let mut changed = whole;
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(last(&changed), Some(Err((at, false))));
    }

    #[test]
    fn a_damaged_record_costs_itself_and_the_rest_of_its_block() {
        let batches: Vec<Vec<u8>> = (0..200_u8).map(|n| vec![n; 1000]).collect();
        let whole = log(&batches);
        for at in [20, 40_000, 60_000, 100_000] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            let parts = parts(&damaged);
            let hole = parts.iter().position(Result::is_err).unwrap();
            let read: Vec<Vec<u8>> = parts.into_iter().flatten().collect();
            assert_eq!(read[..hole], batches[..hole]);
            assert_eq!(read.last(), batches.last());
            assert!(batches.len() - read.len() <= BLOCK / 1000 + 2, "{} of {}", read.len(), batches.len());
        }
    }

    #[test]
    fn a_changed_log_gives_batches_that_were_written_in_their_order_and_no_others() {
        const LOGS: usize = 300;
        let mut read_all = 0;
        for _ in 0..LOGS {
            let sizes =
                (0..rand::random_range(1..8_u8)).map(|_| [3, 100, 5_000, 40_000][rand::random_range(0..4)]);
            let batches: Vec<Vec<u8>> = sizes.enumerate().map(|(n, size)| vec![n as u8 + 1; size]).collect();
            let mut bytes = log(&batches);
            let at = rand::random_range(0..bytes.len());
            match rand::random_range(0..4) {
                0 => bytes[at] ^= 1 << rand::random_range(0..8),
                1 => bytes.truncate(at),
                2 => drop(bytes.drain(at..bytes.len().min(at + rand::random_range(1..300)))),
                _ => bytes.extend((0..rand::random_range(1..300)).map(|_| rand::random::<u8>())),
            }
            let parts = parts(&bytes);
            let mut left = batches.iter();
            for part in &parts {
                match part {
                    Ok(batch) => {
                        assert!(left.any(|written| written == batch), "a batch that was not written");
                    }
                    Err((at, _)) => assert!(*at <= bytes.len() as u64),
                }
            }
            let whole = parts.iter().filter(|part| part.is_ok()).count() == batches.len();
            assert!(
                whole
                    || bytes.is_empty()
                    || parts.iter().any(Result::is_err)
                    || bytes.len() < log(&batches).len()
            );
            read_all += usize::from(whole);
        }
        assert!((LOGS / 10..LOGS * 9 / 10).contains(&read_all), "{read_all} of {LOGS} could be read whole");
    }

    #[test]
    fn a_batch_reads_back_with_a_number_for_each_change() {
        let mut bytes = vec![7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0];
        bytes.extend([5, 2, 1, b'k', 2, b'v', b'w', 4, 1, 1, b'd', 14, 2, 1, b'a', 1, b'z']);
        let expected = [
            (7, LogChange::Put { family: 2, key: b"k", value: b"vw" }),
            (8, LogChange::Delete { family: 1, key: b"d" }),
            (9, LogChange::Hide { family: 2, start: b"a", end: b"z" }),
        ];
        assert_eq!(changes(&bytes).unwrap(), expected);
        assert_eq!(changes(&bytes[..bytes.len() - 1]), None);
        bytes[8] = 2;
        assert_eq!(changes(&bytes), None, "another number of changes than it says");
    }
}
