//! What Put Block List asks for, and what Get Block List tells.

use crate::BlockId;

/// Where Put Block List takes a block from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockChoice {
    Committed,
    Uncommitted,
    /// The uncommitted block of this id, or else the committed one.
    Latest,
}

impl BlockChoice {
    pub const ALL: [Self; 3] = [Self::Committed, Self::Uncommitted, Self::Latest];

    /// Its element.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Committed => "Committed",
            Self::Uncommitted => "Uncommitted",
            Self::Latest => "Latest",
        }
    }

    /// The one of these two blocks that is asked for.
    pub fn choose<B>(self, uncommitted: Option<B>, committed: Option<B>) -> Option<B> {
        match self {
            Self::Committed => committed,
            Self::Uncommitted => uncommitted,
            Self::Latest => uncommitted.or(committed),
        }
    }
}

/// A block in the answer of Get Block List.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBlock {
    pub id: BlockId,
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: blob-operations 7.1.
    #[test]
    fn a_choice_takes_the_block_that_it_names() {
        let check = |choice: BlockChoice, uncommitted, committed, expected: Option<&str>| {
            assert_eq!(choice.choose(uncommitted, committed), expected, "{choice:?}");
        };
        check(BlockChoice::Committed, Some("new"), Some("old"), Some("old"));
        check(BlockChoice::Committed, Some("new"), None, None);
        check(BlockChoice::Uncommitted, Some("new"), Some("old"), Some("new"));
        check(BlockChoice::Uncommitted, None, Some("old"), None);
        check(BlockChoice::Latest, Some("new"), Some("old"), Some("new"));
        check(BlockChoice::Latest, None, Some("old"), Some("old"));
        check(BlockChoice::Latest, None, None, None);
    }
}
