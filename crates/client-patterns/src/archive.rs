//! Moves entities from one table to another, for example to an archive. Each entity is in one of the two tables.

use std::time::Duration;

use serde::de::DeserializeOwned;

use super::outbox::{Committed, Outbox};
use super::steps::OutboxStep;
use partita_client::{Entity, Error, Match, Result, StoredEntity, Table, TableService, Transaction};

/// Moves entities from one table to another. To move them back, create an archive with the tables swapped.
///
/// One transaction deletes the entity in the first table and records it in the outbox, so that nobody can change it during
/// the move, and it is never in both tables. Then it is inserted into the second table. If the process dies before that,
/// the next process that [heals](Outbox::heal) the outbox inserts it. During the move [`find`](Self::find) finds it, too. A
/// step that is repeated after the entity has moved again does nothing: it finds the mark that it has left.
/// [`collect`](Self::collect) deletes old marks.
///
/// ```no_run
/// # async fn run(service: partita_client::TableService) -> partita_client::Result<()> {
/// use partita_client::Match;
/// use partita_client_patterns::archive::Archive;
///
/// let archive = Archive::new(&service, "Current", "Former")?;
/// archive.store("Sales", "000223", Match::Any).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Archive {
    outbox: Outbox,
    to: Table,
}

/// An entity, and in which table it is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EntityLocation<T> {
    /// In the first table: it was not moved.
    Source(StoredEntity<T>),
    /// Recorded in the outbox: the move is not complete.
    Moving(T),
    /// In the second table.
    Destination(StoredEntity<T>),
}

impl Archive {
    /// Moves from one table to another of the same account.
    pub fn new(service: &TableService, from: &str, to: &str) -> Result<Self> {
        Self::with_outbox(Outbox::new(service, from)?, to)
    }

    /// With an outbox of your own; it must be that of the first table.
    pub fn with_outbox(outbox: Outbox, to: &str) -> Result<Self> {
        if outbox.table().name().eq_ignore_ascii_case(to) {
            return Err(Error::Invalid(format!(
                "entities can't be moved from {to} to {to}; name two tables"
            )));
        }
        Ok(Self { to: outbox.table_of(to)?, outbox })
    }

    /// The outbox, which is in the first table.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Moves an entity. Fails if it does not exist (404), has another version (412), or its last move is not complete (409).
    ///
    /// If the second table has an entity with the same keys, it fails with [`Error::Invalid`]. If such an entity appears
    /// during the move, the message stays in the outbox until that entity is deleted, and is poisoned after some attempts.
    /// Neither entity is lost.
    pub async fn store(
        &self,
        partition_key: &str,
        row_key: &str,
        condition: impl Into<Match>,
    ) -> Result<Committed> {
        let condition = condition.into();
        let entity: StoredEntity<Entity> = self.outbox.table().get(partition_key, row_key).await?;
        if self.to.find::<Entity>(partition_key, row_key).await?.is_some() {
            return Err(Error::Invalid(format!(
                "{} has an entity {row_key:?} in partition {partition_key:?} already; delete or rename one of the two",
                self.to.name()
            )));
        }
        // Deletes only the version that was read.
        let version = match &condition {
            Match::Any => Match::from(&entity.etag),
            version => version.clone(),
        };
        let mut transaction = Transaction::new();
        transaction.delete(partition_key, row_key, version);
        let step = OutboxStep::insert(self.to.name(), &entity.entity)?;
        self.outbox.commit_as(row_key, transaction, &[step]).await
    }

    /// Deletes the marks of moves that are older than this: see [`Outbox::collect_marks`].
    pub async fn collect(&self, older_than: Duration) -> Result<u64> {
        self.outbox.collect_marks(self.to.name(), older_than).await
    }

    /// Finds an entity in both tables and in the outbox, unless its message is poisoned.
    pub async fn find<T: DeserializeOwned>(
        &self,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<EntityLocation<T>>> {
        // In the order of the move, so that an entity that moves at the same time is not missed.
        if let Some(found) = self.outbox.table().find(partition_key, row_key).await? {
            return Ok(Some(EntityLocation::Source(found)));
        }
        let message = self.outbox.queue(partition_key).find(row_key).await?;
        let steps = message.map(|message| OutboxStep::read(&message.body)).transpose()?.unwrap_or_default();
        if let Some(found) = self.to.find(partition_key, row_key).await? {
            return Ok(Some(EntityLocation::Destination(found)));
        }
        steps
            .into_iter()
            .next()
            .map(|step| Ok(EntityLocation::Moving(step.into_entity().into_typed()?)))
            .transpose()
    }
}
