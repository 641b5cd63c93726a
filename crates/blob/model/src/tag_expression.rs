//! Expressions over tags: what `x-ms-if-tags` and Find Blobs by Tags ask. Their text is read in `wire`.

use crate::Tags;

/// A tree of comparisons. Find has only those that `And` joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagExpression {
    Compare(TagCondition),
    And(Box<TagExpression>, Box<TagExpression>),
    Or(Box<TagExpression>, Box<TagExpression>),
    Not(Box<TagExpression>),
}

/// A comparison of a tag's value, by the order of its characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagCondition {
    pub key: String,
    pub comparison: Comparison,
    pub value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Comparison {
    pub const ALL: [Self; 6] =
        [Self::NotEqual, Self::GreaterOrEqual, Self::LessOrEqual, Self::Equal, Self::Greater, Self::Less];

    /// As it is written. `ALL` has the longer ones first.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
        }
    }

    fn holds(self, value: &str, other: &str) -> bool {
        match self {
            Self::Equal => value == other,
            Self::NotEqual => value != other,
            Self::Greater => value > other,
            Self::GreaterOrEqual => value >= other,
            Self::Less => value < other,
            Self::LessOrEqual => value <= other,
        }
    }
}

impl TagCondition {
    /// A tag that is not there compares with nothing.
    pub fn holds(&self, tags: &Tags) -> bool {
        tags.get(&self.key).is_some_and(|value| self.comparison.holds(value, &self.value))
    }
}

impl TagExpression {
    pub fn holds(&self, tags: &Tags) -> bool {
        match self {
            Self::Compare(condition) => condition.holds(tags),
            Self::And(one, other) => one.holds(tags) && other.holds(tags),
            Self::Or(one, other) => one.holds(tags) || other.holds(tags),
            Self::Not(negated) => !negated.holds(tags),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(key: &str, comparison: Comparison, value: &str) -> TagExpression {
        TagExpression::Compare(TagCondition { key: key.to_owned(), comparison, value: value.to_owned() })
    }

    /// Spec: blob-operations 4.5.
    #[test]
    fn values_compare_as_ordinal_strings() {
        let tags = Tags::parse("n=5&empty=").unwrap();
        let check = |comparison: Comparison, expected: [bool; 3]| {
            let answers = ["4", "5", "50"].map(|value| compare("n", comparison, value).holds(&tags));
            assert_eq!(answers, expected, "{comparison:?}");
        };
        check(Comparison::Equal, [false, true, false]);
        check(Comparison::NotEqual, [true, false, true]);
        check(Comparison::Greater, [true, false, false]);
        check(Comparison::GreaterOrEqual, [true, true, false]);
        check(Comparison::Less, [false, false, true]);
        check(Comparison::LessOrEqual, [false, true, true]);
        assert!(compare("empty", Comparison::Equal, "").holds(&tags));
        assert!(!compare("N", Comparison::Equal, "5").holds(&tags), "keys have a case");
        for comparison in Comparison::ALL {
            assert!(!compare("gone", comparison, "5").holds(&tags), "{comparison:?}");
        }
    }

    #[test]
    fn conditions_are_joined() {
        let tags = Tags::parse("a=1&b=2").unwrap();
        let (yes, no) = (|| compare("a", Comparison::Equal, "1"), || compare("b", Comparison::Equal, "3"));
        assert!(TagExpression::And(yes().into(), yes().into()).holds(&tags));
        assert!(!TagExpression::And(yes().into(), no().into()).holds(&tags));
        assert!(TagExpression::Or(no().into(), yes().into()).holds(&tags));
        assert!(!TagExpression::Or(no().into(), no().into()).holds(&tags));
        assert!(TagExpression::Not(no().into()).holds(&tags));
    }
}
