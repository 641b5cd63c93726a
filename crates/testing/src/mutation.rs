//! Nearly valid input: valid input, changed in a few places.
//!
//! Random bytes fail the first check of nearly every parser, so a test with them does not reach the later checks. Changed
//! valid input passes most of them.

use std::cell::Cell;
use std::fmt::Debug;
use std::ops::RangeInclusive;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;

/// With fewer cases, the percentage of accepted inputs is not significant.
const CASES_MIN: u32 = 256;
/// The largest number of changes in one input.
const CHANGES_MAX: usize = 2;
/// The longest part that is removed or repeated.
const STRETCH_MAX: usize = 24;

/// One change of a valid input.
#[derive(Clone, Debug)]
enum Change<T> {
    Flip(Index, u32),
    Replace(Index, T),
    Insert(Index, Vec<T>),
    Remove(Index, usize),
    Repeat(Index, usize),
    CutOff(Index),
    /// The start of this input and the end of another.
    Splice(Index, Index),
}

/// A part of an input in which one bit can be flipped.
trait Flip: Clone {
    fn flip(&self, bit: u32) -> Self;
}

impl Flip for u8 {
    fn flip(&self, bit: u32) -> Self {
        self ^ (1_u8 << (bit % u8::BITS))
    }
}

impl Flip for char {
    fn flip(&self, bit: u32) -> Self {
        char::from_u32(u32::from(*self) ^ (1_u32 << (bit % u8::BITS))).unwrap_or(*self)
    }
}

impl<T: Flip> Change<T> {
    fn apply(&self, input: &mut Vec<T>, other: &[T]) {
        let place = |index: &Index, list: &[T]| index.index(list.len() + 1);
        let stretch = |index: &Index, length: usize, list: &[T]| {
            let start = index.index(list.len() + 1);
            start..list.len().min(start + length)
        };
        match self {
            Self::Flip(..) | Self::Replace(..) if input.is_empty() => {}
            Self::Flip(index, bit) => {
                let at = index.index(input.len());
                input[at] = input[at].flip(*bit);
            }
            Self::Replace(index, part) => {
                let at = index.index(input.len());
                input[at] = part.clone();
            }
            Self::Insert(index, piece) => {
                let at = place(index, input);
                input.splice(at..at, piece.iter().cloned());
            }
            Self::Remove(index, length) => {
                input.drain(stretch(index, *length, input));
            }
            Self::Repeat(index, length) => {
                let range = stretch(index, *length, input);
                let piece = input[range.clone()].to_vec();
                input.splice(range.end..range.end, piece);
            }
            Self::CutOff(index) => input.truncate(place(index, input)),
            Self::Splice(end, start) => {
                input.truncate(place(end, input));
                input.extend_from_slice(&other[place(start, other)..]);
            }
        }
    }
}

fn change<T: Flip + Debug + 'static>(
    part: impl Strategy<Value = T> + 'static,
    piece: impl Strategy<Value = Vec<T>> + 'static,
) -> impl Strategy<Value = Change<T>> {
    let index = any::<Index>;
    prop_oneof![
        4 => (index(), any::<u32>()).prop_map(|(at, bit)| Change::Flip(at, bit)),
        4 => (index(), part).prop_map(|(at, part)| Change::Replace(at, part)),
        4 => (index(), piece).prop_map(|(at, piece)| Change::Insert(at, piece)),
        2 => (index(), 1..STRETCH_MAX).prop_map(|(at, length)| Change::Remove(at, length)),
        2 => (index(), 1..STRETCH_MAX).prop_map(|(at, length)| Change::Repeat(at, length)),
        1 => index().prop_map(Change::CutOff),
        2 => (index(), index()).prop_map(|(end, start)| Change::Splice(end, start)),
    ]
}

fn changed<T: Flip + Debug + 'static>(
    valid: impl Strategy<Value = Vec<T>>,
    change: impl Strategy<Value = Change<T>>,
) -> impl Strategy<Value = Vec<T>> {
    // Most inputs are changed once: with two changes, one mostly hides the effect of the other.
    let few = prop_oneof![3 => Just(1), 1 => Just(CHANGES_MAX)];
    (vec(valid, 2), vec(change, CHANGES_MAX), few).prop_map(|(mut inputs, changes, few)| {
        let other = inputs.pop().unwrap_or_default();
        let mut input = inputs.pop().unwrap_or_default();
        changes.iter().take(few).for_each(|change| change.apply(&mut input, &other));
        input
    })
}

/// Bytes that are most likely to find errors in parsers of lengths and tags.
const TRICKY_BYTES: [u8; 8] = [0, 1, 2, 8, 0x7f, 0x80, 0xfe, 0xff];

/// Valid bytes, changed in one or two places.
pub fn bytes_near(valid: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let byte = || prop_oneof![select(&TRICKY_BYTES[..]), any::<u8>()];
    changed(valid, change(byte(), vec(byte(), 1..4)))
}

/// Valid text, changed in one or two places. Inserts pieces of the language, and sometimes any character.
pub fn text_near(
    valid: impl Strategy<Value = String>,
    pieces: &'static [&'static str],
) -> impl Strategy<Value = String> {
    let character =
        || prop_oneof![4 => "[ -~]".prop_map(|text| text.chars().next().unwrap_or(' ')), 1 => any::<char>()];
    let piece = prop_oneof![
        3 => select(pieces).prop_map(|piece| piece.chars().collect::<Vec<char>>()),
        1 => vec(character(), 1..3),
    ];
    let valid = valid.prop_map(|text| text.chars().collect::<Vec<char>>());
    changed(valid, change(character(), piece)).prop_map(String::from_iter)
}

/// The result of a parser for an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    Accepted,
    Refused,
}

impl Reading {
    pub fn of<T, E>(result: &Result<T, E>) -> Self {
        if result.is_ok() { Self::Accepted } else { Self::Refused }
    }
}

/// Checks a property for many inputs. The percentage of accepted inputs must be in the range, so that the test covers both
/// accepted and refused inputs.
///
/// # Panics
/// If the property does not hold for an input, or if the percentage is out of range.
pub fn check_near<S: Strategy>(
    inputs: S,
    accepted_percent: RangeInclusive<u32>,
    check: impl Fn(S::Value) -> Result<Reading, TestCaseError>,
) where
    S::Value: Debug,
{
    let usual = ProptestConfig::default();
    let cases = usual.cases.max(CASES_MIN);
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..usual });
    let (accepted, all) = (Cell::new(0), Cell::new(0));
    let outcome = runner.run(&inputs, |input| {
        all.set(all.get() + 1);
        if check(input)? == Reading::Accepted {
            accepted.set(accepted.get() + 1);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let percent = accepted.get() * 100 / all.get().max(1);
    println!("{percent} % of {} inputs were accepted", all.get());
    assert!(
        accepted_percent.contains(&percent),
        "{} of {} inputs were accepted, which is {percent} % and not {accepted_percent:?} %: change the generator",
        accepted.get(),
        all.get()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_changed_inputs_differ_from_the_valid_one_and_keep_most_of_it() {
        const VALID: &str = "the quick brown fox jumps over the lazy dog";
        let near = text_near(Just(VALID.to_owned()), &["fox"]);
        check_near(near, 50..=100, |text| {
            let alike = text.chars().zip(VALID.chars()).take_while(|(a, b)| a == b).count();
            let is_near = text != VALID && (alike > 4 || text.ends_with("dog"));
            Ok(if is_near { Reading::Accepted } else { Reading::Refused })
        });
    }

    #[test]
    #[should_panic(expected = "0 of 256 inputs were accepted")]
    fn a_reader_that_accepts_nothing_is_noticed() {
        check_near(any::<u8>(), 1..=99, |_| Ok(Reading::Refused));
    }

    #[test]
    #[should_panic(expected = "100 % and not")]
    fn a_reader_that_refuses_nothing_is_noticed() {
        check_near(any::<u8>(), 1..=99, |_| Ok(Reading::Accepted));
    }

    #[test]
    #[should_panic(expected = "minimal failing input: 100")]
    fn an_input_that_breaks_the_property_is_shown() {
        check_near(any::<u8>(), 0..=100, |byte| {
            prop_assert!(byte < 100);
            Ok(Reading::Accepted)
        });
    }

    #[test]
    fn an_empty_input_can_be_changed() {
        check_near(bytes_near(Just(Vec::new())), 10..=60, |bytes| {
            Ok(if bytes.is_empty() { Reading::Refused } else { Reading::Accepted })
        });
    }
}
