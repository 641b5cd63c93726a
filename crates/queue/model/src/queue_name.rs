//! Names of queues.

use std::fmt;
use std::sync::Arc;

use crate::{Refusal, limits};

/// A queue's name: 3 to 63 lower-case letters, digits and single dashes between them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(Arc<str>);

impl QueueName {
    /// A wrong length counts before a wrong character.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if !(limits::QUEUE_NAME_MIN..=limits::QUEUE_NAME_MAX).contains(&text.chars().count()) {
            return Err(common::Refusal::ResourceNameLength.into());
        }
        let is_part = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        if !text.split('-').all(is_part) {
            return Err(common::Refusal::ResourceNameCharacters.into());
        }
        Ok(Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<common::Refusal>) {
        assert_eq!(QueueName::parse(text).err(), expected.map(Refusal::from), "{text}");
    }

    #[test]
    fn names_follow_the_rules() {
        let length = Some(common::Refusal::ResourceNameLength);
        let characters = Some(common::Refusal::ResourceNameCharacters);
        check("abc", None);
        check("1-2", None);
        check("my-queue-1", None);
        check(&"a".repeat(63), None);
        check("", length);
        check("ab", length);
        check(&"a".repeat(64), length);
        check(&"-".repeat(64), length);
        check("a_b", characters);
        check("-ab", characters);
        check("ab-", characters);
        check("a--b", characters);
        check("---", characters);
        check("Abc", characters);
        check("{queueName}", characters);
        check("啊齄丂", characters);
        check("啊", length);
        check("$logs", characters);
    }
}
