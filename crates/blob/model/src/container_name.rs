//! Names of containers.

use std::fmt;
use std::sync::Arc;

use crate::{Refusal, limits};

/// The containers that have a name of their own kind: for blobs without a container in their address, for a static website,
/// for the logs that the service writes, and for a change feed, which no account has here.
const SPECIAL: [&str; 4] = ["$root", "$web", "$logs", "$blobchangefeed"];

/// A container's name: 3 to 63 lower-case letters, digits and single dashes between them, or a special one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerName(Arc<str>);

impl ContainerName {
    /// A wrong length counts before a wrong character.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if SPECIAL.contains(&text) {
            return Ok(Self(text.into()));
        }
        let is_part = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        if !(limits::CONTAINER_NAME_MIN..=limits::CONTAINER_NAME_MAX).contains(&text.chars().count()) {
            return Err(common::Refusal::InputOutOfRange.into());
        }
        if !text.split('-').all(is_part) {
            return Err(common::Refusal::ResourceNameCharacters.into());
        }
        Ok(Self(text.into()))
    }

    /// The container of blobs whose address names none.
    pub fn root() -> Self {
        Self(SPECIAL[0].into())
    }

    /// The container of the logs that the service writes.
    pub fn logs() -> Self {
        Self(SPECIAL[2].into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_root(&self) -> bool {
        &*self.0 == SPECIAL[0]
    }

    /// Written by the service alone; clients may read and delete what is in it.
    pub fn is_logs(&self) -> bool {
        &*self.0 == SPECIAL[2]
    }

    /// Listed only with `include=system`.
    pub fn is_system(&self) -> bool {
        [SPECIAL[2], SPECIAL[3]].contains(&&*self.0)
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<common::Refusal>) {
        assert_eq!(ContainerName::parse(text).err(), expected.map(Refusal::from), "{text}");
    }

    #[test]
    fn names_follow_the_rules() {
        let length = Some(common::Refusal::InputOutOfRange);
        let characters = Some(common::Refusal::ResourceNameCharacters);
        check("abc", None);
        check("1-2", None);
        check("azure-webjobs-hosts", None);
        check(&"a".repeat(63), None);
        for special in ["$root", "$web", "$logs", "$blobchangefeed"] {
            check(special, None);
        }
        check("", length);
        check("ab", length);
        check(&"a".repeat(64), length);
        check("啊齄", length);
        check("啊齄丂狛狜", characters);
        check("a b", characters);
        check("-ab", characters);
        check("ab-", characters);
        check("a--b", characters);
        check("Abc", characters);
        check("$other", characters);
    }

    #[test]
    fn special_containers_are_known() {
        assert!(ContainerName::root().is_root());
        let logs = ContainerName::parse("$logs").unwrap();
        assert!(logs.is_logs() && logs.is_system() && !logs.is_root());
        assert_eq!(logs, ContainerName::logs());
        let feed = ContainerName::parse("$blobchangefeed").unwrap();
        assert!(feed.is_system() && !feed.is_logs() && !feed.is_root());
        let web = ContainerName::parse("$web").unwrap();
        assert!(!web.is_system() && !web.is_root());
    }
}
