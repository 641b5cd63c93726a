//! Sequence numbers of page blobs: a counter that clients agree by.

use crate::Refusal;

/// 0 to 2⁶³ - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SequenceNumber(u64);

const MAX: u64 = i64::MAX as u64;

impl SequenceNumber {
    pub fn new(number: u64) -> Option<Self> {
        (number <= MAX).then_some(Self(number))
    }

    pub fn get(self) -> u64 {
        self.0
    }

    /// The header `x-ms-blob-sequence-number`.
    pub fn of_header(value: &str) -> Result<Self, Refusal> {
        let invalid =
            || Refusal::HeaderInvalid { name: "x-ms-blob-sequence-number", value: value.to_owned() };
        value.parse().ok().and_then(Self::new).ok_or_else(invalid)
    }

    /// What Set Blob Properties makes of it.
    pub fn change(self, action: SequenceNumberAction) -> Result<Self, Refusal> {
        match action {
            SequenceNumberAction::Max(other) => Ok(self.max(other)),
            SequenceNumberAction::Update(other) => Ok(other),
            SequenceNumberAction::Increment => Self::new(self.0 + 1).ok_or(Refusal::SequenceNumberOverflow),
        }
    }
}

/// `x-ms-sequence-number-action`, and the number that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceNumberAction {
    Max(SequenceNumber),
    Update(SequenceNumber),
    Increment,
}

impl SequenceNumberAction {
    /// `increment` has no number with it, the others need one.
    pub fn of_headers(action: &str, number: Option<&str>) -> Result<Self, Refusal> {
        const NAME: &str = "x-ms-sequence-number-action";
        const NUMBER: &str = "x-ms-blob-sequence-number";
        let needed = || SequenceNumber::of_header(number.ok_or(Refusal::HeaderMissing { name: NUMBER })?);
        match (action.to_ascii_lowercase().as_str(), number) {
            ("max", _) => needed().map(Self::Max),
            ("update", _) => needed().map(Self::Update),
            ("increment", None) => Ok(Self::Increment),
            ("increment", Some(value)) => {
                Err(Refusal::HeaderInvalid { name: NUMBER, value: value.to_owned() })
            }
            _ => Err(Refusal::HeaderInvalid { name: NAME, value: action.to_owned() }),
        }
    }
}

/// What a write to pages asks of the number: `x-ms-if-sequence-number-le`, `-lt`, `-eq`. All that are given must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceCondition {
    pub at_most: Option<SequenceNumber>,
    pub below: Option<SequenceNumber>,
    pub equal: Option<SequenceNumber>,
}

impl SequenceCondition {
    pub fn check(&self, number: SequenceNumber) -> Result<(), Refusal> {
        let holds = self.at_most.is_none_or(|limit| number <= limit)
            && self.below.is_none_or(|limit| number < limit)
            && self.equal.is_none_or(|other| number == other);
        if holds { Ok(()) } else { Err(Refusal::SequenceNumberConditionNotMet) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: u64) -> SequenceNumber {
        SequenceNumber::new(value).unwrap()
    }

    /// Spec: blob-operations 6.1, 6.3.
    #[test]
    fn numbers_and_actions_come_from_headers() {
        assert_eq!(SequenceNumber::of_header("9223372036854775807").map(SequenceNumber::get), Ok(MAX));
        for value in ["-1", "9223372036854775808", "x", ""] {
            assert_eq!(SequenceNumber::of_header(value).unwrap_err().code(), "InvalidHeaderValue", "{value}");
        }
        let check = |action: &str, value: Option<&str>, expected: Result<u64, &str>| {
            let read = SequenceNumberAction::of_headers(action, value);
            let changed = read.and_then(|action| number(5).change(action));
            assert_eq!(
                changed.as_ref().map(|n| n.get()).map_err(|r| r.code()),
                expected,
                "{action} {value:?}"
            );
        };
        check("max", Some("4"), Ok(5));
        check("Max", Some("6"), Ok(6));
        check("update", Some("4"), Ok(4));
        check("increment", None, Ok(6));
        check("increment", Some("4"), Err("InvalidHeaderValue"));
        check("max", None, Err("MissingRequiredHeader"));
        check("update", Some("-1"), Err("InvalidHeaderValue"));
        check("garbage", None, Err("InvalidHeaderValue"));
        let last = number(MAX).change(SequenceNumberAction::Increment);
        assert_eq!(last.unwrap_err().code(), "SequenceNumberIncrementTooLarge");
    }

    /// Spec: blob-operations 7.3.
    #[test]
    fn a_write_holds_to_the_number() {
        let check = |condition: SequenceCondition, expected: [bool; 3]| {
            assert_eq!([4, 5, 6].map(|n| condition.check(number(n)).is_ok()), expected, "{condition:?}");
        };
        let five = Some(number(5));
        check(SequenceCondition::default(), [true; 3]);
        check(SequenceCondition { at_most: five, ..Default::default() }, [true, true, false]);
        check(SequenceCondition { below: five, ..Default::default() }, [true, false, false]);
        check(SequenceCondition { equal: five, ..Default::default() }, [false, true, false]);
        check(SequenceCondition { at_most: five, below: five, equal: None }, [true, false, false]);
    }
}
