//! A list of keys in one entity. Steps add and remove members, in any order and any number of times.
//!
//! A member is used once: after its removal it is never added again. So a removal leaves a mark, and a later addition changes
//! nothing. Old marks are deleted when no step can be late any more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::DateTime;

use super::long_text;
use super::steps::{OVERTAKEN_MAX, is_overtaken, overtaken, step_aside};
use partita_client::{Entity, Error, Result, StoredEntity, Table};

/// The property of a step that names the member.
pub const MEMBER: &str = "Member";
const KEYS: &str = "Keys";
/// How long marks of removals are kept.
const GRACE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The content of a list entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyList {
    pub members: BTreeSet<String>,
    /// Removed members, and the times of their removal.
    pub removed: BTreeMap<String, DateTime>,
}

impl KeyList {
    pub fn read(entity: &Entity) -> Result<Self> {
        let mut list = Self::default();
        for line in long_text::read(entity, KEYS)?.lines() {
            let unreadable =
                || Error::Unreadable(format!("the list {:?} has a line {line:?}", entity.row_key));
            match line.split_at_checked(1).ok_or_else(unreadable)? {
                ("+", member) => {
                    list.members.insert(member.to_owned());
                }
                ("-", mark) => {
                    let (ticks, member) = mark.split_once(' ').ok_or_else(unreadable)?;
                    let at = ticks.parse().ok().and_then(DateTime::from_ticks).ok_or_else(unreadable)?;
                    list.removed.insert(member.to_owned(), at);
                }
                _ => return Err(unreadable()),
            }
        }
        Ok(list)
    }

    /// Writes to an entity that has only its keys.
    pub fn write(&self, entity: &mut Entity) -> Result<()> {
        // Members are keys, which can't contain line breaks, so one line is one member.
        let members = self.members.iter().map(|member| format!("+{member}\n"));
        let removed = self.removed.iter().map(|(member, at)| format!("-{} {member}\n", at.ticks()));
        let text: String = members.chain(removed).collect();
        long_text::write(entity, KEYS, &text).ok_or_else(|| {
            Error::Invalid(format!(
                "the list {:?} of partition {:?} has {} keys, more than an entity takes; spread it over more entities, \
                 or use an index with a row for each key",
                entity.row_key,
                entity.partition_key,
                self.members.len()
            ))
        })
    }

    /// Returns whether the list has changed.
    fn add(&mut self, member: &str) -> bool {
        !self.removed.contains_key(member) && self.members.insert(member.to_owned())
    }

    /// Returns whether the list has changed.
    fn remove(&mut self, member: &str, now: DateTime) -> bool {
        let marked = self.removed.contains_key(member);
        self.removed.entry(member.to_owned()).or_insert(now);
        self.members.remove(member) || !marked
    }
}

/// Adds a member: `step` has the keys of the list, and the member.
pub async fn add(table: &Table, step: &Entity) -> Result<()> {
    change(table, step, |list, member| list.add(member)).await
}

/// Removes a member.
pub async fn remove(table: &Table, step: &Entity) -> Result<()> {
    let now = DateTime::now();
    change(table, step, |list, member| list.remove(member, now)).await
}

async fn change(table: &Table, step: &Entity, change: impl Fn(&mut KeyList, &str) -> bool) -> Result<()> {
    let Entity { partition_key, row_key, .. } = step;
    let member = step
        .text(MEMBER)
        .ok_or_else(|| Error::Unreadable(format!("a step of {row_key:?} names no member")))?;
    let now = DateTime::now();
    for _ in 0..OVERTAKEN_MAX {
        let found: Option<StoredEntity<Entity>> = table.find(partition_key, row_key).await?;
        let mut list = found.as_deref().map(KeyList::read).transpose()?.unwrap_or_default();
        if !change(&mut list, member) {
            return Ok(());
        }
        list.removed.retain(|_, at| at.plus(GRACE) > now);
        let mut entity = Entity::new(partition_key, row_key);
        list.write(&mut entity)?;
        let written = match found {
            None => table.insert(&entity).await,
            Some(found) => table.replace(&entity, &found.etag).await,
        };
        match written {
            Err(error) if is_overtaken(&error) => step_aside().await,
            other => return other.map(drop),
        }
    }
    Err(overtaken(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_was_removed_never_comes_back() {
        let mut list = KeyList::default();
        let now = DateTime::parse("2024-01-31").unwrap();
        assert!(list.add("a"));
        assert!(!list.add("a"));
        assert!(list.remove("b", now));
        assert!(!list.add("b"));
        assert!(list.remove("a", now));
        assert!(!list.remove("a", now));
        assert!(!list.add("a"));
        assert_eq!((list.members.len(), list.removed.len()), (0, 2));
    }

    #[test]
    fn a_list_is_read_back_or_refused_with_a_hint() {
        let mut list =
            KeyList { removed: BTreeMap::from([("c d".to_owned(), DateTime::MAX)]), ..KeyList::default() };
        list.members.extend(["", "a", "+b"].map(str::to_owned));
        let mut entity = Entity::new("p", "r");
        list.write(&mut entity).unwrap();
        assert_eq!(KeyList::read(&entity).unwrap(), list);
        list.members.extend((0..50_000).map(|number| format!("{number:010}")));
        let fault = list.write(&mut Entity::new("p", "r")).unwrap_err().to_string();
        assert!(
            fault.contains("has 50003 keys") && fault.contains("spread it over more entities"),
            "{fault}"
        );
    }
}
